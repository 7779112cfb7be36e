import type { GenerateOptions, MessageData, Part } from 'genkit';
import { copyJson, jsonEqual } from '../json/value.ts';

type Metadata = Record<string, unknown>;
type PromptMessage = NonNullable<GenerateOptions['messages']>[number];

/** Marks a session's messages while the prompt is rendered, which may place them anywhere or leave some out. Holds the message's index. */
const HISTORY_TAG = '_genkitxHistory';

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

/** What the prompt rendered, for the model: the session's messages without their tag, the prompt's own marked as such. */
export function tagPreamble(rendered: readonly PromptMessage[], history: readonly MessageData[]): PromptMessage[] {
  return rendered.map((message): Sent => {
    const { [HISTORY_TAG]: index, ...metadata } = (message.metadata ?? {}) as Metadata;
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
      const kept = withoutInstructions(message, origin);
      return jsonEqual(kept, origin) ? origin : toPlainMessage(kept);
    });
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
