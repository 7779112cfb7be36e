import type { MessageData } from 'genkit/beta';

/** Whether the message holds tool requests that somebody has to answer. */
export function isWaiting(message: MessageData | undefined): boolean {
  return message?.role === 'model' && message.content.some((part) => part.toolRequest !== undefined);
}
