/** A report that is further from the estimate is no count of the same text: some providers leave out what they had in their cache. */
const LEAST_FACTOR = 0.4;
const GREATEST_FACTOR = 6;

/** How much of the past is forgotten with each report. */
const DECAY = 0.8;

/** The factor in use stays while the true one is this near: each change moves the cuts of all sessions, and costs the providers' caches. */
const TOLERANCE = 0.05;

/** What a model taught: the ratio of its own counts to our estimates, and the length that it refused. */
interface Lesson {
  estimated: number;
  counted: number;
  factor: number;
  limit: number;
}

/** Corrects estimates by what the models report. */
export class Calibration {
  readonly #lessons = new Map<string, Lesson>();

  /** Multiply an estimate by it. */
  factorOf(model: string | undefined): number {
    return this.#lessons.get(model ?? '')?.factor ?? 1;
  }

  /** Tokens that the model is known to accept at most. Default: `Infinity`. */
  limitOf(model: string | undefined): number {
    return this.#lessons.get(model ?? '')?.limit ?? Infinity;
  }

  /**
   * @param estimated Estimated tokens of a request, before any correction.
   * @param counted Its input tokens, as the model reports them.
   */
  learn(model: string | undefined, estimated: number, counted: number | undefined): void {
    if (counted === undefined || !Number.isFinite(counted) || estimated <= 0) return;
    const ratio = counted / estimated;
    if (ratio < LEAST_FACTOR || ratio > GREATEST_FACTOR) return;
    const lesson = this.#lessonOf(model);
    lesson.estimated = lesson.estimated * DECAY + estimated;
    lesson.counted = lesson.counted * DECAY + counted;
    const factor = lesson.counted / lesson.estimated;
    if (Math.abs(factor / lesson.factor - 1) > TOLERANCE) lesson.factor = factor;
  }

  /** The model refused a request of so many corrected tokens. Later requests stay well below it. */
  refuse(model: string | undefined, tokens: number): void {
    const lesson = this.#lessonOf(model);
    lesson.limit = Math.min(lesson.limit, Math.floor(tokens * 0.75));
  }

  #lessonOf(model: string | undefined): Lesson {
    const name = model ?? '';
    const lesson = this.#lessons.get(name) ?? { estimated: 0, counted: 0, factor: 1, limit: Infinity };
    this.#lessons.set(name, lesson);
    return lesson;
  }
}
