/** A report outside these factors of the estimate is ignored: some providers do not count tokens from their cache. */
const LEAST_FACTOR = 0.4;
const GREATEST_FACTOR = 6;

/** Each new report multiplies the weight of the earlier ones by this. */
const DECAY = 0.8;

/** The factor in use stays while the measured one is this near: a change moves the cuts of all sessions, so providers' caches miss. */
const TOLERANCE = 0.05;

/** Figures of a model: our estimates and its own counts, the factor between them, and a limit from the lengths that it refused. */
interface Lesson {
  estimated: number;
  counted: number;
  factor: number;
  limit: number;
}

/** Corrects estimates by what the models report. */
export class Calibration {
  readonly #lessons = new Map<string, Lesson>();

  /** The factor to multiply estimates by. */
  factorOf(model: string | undefined): number {
    return this.#lessons.get(model ?? '')?.factor ?? 1;
  }

  /** The most tokens to send to the model, after its refusals. Default: `Infinity`. */
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

  /** Notes that the model refused a request of this many corrected tokens. The limit becomes at most three quarters of them. */
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
