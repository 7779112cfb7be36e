import type { SessionRecord } from '../../store/contract.ts';
import { contextKey } from './context-key.ts';
import { readChainRecord, SessionCompactions, type SessionCompactionsOptions } from './session-compactions.ts';

const MOST_SESSIONS = 1_000;

/** The summaries that this process knows: those of the most recently used sessions. */
export class Compactions {
  readonly #sessions = new Map<string, SessionCompactions>();
  /** A name for each store: agents with different stores may share a window, and their sessions may have the same id. */
  readonly #stores = new WeakMap<object, string>();

  /** The summaries of a session. Returns the same object for each turn, as long as it is kept. */
  of(options: SessionCompactionsOptions): SessionCompactions {
    const key = this.#keyOf(options);
    const known = this.#sessions.get(key) ?? new SessionCompactions(options);
    this.#sessions.delete(key);
    this.#sessions.set(key, known);
    if (this.#sessions.size > MOST_SESSIONS) this.#forgetOldest();
    return known;
  }

  /** Reads the summaries of a session; `undefined` if this process knows them. */
  prefetch(options: SessionCompactionsOptions): Promise<readonly SessionRecord[]> | undefined {
    return this.#sessions.get(this.#keyOf(options))?.isKnown ? undefined : readChainRecord(options);
  }

  /** Resolves when no summary is being made. */
  async settled(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.settled()));
  }

  #keyOf({ records, context, sessionId }: SessionCompactionsOptions): string {
    const store = this.#stores.get(records) ?? globalThis.crypto.randomUUID();
    this.#stores.set(records, store);
    return JSON.stringify([store, contextKey(context), sessionId]);
  }

  #forgetOldest(): void {
    const [key, session] = this.#sessions.entries().next().value!;
    session.close();
    this.#sessions.delete(key);
  }
}
