/** The time of a process, replaceable in tests. */
export interface SearchClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` after so many ms; answers what cancels it. */
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

/** The time that a search may take. */
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

  /** What `work` answers, or `LATE`. The work itself goes on; that it fails later is of no account. */
  async wait<T>(work: Promise<T>): Promise<T | typeof LATE> {
    work.catch(() => {});
    // Work that has ended counts, though the deadline passed in the same moment.
    return Promise.race([work, this.#passing]);
  }

  /** As `wait`, but for half of what is left at most: for work without which there is an answer, too, if there is time to find it. */
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
    // A reason that is made once: the default one takes a stack trace, for each search.
    this.#ended.abort(ENDED);
  }
}
