/**
 * A stream with one writer and any number of readers, early or late. Every reader gets all items. The writer never waits.
 */
export class ReplayStream<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  /** Called by each reader after the last item; returns or throws. */
  #end: (() => void) | undefined;
  /** Wake the readers that wait for the next item. */
  #waiting: (() => void)[] = [];

  push(item: T): void {
    if (!this.#end) {
      this.#items.push(item);
      this.#notify();
    }
  }

  /** Ends the stream when `work` ends. If `work` fails, readers get its error after the items. */
  endWith(work: Promise<unknown>): void {
    work.then(
      () => this.#finish(() => {}),
      (error: unknown) =>
        this.#finish(() => {
          throw error;
        }),
    );
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (let next = 0; ; next++) {
      while (next >= this.#items.length) {
        if (this.#end) {
          return this.#end();
        }
        await new Promise<void>((resolve) => {
          this.#waiting.push(resolve);
        });
      }
      yield this.#items[next] as T;
    }
  }

  #finish(end: () => void): void {
    this.#end ??= end;
    this.#notify();
  }

  #notify(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
