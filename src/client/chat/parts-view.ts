import { textOf, toolRequestsOf } from './parts.ts';
import type { AgentChunk, Part, ToolRequestPart } from '../types.ts';

/** The accessors that a chunk and a response have in common. */
export class PartsView<Data> {
  readonly #parts: readonly Part[];

  constructor(parts: readonly Part[] = []) {
    this.#parts = parts;
  }

  /** The text of all text parts, joined. */
  get text(): string {
    return textOf(this.#parts);
  }

  /** The text of all reasoning parts, joined. */
  get reasoning(): string {
    return this.#parts.map((part) => part.reasoning ?? '').join('');
  }

  /** The first medium. */
  get media(): AgentChunk['media'] {
    return this.#parts.find((part) => part.media)?.media ?? null;
  }

  /** The first structured value. */
  get data(): Data {
    return (this.#parts.find((part) => part.data !== undefined)?.data ?? null) as Data;
  }

  get toolRequests(): ToolRequestPart[] {
    return toolRequestsOf(this.#parts);
  }
}
