import type { GenerateRequest, MessageData, Part, ToolRequestPart, ToolResponsePart } from 'genkit';
import type { GenerateResponseChunkData } from 'genkit/model';
import { draftMessages, type Session } from '../session/session.ts';
import { conversationOf, toPlainMessage } from './prompt-history.ts';
import { keyOf } from './resume.ts';

/** Marks the beginning of a reply whose turn was stopped in the middle of it. */
const PARTIAL = 'partial';

/** What a running `generate` has come to: the tools that ran, and the words of the model so far. */
export class TurnProgress<State> {
  readonly #session: Session<State>;
  #request: readonly MessageData[] | undefined;
  #words: Part[] = [];
  /** The tool requests that are worked on, and what those answered that are done. */
  #asked: MessageData | undefined;
  readonly #answers = new Map<string, Part>();

  constructor(session: Session<State>) {
    this.#session = session;
  }

  /** What the model is asked has in it all that the turn did before. */
  onModelCall({ messages }: GenerateRequest): void {
    this.#request = messages;
    this.#words = [];
    this.#asked = undefined;
    draftMessages(this.#session, () => this.#messages(messages));
  }

  onChunk({ role, content }: GenerateResponseChunkData): void {
    // What the tools answered is part of the next request.
    if (this.#request && (role ?? 'model') === 'model') this.#words.push(...content);
  }

  /** The model has answered; what it asks the tools is worked on from here on. */
  onReply(reply: MessageData | undefined): void {
    this.#asked = reply?.content.some((part) => part.toolRequest) ? reply : undefined;
    this.#answers.clear();
  }

  /** What waited for the caller is worked on, instead of what a model just said. */
  onRestart(history: readonly MessageData[], answers: readonly ToolResponsePart[]): void {
    const waiting = history.at(-1)!;
    this.onReply(waiting);
    for (const part of answers) this.#answers.set(keyOf(part.toolResponse), part);
    draftMessages(this.#session, () => [...history.slice(0, -1), ...this.#askedAndAnswered(waiting)]);
  }

  onToolDone({ toolRequest: { name, ref } }: ToolRequestPart, output: unknown): void {
    this.#answers.set(keyOf({ name, ref }), { toolResponse: { name, ...(ref !== undefined && { ref }), output } });
  }

  #messages(request: readonly MessageData[]): MessageData[] {
    const messages = conversationOf(request);
    if (this.#asked && this.#answers.size > 0) return [...messages, ...this.#askedAndAnswered(this.#asked)];
    // A tool request that nobody answered would wait for an answer for ever.
    const said = this.#asked?.content ?? this.#words;
    const content = joinTexts(said.filter((part) => part.toolRequest === undefined));
    return content.length === 0
      ? messages
      : [...messages, toPlainMessage({ role: 'model', content, metadata: { [PARTIAL]: true } })];
  }

  /** What was said and asked, without the tools that are not done, and what those that are have answered: to run on from here runs none twice. */
  #askedAndAnswered({ role, content, metadata }: MessageData): MessageData[] {
    const answers: Part[] = [];
    const kept = content.flatMap((part): Part[] => {
      if (!part.toolRequest) return [part];
      const answer = this.#answers.get(keyOf(part.toolRequest));
      if (!answer) return [];
      answers.push(answer);
      return [{ toolRequest: part.toolRequest }];
    });
    const said = kept.length > 0 ? [toPlainMessage({ role, content: kept, ...(metadata && { metadata }) })] : [];
    return answers.length > 0 ? [...said, toPlainMessage({ role: 'tool', content: answers })] : said;
  }
}

/** Whether the message holds tool requests that its session's caller has to answer. */
export function isWaiting(message: MessageData | undefined): boolean {
  return message?.role === 'model' && message.content.some((part) => part.toolRequest !== undefined);
}

/** Whether the message is the beginning of a reply that was stopped. */
export function isPartial({ role, metadata }: MessageData): boolean {
  return role === 'model' && metadata?.[PARTIAL] === true;
}

/** One text where the stream had many. */
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
