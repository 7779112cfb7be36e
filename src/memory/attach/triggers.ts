import { logger } from 'genkit/logging';
import { describeThrown, quote } from '../../errors.ts';
import type { IngestWhile } from '../pipeline/ingest/ingest.ts';
import type { MemoryTriggers } from '../types.ts';
import type { SessionToLearn } from './read-session.ts';

/** The most sessions that a process tracks. With more, the oldest is dropped; if it waits for its idle time, it is learned from first. */
const MOST_WAITING = 1_000;

/** Reads a session; `undefined` if it is gone. */
export type ReadSession = () => Promise<SessionToLearn | undefined>;

interface Waiting {
  readonly turns: number;
  readonly timer: NodeJS.Timeout | undefined;
  readonly learn: () => Promise<void>;
}

/** Learns from sessions after some turns, or an idle time. */
export class Triggers {
  readonly #ingest: IngestWhile;
  readonly #when: Required<MemoryTriggers>;
  readonly #waiting = new Map<string, Waiting>();

  constructor(ingest: IngestWhile, when: Required<MemoryTriggers>) {
    this.#ingest = ingest;
    this.#when = when;
  }

  /**
   * Returns the learning from sessions that are due, if there are any. It never rejects.
   *
   * @param key Names the session, across tenants.
   * @param later Reads the session again, because it may have been erased since the turn.
   */
  turnEnded(key: string, session: SessionToLearn, later: ReadSession): Promise<void> | undefined {
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
    const learnEarly = early?.timer && early.learn;
    if (!isDue) return learnEarly?.();
    const learnNow = (): Promise<void> => this.#learn(sessionId, later, session);
    return learnEarly ? learnEarly().then(learnNow) : learnNow();
  }

  /** Stops waiting for a session's idle time. */
  stop(key: string): Waiting | undefined {
    const waiting = this.#waiting.get(key);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(key);
    return waiting;
  }

  /** With `read`, the session as it was read, the ingest begins before this returns, so `settled` waits for it. */
  async #learn(sessionId: string, later: ReadSession, read?: SessionToLearn): Promise<void> {
    try {
      const session = read ?? (await later());
      if (!session) return;
      const { scope, snapshotId, messages } = session;
      const source = { id: sessionId, sessionId, ...(snapshotId !== undefined && { snapshotId }) };
      await this.#ingest({ scope, source, messages }, async () => (await later()) !== undefined);
    } catch (error) {
      logger.warn(
        `Session ${quote(sessionId)} was not learned from; a later turn tries again. ${error instanceof Error ? error.message : describeThrown(error)}`,
      );
    }
  }
}
