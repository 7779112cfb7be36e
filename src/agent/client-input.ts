import type { AgentInput } from 'genkit/beta';
import { AgentInitError, invalidArgument } from '../errors.ts';

/**
 * Passes the inputs on, as the caller sends them.
 *
 * @throws AgentInitError `UNIMPLEMENTED` for an input that asks for what this runtime does not do.
 */
export async function* supportedInputs(
  inputs: AsyncIterable<AgentInput>,
  agentName: string,
): AsyncGenerator<AgentInput> {
  for await (const input of inputs) {
    if (input.detach) {
      throw new AgentInitError({
        status: 'UNIMPLEMENTED',
        message: `Agent '${agentName}' cannot detach: this version runs no turns in the background. Send the input without 'detach'.`,
      });
    }
    yield input;
  }
}

/**
 * A client speaks as the user and as nobody else: what tools were asked and what they answered is the server's to write.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertClientInput({ message, resume }: AgentInput): void {
  if (!message) return;
  if (message.role !== 'user') {
    throw invalidArgument(`A client's message must have the role 'user', not '${message.role}'.`);
  }
  if (message.content.some((part) => part.toolRequest !== undefined || part.toolResponse !== undefined)) {
    throw invalidArgument(
      `A client's message must not have toolRequest or toolResponse parts. Answer an interrupted tool by 'resume'.`,
    );
  }
  if (resume?.respond?.length || resume?.restart?.length) {
    throw invalidArgument(`Send a 'message' or 'resume', not both: the interrupted turn has to go on first.`);
  }
}
