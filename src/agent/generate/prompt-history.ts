import { GenkitError, type GenerateOptions, type MessageData, type Part } from 'genkit';
import { addressTo } from '../../errors.ts';
import { isPlain } from '../../json/fault.ts';
import { copyJson, jsonEqual } from '../../json/value.ts';

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
  #origins: (MessageData | undefined)[] = [];
  #hasResources = false;

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
    this.#origins = [];
    for (const message of rendered) {
      const index = message.metadata?.[HISTORY_TAG];
      if (index === ALL) {
        for (const origin of this.#history) {
          sent.push(this.#copyOf(origin));
          this.#origins.push(origin);
        }
      } else {
        const origin = typeof index === 'number' ? this.#history[index] : undefined;
        sent.push(origin ? untagged(message, origin) : marked(message));
        this.#hasResources ||= hasResource(message);
        this.#origins.push(origin);
      }
    }
    this.#firstParts = sent.map(firstPartOf);
    return sent;
  }

  /** Whether {@link toSend} put a resource among them, in whose place Genkit puts what is in it. */
  get hasResources(): boolean {
    return this.#hasResources;
  }

  #copyOf(message: MessageData): MessageData {
    const text = onlyTextOf(message);
    if (text !== undefined) return { role: message.role, content: [{ text }] };
    this.#hasResources ||= hasResource(message);
    return copyJson(message);
  }

  /**
   * The conversation as the model was sent it: all but the prompt's own messages. What middleware did to it stays done; a message that is as
   * it was is the session's very own again.
   *
   * @throws `INTERNAL` for something that is no message.
   */
  conversationOf(sent: readonly MessageData[]): MessageData[] {
    const conversation: MessageData[] = [];
    let next = 0;
    for (const message of sent) {
      if (!isMessage(message)) throw damaged();
      const at = this.#placeOf(message, next);
      const origin = this.#origins[at];
      if (at >= 0) next = at + 1;
      if (origin) conversation.push(isSameText(message, origin) ? origin : changed(message, origin));
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

/** A model and a middleware get the request itself, and may have done anything to it. */
function isMessage(message: MessageData | null): boolean {
  if (!Array.isArray(message?.content)) return false;
  for (const part of message.content) if (typeof part !== 'object' || part === null) return false;
  return true;
}

function damaged(): GenkitError {
  const message = 'The model, or a middleware, damaged the messages of its request. Have it change a copy.';
  return addressTo('operator', new GenkitError({ status: 'INTERNAL', message }));
}

function firstPartOf({ content }: PromptMessage): Part | undefined {
  const part = Array.isArray(content) ? content[0] : content;
  return typeof part === 'object' ? part : undefined;
}

function marked({ role, content: own, metadata }: PromptMessage): PromptMessage {
  const content = Array.isArray(own) ? own.map(ownPart) : own;
  // Spelled out: a spread makes of each message an object of another shape, and then all that Genkit does with messages is slow.
  return { role, content, metadata: { ...metadata, [PREAMBLE_TAG]: true } };
}

/** The part may be the prompt definition's own, which is every turn's. One that is none is for Genkit to refuse. */
function ownPart(part: Part): Part {
  return typeof part === 'object' && part !== null && isPlain(part) ? { ...part } : part;
}

function untagged(message: PromptMessage, origin: MessageData): PromptMessage {
  const { [HISTORY_TAG]: _index, ...metadata } = message.metadata as Metadata;
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

function hasResource({ content }: PromptMessage): boolean {
  return Array.isArray(content) && content.some((part) => part.resource !== undefined);
}

/** The text, where the message is nothing else. */
function onlyTextOf({ content, metadata }: MessageData): string | undefined {
  const part = content[0];
  if (content.length !== 1 || metadata || !part) return undefined;
  for (const name in part) if (name !== 'text') return undefined;
  return typeof part.text === 'string' ? part.text : undefined;
}

/** Whether it has members that no message should have. */
function hasMore(message: MessageData): boolean {
  for (const name in message) if (name !== 'role' && name !== 'content' && name !== 'metadata') return true;
  return false;
}

/** Most messages are a text and nothing else, and a conversation has many of them: they are worth their own way. */
function isSameText(message: MessageData, other: MessageData): boolean {
  const text = onlyTextOf(message);
  return text !== undefined && text === onlyTextOf(other) && message.role === other.role;
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
  const text = onlyTextOf(message);
  if (text !== undefined && !hasMore(message)) return { role: message.role, content: [{ text }] };
  return JSON.parse(JSON.stringify(message)) as MessageData;
}
