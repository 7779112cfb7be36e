/**
 * Runs the tasks of a key one after the other, in the order of the calls. Tasks of different keys do not wait for each other. Keeps no data
 * of a key without tasks.
 */
export class KeyQueue {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** The number of keys that have a task. */
  get size(): number {
    return this.#tails.size;
  }

  /** Runs `task` when all earlier tasks of `key` have ended. A task that calls this for its own key waits forever. */
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
