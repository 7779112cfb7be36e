import { getAsyncContext } from '@genkit-ai/core';
import { failedPrecondition, quote } from '../../errors.ts';
import type { KeyQueue } from '../../store/parts/key-queue.ts';
import type { AbortScope } from '../abort-scope.ts';

const RUNNING_CALL = 'genkitx-agents.queued-call';

/** A call of an agent for whose end later calls on its session wait. */
export class QueuedCall {
  readonly #turns: KeyQueue;
  readonly #sessionId: string;
  /** The call whose turn makes this one, if it has not ended. */
  readonly #outer: QueuedCall | undefined;
  #letNext: () => void = () => {};
  #isOver = false;

  constructor(turns: KeyQueue, sessionId: string) {
    this.#turns = turns;
    this.#sessionId = sessionId;
    let outer = getAsyncContext().getStore<QueuedCall>(RUNNING_CALL);
    while (outer && outer.#isOver) outer = outer.#outer;
    this.#outer = outer;
  }

  /**
   * Waits until the session's earlier calls in this process have ended, those in the background too. An abort ends the wait.
   *
   * @throws `FAILED_PRECONDITION` if one of them makes this call, directly or through other agents: it would wait for itself.
   */
  async begin(scope: AbortScope): Promise<void> {
    for (let outer = this.#outer; outer; outer = outer.#outer) {
      if (outer.#turns !== this.#turns || outer.#sessionId !== this.#sessionId) continue;
      throw failedPrecondition(
        `A turn of session ${quote(this.#sessionId)} can't run another turn of it, which would wait for the first to end ` +
          `(onConflict: 'queue'). Use another sessionId, or a snapshotId to branch.`,
      );
    }
    const isNext = new Promise<void>((resolve) => {
      void this.#turns.run(this.#sessionId, async () => {
        if (scope.aborted) return;
        const isOver = new Promise<void>((end) => (this.#letNext = end));
        resolve();
        await isOver;
      });
    });
    await scope.race(() => isNext);
  }

  /** Calls that `work` makes know that this one waits for them. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return getAsyncContext().run(RUNNING_CALL, this, work);
  }

  /** Lets the next call begin, when `work` has ended if there is any. */
  async endAfter(work: Promise<unknown> | undefined): Promise<void> {
    await Promise.allSettled([work]);
    this.#isOver = true;
    this.#letNext();
  }
}
