import { setImmediate as nextRound } from 'node:timers/promises';

/**
 * Lets turns begin in the order of their requests, one in each round of the event loop.
 *
 * Node accepts one connection in each round. If many turns began in one round, rounds would be long, and a waiting connection would be
 * accepted only after many turns of earlier callers.
 */
export class TurnStarts {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when the caller's turn may begin. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => nextRound());
    return this.#last;
  }
}
