/** The time of a process, replaceable in tests. */
export interface SearchClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` after `ms` milliseconds. Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void;
}

export const SYSTEM_CLOCK: SearchClock = {
  now: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

export const LATE = Symbol('late');
const ENDED = new DOMException('The search has ended.', 'AbortError');

/** The deadline of a search. */
export class Deadline {
  /** Aborts at the deadline, when the caller aborts, and at the end of the search. */
  readonly signal: AbortSignal;
  readonly #ended = new AbortController();
  readonly #clock: SearchClock;
  readonly #end: number;
  readonly #cancel: () => void;
  readonly #passing: Promise<typeof LATE>;

  constructor(clock: SearchClock, ms: number, signal: AbortSignal | undefined) {
    this.#clock = clock;
    this.#end = clock.now() + ms;
    this.signal = signal ? AbortSignal.any([signal, this.#ended.signal]) : this.#ended.signal;
    let pass!: (late: typeof LATE) => void;
    this.#passing = new Promise((resolve) => (pass = resolve));
    this.#cancel = clock.after(ms, () => this.end());
    if (this.signal.aborted) pass(LATE);
    else this.signal.addEventListener('abort', () => pass(LATE), { once: true });
  }

  /** The result of `work`, or `LATE` at the deadline. The work then continues; its later failure is ignored. */
  async wait<T>(work: Promise<T>): Promise<T | typeof LATE> {
    work.catch(() => {});
    // `work` first: if both have ended, its result counts.
    return Promise.race([work, this.#passing]);
  }

  /** As `wait`, but for at most half of the time left: for work that the search can do without, if time is left for the search itself. */
  async waitHalf<T>(work: Promise<T>): Promise<T | typeof LATE> {
    let cancel!: () => void;
    const half = new Promise<typeof LATE>((resolve) => {
      cancel = this.#clock.after((this.#end - this.#clock.now()) / 2, () => resolve(LATE));
    });
    return this.wait(Promise.race([work, half])).finally(cancel);
  }

  /** Releases the timer. */
  end(): void {
    this.#cancel();
    // One reason for all searches: the default one would take a stack trace for each.
    this.#ended.abort(ENDED);
  }
}
