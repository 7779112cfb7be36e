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

/** On a message that was made of one of the session's: that message. A symbol survives `{ ...message }` and is in no JSON. */
const ORIGIN = Symbol('origin');

type Sent = PromptMessage & { [ORIGIN]?: MessageData };

/** The session's messages for the prompt to place: copies, since prompts, middleware and models may change what they get. */
export function tagHistory(history: readonly MessageData[]): MessageData[] {
  return history.map((message, index) => {
    const copy = copyJson(message);
    copy.metadata = { ...copy.metadata, [HISTORY_TAG]: index };
    return copy;
  });
}

/** One message for all of the session's, for a prompt that places them together and looks into none: rendering writes what it makes into its span. */
export function historyInOne(history: readonly MessageData[]): MessageData[] {
  return history.length === 0 ? [] : [{ role: 'user', content: [], metadata: { [HISTORY_TAG]: ALL } }];
}

/** What the prompt rendered, for the model: the session's messages without their tag, the prompt's own marked as such. */
export function tagPreamble(rendered: readonly PromptMessage[], history: readonly MessageData[]): PromptMessage[] {
  return rendered.flatMap((message): Sent | Sent[] => {
    const { [HISTORY_TAG]: index, ...metadata } = (message.metadata ?? {}) as Metadata;
    if (index === ALL) return history.map(sentOf);
    const origin = typeof index === 'number' ? history[index] : undefined;
    if (!origin) return { ...message, metadata: { ...message.metadata, [PREAMBLE_TAG]: true } };
    // A template marks what it puts in the place of {{history}}.
    if (metadata['purpose'] === 'history' && !origin.metadata?.['purpose']) delete metadata['purpose'];
    // Most messages have no metadata of their own; there are as many of them as the conversation is long.
    const sent: Sent = { role: message.role, content: message.content };
    if (Object.keys(metadata).length > 0) sent.metadata = metadata;
    sent[ORIGIN] = origin;
    return sent;
  });
}

/**
 * The conversation as the model was sent it: all but the prompt's own messages. What middleware did to it stays done; a message that is as it
 * was is the session's very own again.
 */
export function conversationOf(sent: readonly MessageData[]): MessageData[] {
  return (sent as readonly Sent[])
    .filter((message) => message[ORIGIN] || !message.metadata?.[PREAMBLE_TAG])
    .map((message) => {
      const origin = message[ORIGIN];
      if (!origin) return toPlainMessage(message);
      if (isUntouched(message, origin)) return origin;
      const kept = withoutInstructions(message, origin);
      return jsonEqual(kept, origin) ? origin : toPlainMessage(kept);
    });
}

/** A copy for the model, which may change what it gets, that knows where it comes from. */
function sentOf(origin: MessageData): Sent {
  const { role, metadata } = origin;
  const content = origin.content.map(copyPart);
  return metadata
    ? { role, content, metadata: copyJson(metadata), [ORIGIN]: origin }
    : { role, content, [ORIGIN]: origin };
}

// Most parts are a text and nothing else, and a conversation has many of them: these two are worth their own way.
function copyPart(part: Part): Part {
  return isTextOnly(part) ? { text: part.text } : copyJson(part);
}

/** Whether the message is as it was, as far as that can be seen at a glance. */
function isUntouched(message: MessageData, origin: MessageData): boolean {
  if (message.role !== origin.role || message.metadata || origin.metadata) return false;
  if (message.content.length !== origin.content.length) return false;
  return message.content.every((part, i) => {
    const before = origin.content[i]!;
    return isTextOnly(part) && isTextOnly(before) && part.text === before.text;
  });
}

function isTextOnly(part: Part): part is Part & { text: string } {
  for (const name in part) if (name !== 'text') return false;
  return typeof part.text === 'string';
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
