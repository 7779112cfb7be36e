/** How long a call works before it lets other work of the process run. */
const LONGEST_STRETCH_MS = 5;

/** Interrupts a long call, so that it does not block the event loop: call `rest` between any two steps. */
export class Pace {
  #since = performance.now();

  /** A promise to await before the next step; `undefined` if no pause is needed. */
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
