import type { AgentInput } from 'genkit/beta';
import { invalidArgument } from '../errors.ts';

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
