/**
 * Counts the clients that read a turn's stream. When none has been connected for the grace time, the turn is aborted.
 */
export class Presence {
  readonly #graceMs: number;
  readonly #giveUp: () => void;
  #present = 0;
  #isOver = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param graceMs How long the turn continues without a client. With `Infinity` it is never aborted. */
  constructor(graceMs: number, giveUp: () => void) {
    this.#graceMs = graceMs;
    this.#giveUp = giveUp;
  }

  /** Adds a client. The returned function removes it; calls after the first do nothing. */
  join(): () => void {
    this.#present += 1;
    clearTimeout(this.#timer);
    let isHere = true;
    return () => {
      if (isHere) {
        isHere = false;
        this.#present -= 1;
        this.#watch();
      }
    };
  }

  /** The turn has ended, so the count is not needed any more. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /** Aborts the turn at once. */
  abort(): void {
    if (!this.#isOver) {
      this.end();
      this.#giveUp();
    }
  }

  #watch(): void {
    if (this.#present === 0 && !this.#isOver && this.#graceMs !== Infinity) {
      this.#timer = setTimeout(() => this.abort(), this.#graceMs);
    }
  }
}
