import type { SessionSummary } from '../../../store/contract.ts';
import { LruCache } from '../../../store/parts/lru-cache.ts';
import type { MemoryScope } from '../../scopes.ts';

/** The most sessions that a process remembers. */
const MOST_KNOWN = 10_000;

/** The sessions of which all messages were read or enqueued, as far as this process knows. They need not be read until they change. */
export class KnownSessions {
  readonly #known = new LruCache<true>(MOST_KNOWN);
  readonly #keyOf: (scope: MemoryScope) => string;

  /** @param keyOf Names a scope across tenants. */
  constructor(keyOf: (scope: MemoryScope) => string) {
    this.#keyOf = keyOf;
  }

  has(scope: MemoryScope, session: SessionSummary): boolean {
    return this.#known.get(this.#nameOf(scope, session)) !== undefined;
  }

  /** @param session As it was listed before its messages were read. */
  add(scope: MemoryScope, session: SessionSummary): void {
    this.#known.set(this.#nameOf(scope, session), true, 1);
  }

  /** Another name after each change of the session. */
  #nameOf(scope: MemoryScope, { sessionId, leafId, updatedAt }: SessionSummary): string {
    return JSON.stringify([this.#keyOf(scope), sessionId, leafId, updatedAt]);
  }
}
