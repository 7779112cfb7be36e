import type { AgentInit, AgentInput, MessageData } from 'genkit/beta';
import { AgentInitError, failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { findFault } from '../../json/fault.ts';
import { prefixedNames } from '../../session/state/plain-state.ts';
import type { AgentDefinition } from '../agent-definition.ts';

/**
 * A state that a caller in this process sends along may be anything. What JSON cannot write, a circle say, is refused before it gets anywhere:
 * Genkit writes what an action is called with into the action's span, and fails with an error of its own there.
 *
 * @throws AgentInitError `INVALID_ARGUMENT`
 */
export function assertWritableInit(init: AgentInit | null = {}): void {
  if (typeof init !== 'object' || init === null) {
    const message = "An agent's init must be an object, { sessionId }, { snapshotId } or { state }, or left out.";
    throw new AgentInitError({ status: 'INVALID_ARGUMENT', message });
  }
  try {
    JSON.stringify(init);
  } catch {
    const path = findFault(init)?.path;
    const place = path ? `: see ${quote(path)}` : '';
    throw new AgentInitError({
      status: 'INVALID_ARGUMENT',
      message: `The state sent along cannot be written as JSON${place}. Send it as it came with the turn before.`,
    });
  }
}

/**
 * A client speaks as the user and as nobody else: what tools were asked and what they answered is the server's to write.
 *
 * @throws `INVALID_ARGUMENT`, or `FAILED_PRECONDITION` where the agent can't tell what the server wrote.
 */
export function assertClientInput<State>(agent: AgentDefinition<State>, { message, resume }: AgentInput): void {
  if (resume?.restart?.length && agent.isStateForgeable) {
    throw failedPrecondition(
      `Agent '${agent.name}' does not run tools again on its callers' word: they keep the state, and could have written the tool request ` +
        `themselves. Give it a 'store' or 'signState', or, where all callers are trusted, signState: false.`,
    );
  }
  if (!message) return;
  if (message.role !== 'user') {
    throw invalidArgument(`A client's message must have the role 'user', not '${message.role}'.`);
  }
  if (message.content.some((part) => part.toolRequest !== undefined || part.toolResponse !== undefined)) {
    throw invalidArgument(
      `A client's message must not have toolRequest or toolResponse parts. Answer an interrupted tool by 'resume'.`,
    );
  }
  assertNoResources(agent, [message]);
  if (resume?.respond?.length || resume?.restart?.length) {
    throw invalidArgument(`Send a 'message' or 'resume', not both: the interrupted turn has to go on first.`);
  }
}

/**
 * The model would be shown what a resource says, whichever the client names.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertNoResources<State>(agent: AgentDefinition<State>, messages: readonly MessageData[] = []): void {
  if (agent.clientResources) return;
  if (messages.some(({ content }) => content.some((part) => part.resource !== undefined))) {
    throw invalidArgument(
      `Agent '${agent.name}' takes no 'resource' parts from its callers. Send what is in them, or give the agent clientResources: true.`,
    );
  }
}

/**
 * A custom state has no keys of other scopes; a prompt would take one that a client made up for what it says to be.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertPlainKeys<State>(agent: AgentDefinition<State>, custom: unknown): void {
  const [name] = prefixedNames(custom);
  if (name === undefined) return;
  throw invalidArgument(
    `Agent '${agent.name}' takes no ${quote(name)} from its callers: keys 'user:', 'app:' and 'temp:' are not theirs to set.`,
  );
}
