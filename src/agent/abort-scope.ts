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
    this.#controller.abort(this.#caller.reason);
  }

  /**
   * What `work` answers, unless the scope is aborted first: then it throws {@link Aborted}, whether or not the work heeds the signal. What
   * becomes of the work afterwards is nobody's concern.
   *
   * @param patience Between the abort and giving up; none unless told.
   */
  async race<T>(work: () => Promise<T>, patience?: () => Promise<void>): Promise<T> {
    if (this.aborted) throw new Aborted();
    let giveUp: () => void = () => {};
    const aborted = new Promise<never>((_, reject) => {
      giveUp = () => void (patience?.() ?? Promise.resolve()).then(() => reject(new Aborted()));
      this.signal.addEventListener('abort', giveUp, { once: true });
    });
    try {
      const result = await Promise.race([work(), aborted]);
      // Work that heeds the signal may well end in peace, and first.
      if (this.aborted) throw new Aborted();
      return result;
    } catch (error) {
      throw this.aborted ? new Aborted() : error;
    } finally {
      this.signal.removeEventListener('abort', giveUp);
    }
  }

  release(): void {
    this.#caller.removeEventListener('abort', this.#follow);
  }
}
