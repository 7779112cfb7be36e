import type { MessageData } from 'genkit';

/** Marks the prompt's own messages for the model call. Genkit's agents use the same key, and middleware may read it. */
export const PREAMBLE_TAG = 'agentPreamble';

/** The session's messages in a request: `undefined` for messages of the prompt and for system messages at the beginning. */
export function sessionMessagesIn(messages: readonly MessageData[]): (MessageData | undefined)[] {
  const start = messages.findIndex(({ role }) => role !== 'system');
  return messages.map((message, i) =>
    start < 0 || i < start || message.metadata?.[PREAMBLE_TAG] ? undefined : message,
  );
}
