import { GenkitError, type GenerateOptions, type MessageData, type Part } from 'genkit';
import { addressTo } from '../../errors.ts';
import { isPlain } from '../../json/fault.ts';
import { copyJson, jsonEqual } from '../../json/value.ts';
import { PREAMBLE_TAG } from '../../session/log/preamble.ts';

type Metadata = Record<string, unknown>;
type PromptMessage = NonNullable<GenerateOptions['messages']>[number];

/**
 * Marks a session's messages while the prompt is rendered, which may place them anywhere or omit some. Its value is the message's index, or
 * {@link ALL}.
 */
const HISTORY_TAG = '_genkitxHistory';
const ALL = 'all';

/**
 * Tracks the session's messages through one turn: the prompt places them among its own messages, the rendered list is sent to the model, and
 * the sent list becomes the conversation again. Prompts and middleware may change their arguments, so they get copies.
 */
export class PlacedHistory {
  readonly #history: readonly MessageData[];
  /** The first parts of the sent messages. Genkit copies messages but not parts, so a returned message is recognized by its part. */
  #firstParts: readonly (Part | undefined)[] = [];
  /** The session's message behind each sent one; `undefined` for the prompt's own messages. */
  #origins: (MessageData | undefined)[] = [];
  #hasResources = false;

  constructor(history: readonly MessageData[]) {
    this.#history = history;
  }

  /**
   * The session's messages, for the prompt to place.
   *
   * @param isOpaque The prompt places them together and reads none of them. A single placeholder then stands for all, which keeps them out of
   *   the rendering span.
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

  /** The rendered messages for the model: the session's messages without their tag, the prompt's own marked as preamble. */
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

  /** Whether {@link toSend} included a resource part, which Genkit replaces by the resource's content. */
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
   * The conversation as it was sent to the model, without the prompt's own messages. Changes by middleware are kept; an unchanged message is
   * the session's original object again.
   *
   * @throws `INTERNAL` for a value that is not a message.
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

  /** The session's message behind each message of a request: the message itself if the turn added it, `undefined` for one of the prompt. */
  originsOf(sent: readonly MessageData[]): (MessageData | undefined)[] {
    let next = 0;
    return sent.map((message) => {
      const at = this.#placeOf(message, next);
      if (at >= 0) next = at + 1;
      return this.#origins[at] ?? (message.metadata?.[PREAMBLE_TAG] ? undefined : message);
    });
  }

  /** The index of the sent message from which it was made, most likely `next`; -1 if there is none. */
  #placeOf({ content }: MessageData, next: number): number {
    if (next < this.#firstParts.length && content[0] === this.#firstParts[next]) return next;
    for (const part of content) {
      // Middleware may have inserted a part before it.
      const at = this.#firstParts.indexOf(part);
      if (at >= 0) return at;
    }
    return -1;
  }
}

/** A model and a middleware get the request itself, so they may have changed it in any way. */
function isMessage(message: MessageData | null): boolean {
  if (!Array.isArray(message?.content)) return false;
  for (const part of message.content) if (typeof part !== 'object' || part === null) return false;
  return true;
}

function damaged(): GenkitError {
  const message = 'The model, or a middleware, damaged the messages of its request. It must change a copy instead.';
  return addressTo('operator', new GenkitError({ status: 'INTERNAL', message }));
}

function firstPartOf({ content }: PromptMessage): Part | undefined {
  const part = Array.isArray(content) ? content[0] : content;
  return typeof part === 'object' ? part : undefined;
}

function marked({ role, content: own, metadata }: PromptMessage): PromptMessage {
  const content = Array.isArray(own) ? own.map(ownPart) : own;
  // Not a spread: it would give each message another hidden class, which slows down all of Genkit's work on messages.
  return { role, content, metadata: { ...metadata, [PREAMBLE_TAG]: true } };
}

/** Copies the part: it may belong to the prompt's definition, which all turns share. Genkit refuses an invalid part. */
function ownPart(part: Part): Part {
  return typeof part === 'object' && part !== null && isPlain(part) ? { ...part } : part;
}

function untagged(message: PromptMessage, origin: MessageData): PromptMessage {
  const { [HISTORY_TAG]: _index, ...metadata } = message.metadata as Metadata;
  // A template engine marks the messages that it inserts for {{history}}.
  if (metadata['purpose'] === 'history' && !origin.metadata?.['purpose']) delete metadata['purpose'];
  // The fast path: most messages of a long conversation have no metadata of their own.
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

/** The text of a message that has nothing else. */
function onlyTextOf({ content, metadata }: MessageData): string | undefined {
  const part = content[0];
  if (content.length !== 1 || metadata || !part) return undefined;
  for (const name in part) if (name !== 'text') return undefined;
  return typeof part.text === 'string' ? part.text : undefined;
}

function hasOtherMembers(message: MessageData): boolean {
  for (const name in message) if (name !== 'role' && name !== 'content' && name !== 'metadata') return true;
  return false;
}

/** The fast path for a message with only a text, the most common kind. */
function isSameText(message: MessageData, other: MessageData): boolean {
  const text = onlyTextOf(message);
  return text !== undefined && text === onlyTextOf(other) && message.role === other.role;
}

/** Removes the output format instructions that Genkit appends to the last user message when there is no system message for them. */
function withoutInstructions(message: MessageData, origin: MessageData): MessageData {
  if (!message.content.some(isInstruction) || origin.content.some(isInstruction)) return message;
  return { ...message, content: message.content.filter((part) => !isInstruction(part)) };
}

function isInstruction({ metadata }: Part): boolean {
  return metadata?.['purpose'] === 'output' && !metadata['pending'];
}

/** The message as JSON: a tool may have returned a `Date`, and the message may be a class instance. */
export function toPlainMessage(message: MessageData): MessageData {
  const text = onlyTextOf(message);
  if (text !== undefined && !hasOtherMembers(message)) return { role: message.role, content: [{ text }] };
  return JSON.parse(JSON.stringify(message)) as MessageData;
}
