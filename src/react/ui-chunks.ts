import type { AgentChunk, AgentFinishReason, AgentResponse, Part } from '../client/types.ts';
import {
  newCallId,
  openCall,
  toolPartsOf,
  type ChatMessage,
  type ReplyMetadata,
  type ToolCall,
  type WaitsFor,
} from './ui-messages.ts';

/** A piece of a reply, in the form of `useChat`. */
export type ChatChunk =
  | { type: 'start'; messageId?: string; messageMetadata?: unknown }
  | { type: 'start-step' | 'finish-step' }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta'; id: string; delta: string }
  | { type: 'file'; url: string; mediaType: string }
  | { type: 'tool-input-available'; toolCallId: string; toolName: string; input: unknown }
  | { type: 'tool-approval-request'; toolCallId: string; approvalId: string; approvalDescriptor?: unknown }
  | { type: 'tool-output-available'; toolCallId: string; output: unknown }
  | { type: 'tool-output-denied'; toolCallId: string }
  | { type: `data-${string}`; id?: string; data: unknown }
  | { type: 'finish'; finishReason: ChatFinishReason; messageMetadata: ReplyMetadata };

type ChatFinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';

const FINISH_REASONS: Partial<Record<AgentFinishReason, ChatFinishReason>> = {
  stop: 'stop',
  length: 'length',
  blocked: 'content-filter',
  interrupted: 'tool-calls',
};

/** Writes a turn as chunks of `useChat`. */
export class ChatChunks {
  readonly #write: (chunk: ChatChunk) => void;
  readonly #calls: ToolCall[] = [];
  /** The ids of the calls that the user has answered in place of the tool. */
  readonly #answered = new Set<string>();
  /** The text that is being streamed. */
  #open: { kind: 'text' | 'reasoning'; id: string } | undefined;
  #count = 0;
  /** `answered`: its tools have answered, so more output of the model begins another step. */
  #step: 'none' | 'open' | 'answered' = 'none';

  /**
   * @param continued The reply that the turn continues. Default: a new one.
   * @param waiting The ids of its calls that waited for the user.
   */
  constructor(write: (chunk: ChatChunk) => void, continued?: ChatMessage, waiting: readonly string[] = []) {
    this.#write = write;
    for (const { toolCallId: id, name, state } of continued ? toolPartsOf(continued) : []) {
      const ref = id.replace(/~\d+$/, '');
      const isOpen = waiting.includes(id) || state === 'input-available' || state === 'approval-requested';
      this.#calls.push({ id, name, ref: ref === name ? undefined : ref, isOpen });
    }
  }

  /** @param replay The reply that the turn continues, to write it again. */
  start(replay?: ChatMessage): void {
    this.#write({ type: 'start', ...(replay && { messageId: replay.id, messageMetadata: replay.metadata }) });
    for (const part of replay?.parts ?? []) this.#replay(part as Record<string, never>);
    this.#close();
  }

  chunk({ raw, custom }: AgentChunk): void {
    const { modelChunk, artifact } = raw;
    for (const part of modelChunk?.content ?? []) this.#part(part);
    if (artifact) this.#write({ type: 'data-artifact', id: artifact.name, data: artifact });
    if (custom !== undefined) this.#write({ type: 'data-state', id: 'state', data: custom });
  }

  /** Records that the user has answered the call in place of the tool. The agent's response to it is not shown as the tool's output. */
  answered(toolCallId: string, isDenied: boolean): void {
    this.#answered.add(toolCallId);
    if (isDenied) this.#write({ type: 'tool-output-denied', toolCallId });
  }

  end({ message, interrupts, finishReason, sessionId, snapshotId }: AgentResponse, waitsFor: WaitsFor): void {
    // A model that does not stream has no chunks.
    if (this.#step !== 'open') for (const part of message?.content ?? []) this.#part(part);
    for (const interrupt of interrupts) {
      this.#request(interrupt);
      const { id } = openCall(this.#calls, interrupt)!;
      if (waitsFor(interrupt) === 'output') continue;
      const approval = { toolCallId: id, approvalId: id, approvalDescriptor: interrupt.question };
      this.#write({ type: 'tool-approval-request', ...approval });
    }
    this.#close();
    if (this.#step !== 'none') this.#write({ type: 'finish-step' });
    const reason = FINISH_REASONS[finishReason] ?? 'other';
    this.#write({ type: 'finish', finishReason: reason, messageMetadata: { sessionId, snapshotId } });
  }

  #part({ text, reasoning, media, toolRequest, toolResponse, metadata }: Part): void {
    if (metadata?.['structuredOutput']) return;
    if (text) this.#delta('text', text);
    if (reasoning) this.#delta('reasoning', reasoning);
    if (media) {
      this.#begin();
      this.#write({ type: 'file', url: media.url, mediaType: media.contentType ?? 'application/octet-stream' });
    }
    if (toolRequest && !toolRequest.partial) this.#request(toolRequest);
    if (toolResponse) {
      // The model may not have streamed its request.
      this.#request(toolResponse);
      const call = openCall(this.#calls, toolResponse)!;
      call.isOpen = false;
      this.#step = 'answered';
      if (this.#answered.has(call.id)) return;
      this.#write({ type: 'tool-output-available', toolCallId: call.id, output: toolResponse.output ?? null });
    }
  }

  #delta(kind: 'text' | 'reasoning', delta: string): void {
    this.#begin();
    if (this.#open?.kind !== kind) {
      this.#close();
      this.#open = { kind, id: String(++this.#count) };
      this.#write({ type: `${kind}-start`, id: this.#open.id });
    }
    this.#write({ type: `${kind}-delta`, id: this.#open.id, delta });
  }

  /** Writes a request once, though a stream has it again with its question. */
  #request({ name, ref, input }: { name: string; ref?: string; input?: unknown }): void {
    if (openCall(this.#calls, { name, ref })) return;
    this.#begin();
    this.#close();
    const call = { id: newCallId({ name, ref }, this.#calls), name, ref, isOpen: true };
    this.#calls.push(call);
    this.#write({ type: 'tool-input-available', toolCallId: call.id, toolName: name, input: input ?? {} });
  }

  #begin(): void {
    if (this.#step === 'open') return;
    this.#close();
    if (this.#step === 'answered') this.#write({ type: 'finish-step' });
    this.#write({ type: 'start-step' });
    this.#step = 'open';
  }

  #close(): void {
    if (this.#open) this.#write({ type: `${this.#open.kind}-end`, id: this.#open.id });
    this.#open = undefined;
  }

  #replay(part: Record<string, unknown>): void {
    const { type, text, url, mediaType, toolCallId, input, state, output } = part;
    if (type === 'step-start') this.#write({ type: 'start-step' });
    if (type === 'text' || type === 'reasoning') {
      this.#close();
      this.#open = { kind: type, id: String(++this.#count) };
      this.#write({ type: `${type}-start`, id: this.#open.id });
      this.#write({ type: `${type}-delta`, id: this.#open.id, delta: String(text) });
    }
    if (type === 'file') this.#write({ type, url: String(url), mediaType: String(mediaType) });
    if (typeof toolCallId !== 'string') return;
    const toolName = this.#calls.find(({ id }) => id === toolCallId)!.name;
    this.#write({ type: 'tool-input-available', toolCallId, toolName, input });
    if (state === 'output-available') this.#write({ type: 'tool-output-available', toolCallId, output });
  }
}
