import type { MessageData, Part, ResumeOptions, ToolRequestPart } from 'genkit/beta';
import { keyOf } from './resume.ts';

type Outcome = { interrupt: unknown } | { output: unknown };

/**
 * Records the results of the tools that a `resume` restarts. Genkit's `generate` fails when one of them interrupts again; from these results an
 * interrupted reply is built, in which no tool result is lost.
 */
export class ResumedTools {
  readonly #outcomes = new Map<string, Outcome>();
  #isOver = false;
  #hasFailed = false;

  /** True once the restarted tools have ended: later tools were requested by the model. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Middleware that wraps each tool. */
  async around<R extends { toolResponse: { output?: unknown } } | undefined>(
    request: ToolRequestPart,
    next: () => Promise<R>,
  ): Promise<R> {
    if (this.#isOver) return next();
    const key = keyOf(request.toolRequest);
    try {
      const response = await next();
      this.#outcomes.set(key, { output: response?.toolResponse.output ?? null });
      return response;
    } catch (error) {
      const { name, metadata } = (error ?? {}) as { name?: unknown; metadata?: unknown };
      if (name === 'ToolInterruptError') this.#outcomes.set(key, { interrupt: metadata ?? true });
      else this.#hasFailed = true;
      throw error;
    }
  }

  /** Called at the first model call, when the restarted tools have ended. */
  end(): void {
    this.#isOver = true;
  }

  /** The new interrupted reply, which replaces the one that waited; `undefined` when no tool interrupted. */
  interruptedReply(waiting: MessageData | undefined, { respond }: ResumeOptions): MessageData | undefined {
    const interrupts = [...this.#outcomes.values()].some((outcome) => 'interrupt' in outcome);
    if (!waiting || this.#isOver || this.#hasFailed || !interrupts) return undefined;
    const responses = new Map(
      [respond ?? []].flat().map(({ toolResponse }) => [keyOf(toolResponse), toolResponse.output]),
    );
    const content = waiting.content.map((part): Part => {
      if (!part.toolRequest) return part;
      const key = keyOf(part.toolRequest);
      const outcome = this.#outcomes.get(key);
      const { interrupt: _before, ...metadata } = part.metadata ?? {};
      if (outcome && 'interrupt' in outcome)
        return { ...part, metadata: { ...metadata, interrupt: outcome.interrupt } };
      if (outcome) return { ...part, metadata: { ...metadata, pendingOutput: outcome.output } };
      return responses.has(key) ? { ...part, metadata: { ...metadata, pendingOutput: responses.get(key) } } : part;
    });
    return { ...waiting, content };
  }
}
