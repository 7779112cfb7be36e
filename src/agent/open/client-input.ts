import type { AgentInit, AgentInput, MessageData } from 'genkit/beta';
import { AgentInitError, failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { findFault } from '../../json/fault.ts';
import { prefixedNames } from '../../session/state/plain-state.ts';
import type { AgentDefinition } from '../agent-definition.ts';

/**
 * Refuses ids that are not strings, and a state that JSON cannot write, such as a circular one. A caller in this process may send any value.
 * Genkit writes the input of an action into the action's span, and would fail there with an error of its own.
 *
 * @throws AgentInitError `INVALID_ARGUMENT`
 */
export function assertWritableInit(init: AgentInit | null = {}): void {
  if (typeof init !== 'object' || init === null) {
    const message = "An agent's init must be an object, { sessionId }, { snapshotId } or { state }, or omitted.";
    throw new AgentInitError({ status: 'INVALID_ARGUMENT', message });
  }
  for (const name of ['sessionId', 'snapshotId'] as const) {
    const id: unknown = init[name];
    // In place of the schema's error, which has many lines.
    const message = `An agent's init: ${name} must be a string, not ${typeof id}.`;
    if (id !== undefined && typeof id !== 'string') throw new AgentInitError({ status: 'INVALID_ARGUMENT', message });
  }
  try {
    JSON.stringify(init);
  } catch {
    const path = findFault(init)?.path;
    const place = path ? `: see ${quote(path)}` : '';
    throw new AgentInitError({
      status: 'INVALID_ARGUMENT',
      message: `The state sent along cannot be written as JSON${place}. Send the state that the previous turn returned.`,
    });
  }
}

/**
 * Refuses input that only the server may write: messages of other roles, tool requests and tool responses.
 *
 * @throws `INVALID_ARGUMENT`, or `FAILED_PRECONDITION` when the agent can't tell which messages the server wrote.
 */
export function assertClientInput<State>(agent: AgentDefinition<State>, { message, resume }: AgentInput): void {
  if (resume?.restart?.length && agent.isStateForgeable) {
    throw failedPrecondition(
      `Agent '${agent.name}' refuses resume.restart: its callers keep the state unsigned, and could have forged the tool request. ` +
        `Set 'store' or 'signState', or signState: false when all callers are trusted.`,
    );
  }
  if (!message) return;
  if (message.role !== 'user') {
    throw invalidArgument(`A client's message must have the role 'user', not '${message.role}'.`);
  }
  if (message.content.some((part) => part.toolRequest !== undefined || part.toolResponse !== undefined)) {
    throw invalidArgument(
      `A client's message must not have toolRequest or toolResponse parts. Answer an interrupted tool with 'resume'.`,
    );
  }
  assertNoResources(agent, [message]);
  if (resume?.respond?.length || resume?.restart?.length) {
    throw invalidArgument(`Send a 'message' or 'resume', not both: the interrupted turn must continue first.`);
  }
}

/**
 * Refuses resource parts, because the model would be shown the content of any resource that the client names.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertNoResources<State>(agent: AgentDefinition<State>, messages: readonly MessageData[] = []): void {
  if (agent.clientResources) return;
  if (messages.some(({ content }) => content.some((part) => part.resource !== undefined))) {
    throw invalidArgument(
      `Agent '${agent.name}' accepts no 'resource' parts from its callers. Send their content instead, or set clientResources: true.`,
    );
  }
}

/**
 * Refuses keys of other scopes in the custom state: a prompt would take a forged one for the real value.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertPlainKeys<State>(agent: AgentDefinition<State>, custom: unknown): void {
  const [name] = prefixedNames(custom);
  if (name === undefined) return;
  throw invalidArgument(
    `Agent '${agent.name}' refuses ${quote(name)} in a sent state: callers must not set 'user:', 'app:' and 'temp:' keys.`,
  );
}
