import { getAsyncContext } from '@genkit-ai/core';
import { failedPrecondition, quote } from '../../errors.ts';
import type { KeyQueue } from '../../store/parts/key-queue.ts';
import type { AbortScope } from '../abort-scope.ts';

const RUNNING_CALL = 'genkitx-agents.queued-call';

/** A call of an agent. Later calls on its session wait until it has ended. */
export class QueuedCall {
  readonly #turns: KeyQueue;
  readonly #sessionId: string;
  /** The call whose turn makes this one, if it has not ended. */
  readonly #outer: QueuedCall | undefined;
  #startNext: () => void = () => {};
  #isOver = false;

  constructor(turns: KeyQueue, sessionId: string) {
    this.#turns = turns;
    this.#sessionId = sessionId;
    let outer = getAsyncContext().getStore<QueuedCall>(RUNNING_CALL);
    while (outer && outer.#isOver) outer = outer.#outer;
    this.#outer = outer;
  }

  /**
   * Waits until the session's earlier calls in this process have ended, including background runs. An abort ends the wait.
   *
   * @throws `FAILED_PRECONDITION` if one of them makes this call, directly or through other agents: it would wait for itself.
   */
  async begin(scope: AbortScope): Promise<void> {
    for (let outer = this.#outer; outer; outer = outer.#outer) {
      if (outer.#turns !== this.#turns || outer.#sessionId !== this.#sessionId) continue;
      throw failedPrecondition(
        `A turn of session ${quote(this.#sessionId)} can't run another turn of the same session: that turn would wait for this one ` +
          `to end (onConflict: 'queue'). Use another sessionId, or a snapshotId to branch.`,
      );
    }
    const isNext = new Promise<void>((resolve) => {
      void this.#turns.run(this.#sessionId, async () => {
        if (scope.aborted) return;
        const isOver = new Promise<void>((end) => (this.#startNext = end));
        resolve();
        await isOver;
      });
    });
    await scope.race(() => isNext);
  }

  /** Runs `work`. Calls that it makes see that this call is running. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return getAsyncContext().run(RUNNING_CALL, this, work);
  }

  /** Waits for `work`, if there is any, then lets the next call begin. */
  async endAfter(work: Promise<unknown> | undefined): Promise<void> {
    await Promise.allSettled([work]);
    this.#isOver = true;
    this.#startNext();
  }
}
