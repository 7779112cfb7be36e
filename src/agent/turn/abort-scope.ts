/** Tells an abort from every other reason to stop. Never leaves this folder. */
export class Aborted extends Error {
  constructor() {
    super('The turn was aborted.');
    this.name = 'Aborted';
  }
}

/**
 * The abort signal of one call of an agent: it fires with the caller's, and when the runtime itself stops the call. `release` lets go of the
 * caller's signal, which may live much longer, or has no say any more.
 */
export class AbortScope {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #follow = (): void => this.abort();
  /** Each gives up a race under way. Listeners on the signal, one to add and remove for each race, would be a good part of a short turn. */
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
   * What `work` answers, unless the scope is aborted first: then it throws {@link Aborted}, whether or not the work heeds the signal. What
   * becomes of the work afterwards is nobody's concern.
   *
   * @param patience Between the abort and giving up; none unless told.
   */
  race<T>(work: () => Promise<T>, patience?: () => Promise<void>): Promise<T> {
    // Every turn passes here several times: one promise, and nothing that waits for another.
    return new Promise<T>((resolve, reject) => {
      const { signal } = this;
      const giveUp = () => {
        if (patience) void patience().then(() => reject(new Aborted()));
        else reject(new Aborted());
      };
      if (signal.aborted) return reject(new Aborted());
      this.#races.add(giveUp);
      const settle = (end: () => void) => {
        this.#races.delete(giveUp);
        // Work that heeds the signal may well end in peace, and first.
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
