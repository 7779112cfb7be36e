/** How long a call works before it lets others of the process run. */
const LONGEST_STRETCH_MS = 5;

/** Keeps a long call from keeping the process to itself: call it between any two steps. */
export class Pace {
  #since = performance.now();

  /** `undefined`: go on; else wait for it. */
  rest(): Promise<void> | undefined {
    if (performance.now() - this.#since < LONGEST_STRETCH_MS) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#since = performance.now();
        resolve();
      });
    });
  }
}
