import { dataOf, mediaOf, reasoningOf, textOf, toolRequestsOf } from './parts.ts';
import type { AgentChunk, AgentStreamChunk, Artifact, Part, ToolRequestPart } from './types.ts';

/** A streamed chunk with the accessors that a caller wants. */
export class TurnChunk<State = unknown> implements AgentChunk<State> {
  readonly raw: AgentStreamChunk;
  /** The turn's text up to and including this chunk. */
  readonly accumulatedText: string;
  /** The whole custom state after this chunk; only on a chunk that changes it. */
  readonly custom?: State;

  constructor(raw: AgentStreamChunk, textBefore: string, custom?: State) {
    this.raw = raw;
    this.accumulatedText = textBefore + this.text;
    this.custom = custom;
  }

  get text(): string {
    return textOf(this.#parts);
  }

  get reasoning(): string {
    return reasoningOf(this.#parts);
  }

  get toolRequests(): ToolRequestPart[] {
    return toolRequestsOf(this.#parts);
  }

  get data(): unknown {
    return dataOf(this.#parts);
  }

  get media(): AgentChunk['media'] {
    return mediaOf(this.#parts);
  }

  get artifact(): Artifact | undefined {
    return this.raw.artifact;
  }

  get #parts(): Part[] | undefined {
    return this.raw.modelChunk?.content;
  }
}
