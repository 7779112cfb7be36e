import type { GenerateOptions, MessageData, Part } from 'genkit';
import { copyJson, jsonEqual } from '../json/value.ts';

type Metadata = Record<string, unknown>;
type PromptMessage = NonNullable<GenerateOptions['messages']>[number];

/**
 * Marks a session's messages while the prompt is rendered, which may place them anywhere or leave some out. Holds the message's index, or
 * {@link ALL}.
 */
const HISTORY_TAG = '_genkitxHistory';
const ALL = 'all';

/** Marks the prompt's own messages for the model call; Genkit's agents use the same, and middleware may know it. */
const PREAMBLE_TAG = 'agentPreamble';

/**
 * The session's messages on their way through one turn: the prompt places them among its own, the model is sent what came of that, and what
 * it was sent is the conversation again. Everybody on the way may change what they get, so they get copies.
 */
export class PlacedHistory {
  readonly #history: readonly MessageData[];
  /** The first parts of what was sent. Genkit copies messages, but no parts: what comes back is known again by them. */
  #firstParts: readonly (Part | undefined)[] = [];
  /** Which of the session's messages each was made of; `undefined`: none, it is the prompt's own. */
  #origins: readonly (MessageData | undefined)[] = [];
  /** The texts of those that are nothing else. */
  #texts: readonly (string | undefined)[] = [];

  constructor(history: readonly MessageData[]) {
    this.#history = history;
  }

  /**
   * The session's messages for the prompt to place.
   *
   * @param isOpaque The prompt places them together and looks into none. One message stands for all then: rendering writes what it makes
   *   into its span.
   */
  toPlace(isOpaque: boolean): MessageData[] {
    if (this.#history.length === 0) return [];
    if (isOpaque) return [{ role: 'user', content: [], metadata: { [HISTORY_TAG]: ALL } }];
    return this.#history.map((message, index) => {
      const copy = copyJson(message);
      copy.metadata = { ...copy.metadata, [HISTORY_TAG]: index };
      return copy;
    });
  }

  /** What the prompt rendered, for the model: the session's messages without their tag, the prompt's own marked as such. */
  toSend(rendered: readonly PromptMessage[]): PromptMessage[] {
    const sent: PromptMessage[] = [];
    const origins: (MessageData | undefined)[] = [];
    const texts: (string | undefined)[] = [];
    for (const message of rendered) {
      const { [HISTORY_TAG]: index, ...metadata } = (message.metadata ?? {}) as Metadata;
      const origin = typeof index === 'number' ? this.#history[index] : undefined;
      if (index === ALL) {
        for (const each of this.#history) {
          const text = onlyTextOf(each);
          sent.push(text === undefined ? copyJson(each) : { role: each.role, content: [{ text }] });
          origins.push(each);
          texts.push(text);
        }
      } else {
        sent.push(origin ? untagged(message, metadata, origin) : marked(message));
        origins.push(origin);
        texts.push(origin && onlyTextOf(origin));
      }
    }
    this.#firstParts = sent.map(firstPartOf);
    this.#origins = origins;
    this.#texts = texts;
    return sent;
  }

  /**
   * The conversation as the model was sent it: all but the prompt's own messages. What middleware did to it stays done; a message that is as
   * it was is the session's very own again.
   */
  conversationOf(sent: readonly MessageData[]): MessageData[] {
    const conversation: MessageData[] = [];
    let next = 0;
    for (const message of sent) {
      const at = this.#placeOf(message, next);
      const origin = this.#origins[at];
      if (at >= 0) next = at + 1;
      // Most messages are a text and nothing else, and a conversation has many of them: they are worth their own way.
      const isUntouched = origin && message.role === origin.role && isText(message, this.#texts[at]);
      if (origin) conversation.push(isUntouched ? origin : changed(message, origin));
      else if (!message.metadata?.[PREAMBLE_TAG]) conversation.push(toPlainMessage(message));
    }
    return conversation;
  }

  /** Which of the sent messages it was made of, most likely the one at `next`; -1: of none. */
  #placeOf({ content }: MessageData, next: number): number {
    if (next < this.#firstParts.length && content[0] === this.#firstParts[next]) return next;
    for (const part of content) {
      // Others may have put a part before it.
      const at = this.#firstParts.indexOf(part);
      if (at >= 0) return at;
    }
    return -1;
  }
}

function firstPartOf({ content }: PromptMessage): Part | undefined {
  const part = Array.isArray(content) ? content[0] : content;
  return typeof part === 'object' ? part : undefined;
}

function marked({ role, content, metadata }: PromptMessage): PromptMessage {
  // Spelled out: a spread makes of each message an object of another shape, and then all that Genkit does with messages is slow.
  return { role, content, metadata: { ...metadata, [PREAMBLE_TAG]: true } };
}

function untagged(message: PromptMessage, metadata: Metadata, origin: MessageData): PromptMessage {
  // A template marks what it puts in the place of {{history}}.
  if (metadata['purpose'] === 'history' && !origin.metadata?.['purpose']) delete metadata['purpose'];
  // Most messages have no metadata of their own; there are as many of them as the conversation is long.
  const { role, content } = message;
  return Object.keys(metadata).length > 0 ? { role, content, metadata } : { role, content };
}

function changed(message: MessageData, origin: MessageData): MessageData {
  const kept = withoutInstructions(message, origin);
  return jsonEqual(kept, origin) ? origin : toPlainMessage(kept);
}

/** The text, where the message is nothing else. */
function onlyTextOf({ content, metadata }: MessageData): string | undefined {
  const part = content[0];
  if (content.length !== 1 || metadata || !part) return undefined;
  for (const name in part) if (name !== 'text') return undefined;
  return typeof part.text === 'string' ? part.text : undefined;
}

function isText(message: MessageData, text: string | undefined): boolean {
  return text !== undefined && onlyTextOf(message) === text;
}

/** Without the words on the output format that Genkit appends to the last user message when there is no system message to hold them. */
function withoutInstructions(message: MessageData, origin: MessageData): MessageData {
  if (!message.content.some(isInstruction) || origin.content.some(isInstruction)) return message;
  return { ...message, content: message.content.filter((part) => !isInstruction(part)) };
}

function isInstruction({ metadata }: Part): boolean {
  return metadata?.['purpose'] === 'output' && !metadata['pending'];
}

/** The message as JSON holds it: a tool may have answered a `Date`, and a message be an instance. */
export function toPlainMessage(message: MessageData): MessageData {
  return JSON.parse(JSON.stringify(message)) as MessageData;
}
