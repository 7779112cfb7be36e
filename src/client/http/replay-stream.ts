/**
 * A stream with one writer and any number of readers, early or late. Every reader gets all of it from the beginning.
 * The writer never waits.
 */
export class ReplayStream<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  #end: { error?: unknown; failed: boolean } | undefined;
  /** Wakes the readers that wait for the next item. */
  #wake: (() => void) | undefined;
  #changed: Promise<void> | undefined;

  push(item: T): void {
    if (this.#end === undefined) {
      this.#items.push(item);
      this.#notify();
    }
  }

  close(): void {
    this.#end ??= { failed: false };
    this.#notify();
  }

  /** Ends the stream; its readers get the error after the items. */
  fail(error: unknown): void {
    this.#end ??= { failed: true, error };
    this.#notify();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (let next = 0; ; next++) {
      while (next >= this.#items.length) {
        if (this.#end?.failed) {
          throw this.#end.error;
        }
        if (this.#end) {
          return;
        }
        await this.#nextChange();
      }
      yield this.#items[next] as T;
    }
  }

  #nextChange(): Promise<void> {
    this.#changed ??= new Promise((resolve) => {
      this.#wake = resolve;
    });
    return this.#changed;
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = undefined;
    this.#changed = undefined;
  }
}
