import { parsePartialJson } from '../../json/partial.ts';
import { PartsView } from './parts-view.ts';
import type { AgentChunk, AgentStreamChunk, Artifact, PartialOutput } from '../types.ts';

/** A streamed chunk with its accessors. */
export class TurnChunk<State = unknown, O = unknown> extends PartsView<unknown> implements AgentChunk<State, O> {
  readonly raw: AgentStreamChunk;
  /** The turn's text up to and including this chunk. */
  readonly accumulatedText: string;
  /** The whole custom state after this chunk; only on a chunk that changes it. */
  readonly custom?: State;

  readonly #replyText: string;

  /** @param before The text of the earlier chunks: of the turn, and of the model's current message. */
  constructor(raw: AgentStreamChunk, before: { turn: string; reply: string }, custom?: State) {
    super(raw.modelChunk?.content);
    this.raw = raw;
    this.accumulatedText = before.turn + this.text;
    this.#replyText = before.reply + this.text;
    this.custom = custom;
  }

  /** The text of the model's current message up to and including this chunk. */
  get replyText(): string {
    return this.#replyText;
  }

  get output(): PartialOutput<O> | null {
    return (this.data ?? parsePartialJson(this.#replyText) ?? null) as PartialOutput<O> | null;
  }

  get artifact(): Artifact | undefined {
    return this.raw.artifact;
  }
}
