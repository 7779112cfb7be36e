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

/** In place of a result: the deadline came first. */
export const LATE = Symbol('late');
const ENDED = new DOMException('The search has ended.', 'AbortError');

/** The deadline of a search. It is over when its time has passed, when the caller aborts, or when `end` is called. */
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

  /** Aborts when the deadline is over. Made when it is first asked for: most searches need none. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isOver) this.#controller.abort(ENDED);
    return this.#controller.signal;
  }

  /** The result of `work`, or `LATE` when the deadline is over. The work then continues; its later failure is ignored. */
  wait<T>(work: Promise<T>): Promise<T | typeof LATE> {
    return new Promise((resolve, reject) => {
      work.then(resolve, reject);
      // In a microtask: if the work has ended by now, its result comes before `LATE` and counts.
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

  /** Ends the deadline now: aborts `signal`, resolves what waits with `LATE`, and cancels the timer. */
  readonly end = (): void => {
    this.#isOver = true;
    this.#cancelTimer();
    this.#caller?.removeEventListener('abort', this.end);
    // One reason for all searches: the default one would take a stack trace for each.
    this.#controller?.abort(ENDED);
    for (const late of this.#waiting.splice(0)) late();
  };
}
