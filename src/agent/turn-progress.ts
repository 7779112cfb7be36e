import type { GenerateRequest, MessageData, Part } from 'genkit';
import type { GenerateResponseChunkData } from 'genkit/model';
import { draftMessages, type Session } from '../session/session.ts';
import { conversationOf, toPlainMessage } from './prompt-history.ts';

/** Marks the beginning of a reply whose turn was stopped in the middle of it. */
const PARTIAL = 'partial';

/** What a running `generate` has come to: the tools that ran, and the words of the model so far. */
export class TurnProgress<State> {
  readonly #session: Session<State>;
  #request: readonly MessageData[] | undefined;
  #words: Part[] = [];

  constructor(session: Session<State>) {
    this.#session = session;
  }

  /** What the model is asked has in it all that the turn did before. */
  onModelCall({ messages }: GenerateRequest): void {
    this.#request = messages;
    this.#words = [];
    draftMessages(this.#session, () => this.#messages(messages));
  }

  onChunk({ role, content }: GenerateResponseChunkData): void {
    // What the tools answered is part of the next request.
    if (this.#request && (role ?? 'model') === 'model') this.#words.push(...content);
  }

  #messages(request: readonly MessageData[]): MessageData[] {
    const messages = conversationOf(request);
    // A tool request that nobody answered would wait for an answer for ever.
    const content = joinTexts(this.#words.filter((part) => part.toolRequest === undefined));
    return content.length === 0
      ? messages
      : [...messages, toPlainMessage({ role: 'model', content, metadata: { [PARTIAL]: true } })];
  }
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
