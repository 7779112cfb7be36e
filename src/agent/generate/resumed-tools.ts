import type { MessageData, Part, ResumeOptions, ToolRequestPart } from 'genkit/beta';
import { keyOf } from './resume.ts';

type Outcome = { interrupt: unknown } | { output: unknown };

/**
 * What the tools did that a `resume` restarts. Genkit's `generate` can't express that one of them interrupts again, and fails; what is known
 * here makes an interrupted reply of it, in which nothing that was done is lost.
 */
export class ResumedTools {
  readonly #outcomes = new Map<string, Outcome>();
  #isOver = false;
  #hasFailed = false;

  /** The restarted tools are done; what runs from here on the model has asked for. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Middleware, around each tool. */
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

  /** The model is called: the tools that were restarted are done. */
  end(): void {
    this.#isOver = true;
  }

  /** The reply that waits again, in the place of the one that waited; `undefined` when no tool interrupted. */
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
