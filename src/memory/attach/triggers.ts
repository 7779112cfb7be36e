import { logger } from 'genkit/logging';
import { errorMessage, quote } from '../../errors.ts';
import { MessageLog } from '../../session/log/message-log.ts';
import type { IngestWhile } from '../pipeline/ingest/ingest.ts';
import type { MemoryTriggers } from '../types.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import { runWithoutContext } from '../run-without-context.ts';
import { sourceOfSession, type SessionToLearn } from '../pipeline/ingest/read-session.ts';

/**
 * The most sessions that a process tracks. If there are more, the oldest is dropped; if it still waits for its idle time, the process
 * learns from it first.
 */
const MOST_TRACKED = 1_000;

/** Reads a session; `undefined` if it no longer exists. */
export type ReadSession = () => Promise<SessionToLearn | undefined>;

/** A session with a turn in this process. */
interface TrackedSession {
  /** The number of ended turns in the session's messages. */
  readonly turns: number;
  /** The number of turns that ended in this process since it last learned from the session. */
  unlearned: number;
  /** Fires when the session has been idle for `onIdleMs`. */
  timer: NodeJS.Timeout | undefined;
  /** Learns without the context of a turn, because the turn of another session may begin it. */
  readonly learn: () => Promise<void>;
}

/** The manager of the memories. */
interface LearningManager {
  readonly ingest: IngestWhile;
  readonly isClosed: () => boolean;
}

/** Learns from sessions after a number of turns, or after an idle time. */
export class Triggers {
  readonly #manager: LearningManager;
  readonly #when: Required<MemoryTriggers>;
  readonly #timeoutMs: number;
  readonly #tracked = new Map<string, TrackedSession>();

  /** @param timeoutMs The time limit for adding the jobs of one session to the queue. */
  constructor(manager: LearningManager, when: Required<MemoryTriggers>, timeoutMs: number) {
    this.#manager = manager;
    this.#when = when;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Starts to learn from the session if it is due, and returns the work, which never rejects.
   *
   * @param key Names the session, across tenants.
   * @param later Reads the session again, because it may have been erased after the turn.
   */
  turnEnded(key: string, session: SessionToLearn, later: ReadSession): Promise<void> | undefined {
    const { everyTurns } = this.#when;
    const { sessionId, messages } = session;
    const before = this.stop(key);
    // A turn that waits for a tool's output has not ended.
    const { completeTo } = MessageLog.of(messages);
    const turns = messages.slice(0, completeTo).filter(({ role }) => role === 'user').length;
    const unlearned = (before?.unlearned ?? 0) + (completeTo === messages.length ? 1 : 0);
    const rounds = (count: number) => Math.floor(count / everyTurns);
    // The messages contain the turns of all processes, but their number does not grow if the session is trimmed or continues from an
    // earlier turn.
    const isDue = rounds(turns) > rounds(before?.turns ?? Math.max(0, turns - 1)) || unlearned >= everyTurns;
    const learn = () => {
      tracked.unlearned = 0;
      return runWithoutContext(() => this.#learn(key, sessionId, later));
    };
    const timer = isDue ? undefined : this.#onIdle(learn);
    const tracked: TrackedSession = { turns, unlearned: isDue ? 0 : unlearned, timer, learn };
    this.#tracked.set(key, tracked);
    const [oldest] = this.#tracked.size > MOST_TRACKED ? this.#tracked.keys() : [];
    const early = oldest === undefined ? undefined : this.stop(oldest);
    // The dropped session still waits for its idle time, so learn from it now.
    if (early?.timer) void early.learn();
    return isDue ? this.#learn(key, sessionId, later, session) : undefined;
  }

  /** Stops tracking a session: cancels its timer, and returns its entry. */
  stop(key: string): TrackedSession | undefined {
    const tracked = this.#tracked.get(key);
    clearTimeout(tracked?.timer);
    this.#tracked.delete(key);
    return tracked;
  }

  /** If `read` is given (a session that was read already), the ingest begins before this method returns, so `settled` waits for it. */
  async #learn(key: string, sessionId: string, later: ReadSession, read?: SessionToLearn): Promise<void> {
    const ingest = async () => {
      const session = read ?? (await later());
      if (!session) return;
      const { scope, messages } = session;
      const source = sourceOfSession(session);
      const { status } = await this.#manager.ingest(
        { scope, source, messages },
        async () => (await later()) !== undefined,
      );
      if (status === 'full') this.#makeDue(key);
    };
    try {
      await withinTime('The ingest', this.#timeoutMs, undefined, ingest);
    } catch (error) {
      logger.warn(
        `Nothing was learned from session ${quote(sessionId)}; a later turn or idle time tries again. ${errorMessage(error)}`,
      );
      this.#makeDue(key);
    }
  }

  /** Makes the next turn of a session due, and its next idle time. */
  #makeDue(key: string): void {
    const tracked = this.#tracked.get(key);
    if (!tracked) return;
    tracked.unlearned = this.#when.everyTurns;
    clearTimeout(tracked.timer);
    tracked.timer = this.#onIdle(tracked.learn);
  }

  #onIdle(learn: () => Promise<void>): NodeJS.Timeout | undefined {
    const { onIdleMs } = this.#when;
    if (onIdleMs === false || this.#manager.isClosed()) return undefined;
    return setTimeout(() => void (this.#manager.isClosed() || learn()), onIdleMs).unref();
  }
}
