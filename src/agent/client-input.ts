import type { AgentInit, AgentInput } from 'genkit/beta';
import { AgentInitError, invalidArgument } from '../errors.ts';

/**
 * A state that a caller in this process sends along may be anything. What JSON cannot write, a circle say, is refused before it gets anywhere:
 * Genkit writes what an action is called with into the action's span, and fails with an error of its own there.
 *
 * @throws AgentInitError `INVALID_ARGUMENT`
 */
export function assertWritableState({ state }: AgentInit = {}): void {
  try {
    JSON.stringify(state);
  } catch {
    throw new AgentInitError({
      status: 'INVALID_ARGUMENT',
      message: `The state sent along cannot be written as JSON. Send it as it came with the turn before.`,
    });
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
