/** Distinguishes an abort from every other reason to stop. Not used outside of `src/agent`. */
export class Aborted extends Error {
  constructor() {
    super('The turn was aborted.');
    this.name = 'Aborted';
  }
}

/**
 * The abort signal of one call of an agent. It is aborted with the caller's signal, and when the runtime stops the call. `release` removes the
 * listener from the caller's signal, which may outlive the call or must no longer stop it.
 */
export class AbortScope {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #follow = (): void => this.abort();
  /** Reject functions of the running races. A listener on the signal for each race would be a large part of the cost of a short turn. */
  readonly #races = new Set<() => void>();

  constructor(caller: AbortSignal) {
    this.#caller = caller;
    if (caller.aborted) this.abort();
    else caller.addEventListener('abort', this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#controller.signal.aborted;
  }

  abort(): void {
    if (this.aborted) return;
    for (const giveUp of this.#races) giveUp();
    this.#controller.abort(this.#caller.reason);
  }

  /**
   * Returns the result of `work`. If the scope is aborted first, throws {@link Aborted}, whether or not the work observes the signal; the
   * result of the work is then ignored.
   *
   * @param grace Awaited between the abort and giving up. Default: none.
   */
  race<T>(work: () => Promise<T>, grace?: () => Promise<void>): Promise<T> {
    // Every turn races several times, so this creates a single promise.
    return new Promise<T>((resolve, reject) => {
      const { signal } = this;
      const giveUp = () => {
        if (grace) void grace().then(() => reject(new Aborted()));
        else reject(new Aborted());
      };
      if (signal.aborted) return reject(new Aborted());
      this.#races.add(giveUp);
      const settle = (end: () => void) => {
        this.#races.delete(giveUp);
        // Work that observes the signal may complete normally, and first.
        if (signal.aborted) reject(new Aborted());
        else end();
      };
      let working: Promise<T>;
      try {
        working = work();
      } catch (error) {
        return settle(() => reject(error));
      }
      working.then(
        (result) => settle(() => resolve(result)),
        (error: Error) => settle(() => reject(error)),
      );
    });
  }

  release(): void {
    this.#caller.removeEventListener('abort', this.#follow);
  }
}
