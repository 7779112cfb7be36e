import type { MessageData } from 'genkit';
import { logger } from 'genkit/logging';
import { describeThrown, quote } from '../../errors.ts';
import type { MemoryManager } from '../manager.ts';
import type { MemoryScope } from '../scopes.ts';
import type { IngestResult, MemoryTriggers } from '../types.ts';

/** Sessions that wait for their idle time in a process. The one that has waited longest is learned from when there are more. */
const MOST_WAITING = 1_000;

/** What is to be learned from. */
export interface SessionToLearn {
  readonly scope: MemoryScope;
  readonly sessionId: string;
  readonly snapshotId?: string | undefined;
  readonly messages: readonly MessageData[];
}

/** Reads a session when it is to be learned from; `undefined` when it is gone. */
export type ReadSession = () => Promise<SessionToLearn | undefined>;

interface Waiting {
  readonly turns: number;
  readonly timer: NodeJS.Timeout | undefined;
  readonly learn: () => Promise<void>;
}

/** Begins to learn from sessions when it is time. */
export class Triggers {
  readonly #manager: MemoryManager;
  readonly #when: Required<MemoryTriggers>;
  readonly #waiting = new Map<string, Waiting>();

  constructor(manager: MemoryManager, when: Required<MemoryTriggers>) {
    this.#manager = manager;
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
    const isDue = rounds(turns) > rounds(this.#stop(key)?.turns ?? turns - 1);
    const learn = () => this.#learn(sessionId, later);
    const timer = isDue || onIdleMs === false ? undefined : setTimeout(() => void learn(), onIdleMs);
    timer?.unref();
    this.#waiting.set(key, { turns, timer, learn });
    const [oldest] = this.#waiting.size > MOST_WAITING ? this.#waiting.keys() : [];
    const early = oldest === undefined ? undefined : this.#stop(oldest);
    if (early?.timer) await early.learn();
    if (isDue) await this.#learn(sessionId, async () => session, later);
  }

  /** The application says that a session is over. */
  ended(key: string, session: SessionToLearn, later: ReadSession, wait: boolean): Promise<IngestResult> {
    this.#stop(key);
    return ingest(this.#manager, session, later, wait);
  }

  #stop(key: string): Waiting | undefined {
    const waiting = this.#waiting.get(key);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(key);
    return waiting;
  }

  async #learn(sessionId: string, read: ReadSession, later = read): Promise<void> {
    try {
      const session = await read();
      if (session) await ingest(this.#manager, session, later, false);
    } catch (error) {
      logger.warn(
        `Session ${quote(sessionId)} was not learned from; a later turn tries again. ${describeThrown(error)}`,
      );
    }
  }
}

function ingest(
  manager: MemoryManager,
  { scope, sessionId, snapshotId, messages }: SessionToLearn,
  later: ReadSession,
  wait: boolean,
): Promise<IngestResult> {
  const source = { id: sessionId, sessionId, ...(snapshotId !== undefined && { snapshotId }) };
  return manager.ingestWhile({ scope, source, messages, wait }, async () => (await later()) !== undefined);
}
