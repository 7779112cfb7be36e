/** How long a call works before it lets others of the process run. */
const LONGEST_STRETCH_MS = 5;

/** Interrupts a long call, so that it does not block the process: call `rest` between any two steps. */
export class Pace {
  #since = performance.now();

  /** The promise to wait for before the next step; `undefined`: go on at once. */
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
