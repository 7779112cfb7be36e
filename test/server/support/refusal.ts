import { AgentError } from 'genkitx-agents/client';

/** The error that a call of a client rejects with. */
export async function refusal(promise: Promise<unknown>): Promise<AgentError> {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!AgentError.isInstance(error)) {
    throw new Error('It should have rejected with an AgentError.', { cause: error });
  }
  return error;
}
