import type { MessageData, Part, ToolRequestPart, ToolResponsePart } from 'genkit';
import type { GenerateResponseChunkData } from 'genkit/model';
import { jsonEqual } from '../../json/value.ts';
import { draftMessages, type Session } from '../../session/session.ts';
import { toPlainMessage, type PlacedHistory } from './prompt-history.ts';
import { keyOf } from './resume.ts';

/** Marks a partial reply, whose turn was stopped before its end. */
const PARTIAL = 'partial';

/** The response of a tool, or of the caller in its place. */
interface Answer {
  part: ToolResponsePart;
  /** The input of the tool. */
  input?: unknown;
}

/** The progress of a running `generate`: the tools that ran, and the model's text so far. */
export class TurnProgress<State> {
  readonly #session: Session<State>;
  readonly #placed: PlacedHistory;
  #request: readonly MessageData[] | undefined;
  #streamed: Part[] = [];
  /** The final reply, without tool requests. */
  #reply: MessageData | undefined;
  /** The reply whose tool requests are running or done, and the responses so far. */
  #toolReply: MessageData | undefined;
  #answers: Answer[] = [];

  constructor(session: Session<State>, placed: PlacedHistory) {
    this.#session = session;
    this.#placed = placed;
  }

  /** The request contains all earlier steps of the turn. */
  onModelCall(messages: readonly MessageData[]): void {
    this.#request = messages;
    this.#streamed = [];
    this.#reply = undefined;
    this.#toolReply = undefined;
    draftMessages(this.#session, () => this.#messages(messages));
  }

  onChunk({ role, content }: GenerateResponseChunkData): void {
    // Tool responses are part of the next request.
    if (this.#request && (role ?? 'model') === 'model') this.#streamed.push(...content);
  }

  /** Records the model's reply, whose tool requests run next. */
  onReply(reply: MessageData | undefined): void {
    this.#toolReply = reply?.content.some((part) => part.toolRequest) ? reply : undefined;
    this.#reply = this.#toolReply ? undefined : reply;
    this.#answers = [];
  }

  /** The conversation with the model's final reply; `undefined` while the model or its tools run. */
  get ended(): MessageData[] | undefined {
    if (!this.#reply || !this.#request) return undefined;
    return [...this.#placed.conversationOf(this.#request), toPlainMessage(this.#reply)];
  }

  /** Like {@link onReply}, for the waiting tool requests of an earlier reply. */
  onRestart(history: readonly MessageData[], answers: readonly ToolResponsePart[]): void {
    const waiting = history.at(-1)!;
    this.onReply(waiting);
    this.#answers = answers.map((part) => ({ part }));
    draftMessages(this.#session, () => [...history.slice(0, -1), ...this.#answered(waiting)]);
  }

  onToolDone({ toolRequest: { name, ref, input } }: ToolRequestPart, response: ToolResponsePart | undefined): void {
    const toolResponse = { output: null, ...response?.toolResponse, name, ...(ref !== undefined && { ref }) };
    this.#answers.push({ part: { ...response, toolResponse }, input });
  }

  #messages(request: readonly MessageData[]): MessageData[] {
    const messages = this.#placed.conversationOf(request);
    if (this.#toolReply && this.#answers.length > 0) return [...messages, ...this.#answered(this.#toolReply)];
    // A tool request without a response would wait for an answer forever.
    const parts = this.#toolReply?.content ?? this.#streamed;
    const content = joinTexts(parts.filter((part) => part.toolRequest === undefined));
    return content.length === 0
      ? messages
      : [...messages, toPlainMessage({ role: 'model', content, metadata: { [PARTIAL]: true } })];
  }

  /** The reply without its open tool requests, and the responses of the others: continuing from here runs no tool twice. */
  #answered({ role, content, metadata }: MessageData): MessageData[] {
    const answerOf = pairUp(content, this.#answers);
    const answers: Part[] = [];
    const kept = content.flatMap((part): Part[] => {
      if (!part.toolRequest) return [part];
      const answer = answerOf.get(part);
      if (!answer) return [];
      answers.push(answer);
      // Keeps the metadata that the model attached to its requests, because the model expects it back.
      const { interrupt: _interrupt, pendingOutput: _pending, ...noted } = part.metadata ?? {};
      return [{ toolRequest: part.toolRequest, ...(Object.keys(noted).length > 0 && { metadata: noted }) }];
    });
    if (kept.length === 0) return [];
    if (answers.length === 0) {
      return [toPlainMessage({ role, content: kept, metadata: { ...metadata, [PARTIAL]: true } })];
    }
    const reply = toPlainMessage({ role, content: kept, ...(metadata && { metadata }) });
    return [reply, toPlainMessage({ role: 'tool', content: answers })];
  }
}

/** The response of each answered request. Requests of one tool without a ref are matched by their inputs, then by their order. */
function pairUp(content: readonly Part[], answers: readonly Answer[]): ReadonlyMap<Part, Part> {
  const answerOf = new Map<Part, Part>();
  const open = new Set(answers);
  for (const byInput of [true, false]) {
    for (const part of content) {
      if (!part.toolRequest || answerOf.has(part)) continue;
      const { input } = part.toolRequest;
      const key = keyOf(part.toolRequest);
      const answer = [...open].find(
        (each) => keyOf(each.part.toolResponse) === key && (!byInput || jsonEqual(each.input, input)),
      );
      if (!answer) continue;
      open.delete(answer);
      answerOf.set(part, answer.part);
    }
  }
  return answerOf;
}

/** Whether the message is a partial reply. */
export function isPartial({ role, metadata }: MessageData): boolean {
  return role === 'model' && metadata?.[PARTIAL] === true;
}

/** Joins the text parts of the stream into one. */
function joinTexts(parts: readonly Part[]): Part[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (isText(part) && last && isText(last)) joined[joined.length - 1] = { text: last.text + part.text };
    else joined.push(part);
  }
  return joined;
}

function isText(part: Part): part is Part & { text: string } {
  return typeof part.text === 'string' && part.metadata === undefined;
}
