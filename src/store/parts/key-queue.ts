/**
 * Runs tasks of the same key one after the other, in the order in which they came; tasks of different keys do not wait for each other.
 * Holds nothing for a key that has no task.
 */
export class KeyQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** Keys with a task that has not ended. */
  get size(): number {
    return this.#tails.size;
  }

  /** Runs `task` when all earlier tasks of `key` have resolved or rejected. A task that calls it for its own key waits forever. */
  run<T>(key: string, task: () => Promise<T> | T): Promise<T> {
    const result = (this.#tails.get(key) ?? IDLE).then(task);
    const end = (): void => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key);
    };
    // Never rejects: a task that failed must not fail the next one.
    const tail = result.then(end, end);
    this.#tails.set(key, tail);
    return result;
  }
}

const IDLE: Promise<unknown> = Promise.resolve();
