import { AgentError, ConnectionLostError, toAgentError } from '../errors.ts';

/** What `fetch` and the body's reader reject with says little, and nothing typed. */
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
    throw new ConnectionLostError('The server can not be reached, or the connection broke.', error);
  }
}
