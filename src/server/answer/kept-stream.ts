import type { ActionStreamInput } from 'genkit/beta';

/**
 * Writes the frames of a turn to the stream manager, in order, one write at a time. Frames that arrive during a write go together into the
 * next one, so a slow manager gets fewer writes. Never waits, never throws.
 */
export class KeptStream {
  readonly #input: ActionStreamInput<string, string>;
  readonly #maxWaitingChars: number;
  readonly #onLoss: (error: unknown) => void;
  #waiting = '';
  /** The frame that ends the stream. */
  #last: string | undefined;
  #isWriting = false;
  #isOver = false;

  /**
   * @param maxWaitingChars Maximum characters that wait for a write. With more, the stream is lost.
   * @param onLoss Called with the reason when the stream is lost. It is then closed as failed, because it must not continue with a gap.
   */
  constructor(input: ActionStreamInput<string, string>, maxWaitingChars: number, onLoss: (error: unknown) => void) {
    this.#input = input;
    this.#maxWaitingChars = maxWaitingChars;
    this.#onLoss = onLoss;
  }

  write(frame: string): void {
    if (this.#isOver || this.#last !== undefined) {
      return;
    }
    if (this.#waiting.length > this.#maxWaitingChars) {
      this.#lose(new Error(`The stream manager is more than ${this.#maxWaitingChars} characters behind.`));
      return;
    }
    this.#waiting += frame;
    this.#work();
  }

  /** Writes the last frame. Later frames are dropped. */
  end(frame: string): void {
    if (!this.#isOver) {
      this.#last ??= frame;
      this.#work();
    }
  }

  #work(): void {
    if (this.#isWriting || this.#isOver) {
      return;
    }
    this.#isWriting = true;
    this.#writeAll().catch((error: unknown) => this.#lose(error));
  }

  #lose(reason: unknown): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    this.#waiting = '';
    this.#onLoss(reason);
    this.#input.error(new Error('The stream could not be kept.')).catch(() => {});
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting !== '') {
      const frames = this.#waiting;
      this.#waiting = '';
      await this.#input.write(frames);
    }
    if (this.#last !== undefined) {
      await this.#input.done(this.#last);
      this.#isOver = true;
    }
    this.#isWriting = false;
  }
}
