import type { KnownState } from '../chain/written-state.ts';
import { LruCache } from '../chain/lru-cache.ts';

/** A state, and the stamp of the file that it was in: so another writer that replaces the file is noticed. */
export interface CachedState {
  readonly known: KnownState;
  readonly stamp: string;
}

/** What all states in the cache may take, measured by the length of their JSON; what they share counts for each. */
const MOST_LENGTH = 64 * 1024 * 1024;

/** States read or saved lately, so that the next turn need not read them again. They are immutable; what is handed out is a copy. */
export class StateCache {
  readonly #states = new LruCache<CachedState>(MOST_LENGTH);

  get(key: string): CachedState | undefined {
    return this.#states.get(key);
  }

  set(key: string, known: KnownState, stamp: string): void {
    this.#states.set(key, { known, stamp }, known.length);
  }

  delete(key: string): void {
    this.#states.delete(key);
  }

  clear(): void {
    this.#states.clear();
  }
}
