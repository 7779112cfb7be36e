import type { ActionContext } from '@genkit-ai/core';
import { createAgentApi } from '../../client/chat/agent-api.ts';
import type { AgentTransport } from '../../client/transport.ts';
import type { AgentAPI } from '../../client/types.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { withFailure } from '../save/last-failure.ts';
import { abortSnapshot } from './snapshot-actions.ts';
import { waitForSnapshot } from '../open/wait-for-snapshot.ts';
import { contextFor } from '../registry.ts';
import type { Agent } from '../types.ts';

/**
 * The API of `remoteAgent` for an agent in this process.
 *
 * @param given The caller's context for all calls and all turns of the chats. Default: the ambient context at each call.
 */
export function inProcessApi<State, Output>(
  agent: AgentDefinition<State>,
  action: Pick<Agent, 'run'>,
  given: ActionContext | undefined,
): AgentAPI<State, Output> {
  const context = () => contextFor(agent.registry, given);
  const transport: AgentTransport = {
    stateManagement: agent.store ? 'server' : 'client',
    runTurn: async (input, init, { abortSignal, onChunk }) => {
      // Skips the channel and the web stream, which a single input does not need.
      const { result } = await action.run(input, { init, abortSignal, onChunk, ...(given && { context: given }) });
      return result;
    },
    getSnapshot: async (lookup, { abortSignal, metadataOnly, waitMs } = {}) => {
      const request = { ...lookup, metadataOnly, waitMs, context: context() };
      return withFailure(agent, await waitForSnapshot(agent, request, abortSignal));
    },
    abort: (snapshotId) => abortSnapshot(agent, snapshotId, context()),
  };
  return createAgentApi<State, Output>(transport);
}
