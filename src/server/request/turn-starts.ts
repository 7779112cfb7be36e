import { setImmediate as nextIteration } from 'node:timers/promises';

/**
 * Lets turns begin in the order of their requests, one in each iteration of the event loop.
 *
 * Node accepts one connection in each iteration. If many turns began in one iteration, it would be long, and a waiting connection would be
 * accepted only after many turns of earlier callers.
 */
export class TurnStarts {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when the caller's turn may begin. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => nextIteration());
    return this.#last;
  }
}
