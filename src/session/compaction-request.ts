import { logger } from 'genkit/logging';
import { quote } from '../errors.ts';

/** Sessions that are to be summarized after the running turn. */
const requests = new WeakSet<object>();

/** Requests that the session is summarized after the running turn. */
export function requestCompaction(session: object): void {
  requests.add(session);
}

/** Whether a summary was requested since the last call. */
export function takeCompactionRequest(session: object): boolean {
  return requests.delete(session);
}

/** Logs that the session is not summarized although it was requested. */
export function warnNotCompacted(sessionId: string): void {
  logger.warn(
    `Session ${quote(sessionId)} is not summarized: session.compact() and the tool end_topic need a context window with summarize, ` +
      'as the context of the agent, or as window.middleware({ sessionId }) of a model call of the turn.',
  );
}
