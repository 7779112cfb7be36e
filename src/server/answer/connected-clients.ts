/**
 * Counts the clients that read the stream of a turn, and aborts the turn when none was connected for the grace time.
 */
export class ConnectedClients {
  readonly #graceMs: number;
  readonly #abortTurn: () => void;
  #count = 0;
  #isOver = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param graceMs How long the turn continues without a client. With `Infinity` it is never aborted. */
  constructor(graceMs: number, abortTurn: () => void) {
    this.#graceMs = graceMs;
    this.#abortTurn = abortTurn;
  }

  /** Adds a client. The returned function removes it; calls after the first do nothing. */
  add(): () => void {
    this.#count += 1;
    clearTimeout(this.#timer);
    let isConnected = true;
    return () => {
      if (isConnected) {
        isConnected = false;
        this.#count -= 1;
        this.#watch();
      }
    };
  }

  /** Called when the turn has ended. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /** Aborts the turn at once. */
  abort(): void {
    if (!this.#isOver) {
      this.end();
      this.#abortTurn();
    }
  }

  #watch(): void {
    if (this.#count === 0 && !this.#isOver && this.#graceMs !== Infinity) {
      this.#timer = setTimeout(() => this.abort(), this.#graceMs);
    }
  }
}
