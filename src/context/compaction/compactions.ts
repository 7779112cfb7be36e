import { contextKey } from './context-key.ts';
import { SessionCompactions, type SessionCompactionsOptions } from './session-compactions.ts';

const MOST_SESSIONS = 1_000;

/** The sessions whose summaries this process knows: those that were used last. */
export class Compactions {
  readonly #sessions = new Map<string, SessionCompactions>();

  /** Those of a session; the same object from turn to turn. */
  of(options: SessionCompactionsOptions): SessionCompactions {
    const key = JSON.stringify([contextKey(options.context), options.sessionId]);
    const known = this.#sessions.get(key) ?? new SessionCompactions(options);
    this.#sessions.delete(key);
    this.#sessions.set(key, known);
    if (this.#sessions.size > MOST_SESSIONS) this.#forgetOldest();
    return known;
  }

  /** Resolves when no summary is being made. */
  async settled(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map((session) => session.settled()));
  }

  #forgetOldest(): void {
    const [key, session] = this.#sessions.entries().next().value!;
    session.close();
    this.#sessions.delete(key);
  }
}
