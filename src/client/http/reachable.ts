import { AgentError, ConnectionLostError, toAgentError } from '../errors.ts';

/** Converts the errors of `fetch` and of the body's reader, which have no status. */
export async function reachable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')) {
      throw toAgentError(error);
    }
    if (AgentError.isInstance(error)) {
      throw error;
    }
    throw new ConnectionLostError('The server cannot be reached, or the connection broke.', error);
  }
}
