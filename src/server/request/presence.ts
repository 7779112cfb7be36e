/**
 * Who is there for a turn. When the last one has left, and nobody has come for a while, the turn is given up.
 */
export class Presence {
  readonly #graceMs: number;
  readonly #giveUp: () => void;
  #present = 0;
  #isOver = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param graceMs `Infinity`: it is never given up. */
  constructor(graceMs: number, giveUp: () => void) {
    this.#graceMs = graceMs;
    this.#giveUp = giveUp;
  }

  /** Somebody comes. What it answers says that they leave; once, however often it is called. */
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

  /** The turn has ended: nobody has to be there any more. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /** Gives it up at once. */
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
