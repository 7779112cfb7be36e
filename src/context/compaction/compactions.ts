import type { SessionRecord } from '../../store/contract.ts';
import { contextKey } from './context-key.ts';
import { readChainRecord, SessionCompactions, type SessionCompactionsOptions } from './session-compactions.ts';

const MOST_SESSIONS = 1_000;

/** The sessions whose summaries this process knows: those that were used last. */
export class Compactions {
  readonly #sessions = new Map<string, SessionCompactions>();
  /** Agents with stores of their own may share a window, and have sessions of the same id. */
  readonly #stores = new WeakMap<object, string>();

  /** Those of a session; the same object from turn to turn. */
  of(options: SessionCompactionsOptions): SessionCompactions {
    const key = this.#keyOf(options);
    const known = this.#sessions.get(key) ?? new SessionCompactions(options);
    this.#sessions.delete(key);
    this.#sessions.set(key, known);
    if (this.#sessions.size > MOST_SESSIONS) this.#forgetOldest();
    return known;
  }

  /** Reads the summaries of a session that this process does not know; `undefined` when it does. */
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
