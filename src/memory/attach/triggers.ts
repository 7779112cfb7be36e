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

interface Waiting {
  readonly turns: number;
  /** Stops the clock, and answers the session; `undefined` when it was learned from. */
  readonly take: () => SessionToLearn | undefined;
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

  /** @param key Names the session among those of all tenants. Never rejects. */
  async turnEnded(key: string, session: SessionToLearn): Promise<void> {
    const { everyTurns, onIdleMs } = this.#when;
    const turns = turnsIn(session.messages);
    const before = this.#waiting.get(key);
    before?.take();
    const rounds = (count: number) => Math.floor(count / everyTurns);
    const isDue = rounds(turns) > rounds(before?.turns ?? turns - 1);
    this.#waiting.delete(key);
    this.#waiting.set(key, { turns, take: this.#timer(isDue || onIdleMs === false ? undefined : onIdleMs, session) });
    const [oldest] = this.#waiting.size > MOST_WAITING ? this.#waiting : [];
    if (oldest) {
      this.#waiting.delete(oldest[0]);
      const early = oldest[1].take();
      if (early) await this.#learn(early);
    }
    if (isDue) await this.#learn(session);
  }

  /** The application says that a session is over. */
  ended(key: string, session: SessionToLearn, wait: boolean): Promise<IngestResult> {
    this.#waiting.get(key)?.take();
    this.#waiting.delete(key);
    return ingest(this.#manager, session, wait);
  }

  #timer(ms: number | undefined, session: SessionToLearn): Waiting['take'] {
    if (ms === undefined) return () => undefined;
    let waiting: SessionToLearn | undefined = session;
    const timer = setTimeout(() => {
      waiting = undefined;
      void this.#learn(session);
    }, ms);
    timer.unref();
    return () => {
      clearTimeout(timer);
      const taken = waiting;
      waiting = undefined;
      return taken;
    };
  }

  async #learn(session: SessionToLearn): Promise<void> {
    try {
      await ingest(this.#manager, session, false);
    } catch (error) {
      logger.warn(
        `Session ${quote(session.sessionId)} was not learned from; a later turn tries again. ${describeThrown(error)}`,
      );
    }
  }
}

function ingest(
  manager: MemoryManager,
  { scope, sessionId, snapshotId, messages }: SessionToLearn,
  wait: boolean,
): Promise<IngestResult> {
  const source = { id: sessionId, sessionId, ...(snapshotId !== undefined && { snapshotId }) };
  return manager.ingest({ scope, source, messages, wait });
}

function turnsIn(messages: readonly MessageData[]): number {
  let turns = 0;
  for (const { role } of messages) if (role === 'user') turns++;
  return turns;
}
