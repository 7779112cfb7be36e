import { logger } from 'genkit/logging';
import { describeThrown, quote } from '../../errors.ts';
import type { IngestWhile } from '../pipeline/ingest/ingest.ts';
import type { MemoryTriggers } from '../types.ts';
import type { SessionToLearn } from './read-session.ts';

/** Sessions that wait for their idle time in a process. The one that has waited longest is learned from when there are more. */
const MOST_WAITING = 1_000;

/** Reads a session when it is to be learned from; `undefined` when it is gone. */
export type ReadSession = () => Promise<SessionToLearn | undefined>;

interface Waiting {
  readonly turns: number;
  readonly timer: NodeJS.Timeout | undefined;
  readonly learn: () => Promise<void>;
}

/** Begins to learn from sessions when it is time. */
export class Triggers {
  readonly #ingest: IngestWhile;
  readonly #when: Required<MemoryTriggers>;
  readonly #waiting = new Map<string, Waiting>();

  constructor(ingest: IngestWhile, when: Required<MemoryTriggers>) {
    this.#ingest = ingest;
    this.#when = when;
  }

  /**
   * Never rejects.
   *
   * @param key Names the session among those of all tenants.
   * @param later Reads the session when it was idle: it may have been erased.
   */
  async turnEnded(key: string, session: SessionToLearn, later: ReadSession): Promise<void> {
    const { everyTurns, onIdleMs } = this.#when;
    const { sessionId, messages } = session;
    const turns = messages.reduce((sum, { role }) => sum + (role === 'user' ? 1 : 0), 0);
    const rounds = (count: number) => Math.floor(count / everyTurns);
    const isDue = rounds(turns) > rounds(this.stop(key)?.turns ?? turns - 1);
    const learn = () => this.#learn(sessionId, later);
    const timer = isDue || onIdleMs === false ? undefined : setTimeout(() => void learn(), onIdleMs);
    timer?.unref();
    this.#waiting.set(key, { turns, timer, learn });
    const [oldest] = this.#waiting.size > MOST_WAITING ? this.#waiting.keys() : [];
    const early = oldest === undefined ? undefined : this.stop(oldest);
    if (early?.timer) await early.learn();
    if (isDue) await this.#learn(sessionId, async () => session, later);
  }

  /** Ends the wait for a session's idle time. */
  stop(key: string): Waiting | undefined {
    const waiting = this.#waiting.get(key);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(key);
    return waiting;
  }

  async #learn(sessionId: string, read: ReadSession, later = read): Promise<void> {
    try {
      const session = await read();
      if (!session) return;
      const { scope, snapshotId, messages } = session;
      const source = { id: sessionId, sessionId, ...(snapshotId !== undefined && { snapshotId }) };
      await this.#ingest({ scope, source, messages }, async () => (await later()) !== undefined);
    } catch (error) {
      logger.warn(
        `Session ${quote(sessionId)} was not learned from; a later turn tries again. ${describeThrown(error)}`,
      );
    }
  }
}
