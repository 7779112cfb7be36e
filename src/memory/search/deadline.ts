/** The clock and the timers of a process. Tests replace them. */
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

/** Replaces a result if the deadline came first. */
export const LATE = Symbol('late');
const ENDED = new DOMException('The search has ended.', 'AbortError');

/** The deadline of a search. It ends when its time has passed, when the caller aborts, or when `end` is called. */
export class Deadline {
  readonly #clock: SearchClock;
  readonly #end: number;
  readonly #caller: AbortSignal | undefined;
  #cancelTimer: () => void = () => {};
  readonly #waiting: (() => void)[] = [];
  #controller: AbortController | undefined;
  #isOver: boolean;

  constructor(clock: SearchClock, ms: number, caller: AbortSignal | undefined) {
    this.#clock = clock;
    this.#end = clock.now() + ms;
    this.#caller = caller;
    this.#isOver = caller?.aborted ?? false;
    this.#cancelTimer = clock.after(ms, this.end);
    caller?.addEventListener('abort', this.end, { once: true });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Aborts when the deadline ends. Created on first use, because most searches do not need it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isOver) this.#controller.abort(ENDED);
    return this.#controller.signal;
  }

  /** Returns the result of `work`, or `LATE` if the deadline ends first. The work then continues; its later failure is ignored. */
  wait<T>(work: Promise<T>): Promise<T | typeof LATE> {
    return new Promise((resolve, reject) => {
      work.then(resolve, reject);
      // Resolves in a microtask, so that the result of work that has just ended comes before `LATE`.
      const late = (): void => queueMicrotask(() => resolve(LATE));
      if (this.#isOver) late();
      else this.#waiting.push(late);
    });
  }

  /** Like `wait`, but for at most half of the time that is left. For optional steps, so that time remains for the search itself. */
  async waitHalf<T>(work: Promise<T>): Promise<T | typeof LATE> {
    let cancel!: () => void;
    const half = new Promise<typeof LATE>((resolve) => {
      cancel = this.#clock.after((this.#end - this.#clock.now()) / 2, () => resolve(LATE));
    });
    return this.wait(Promise.race([work, half])).finally(cancel);
  }

  /** Ends the deadline now: aborts `signal`, resolves pending waits with `LATE`, and cancels the timer. */
  readonly end = (): void => {
    this.#isOver = true;
    this.#cancelTimer();
    this.#caller?.removeEventListener('abort', this.end);
    // All searches share one reason, because the default reason would record a stack trace for each search.
    this.#controller?.abort(ENDED);
    for (const late of this.#waiting.splice(0)) late();
  };
}
