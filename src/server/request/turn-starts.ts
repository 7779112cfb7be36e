/**
 * The order in which turns begin: that of their requests, one in each round of the event loop.
 *
 * Node accepts one connection in each round. Where many turns begin in one round, rounds are long, and a caller whose connection waits is
 * answered after many turns of those who came before.
 */
export class TurnStarts {
  #last: Promise<void> = Promise.resolve();

  /** Resolves when the caller's turn may begin. */
  next(): Promise<void> {
    this.#last = this.#last.then(nextRound);
    return this.#last;
  }
}

function nextRound(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
