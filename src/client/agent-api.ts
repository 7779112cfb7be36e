import { Chat } from './chat.ts';
import { Conversation } from './conversation.ts';
import { AgentError, toAgentError } from './errors.ts';
import type { AgentTransport } from './transport.ts';
import type { AgentAPI, SessionSnapshot } from './types.ts';

/**
 * The agent surface over any transport. An agent in this process and one behind HTTP are told apart by their transport only. Whatever goes
 * wrong rejects with an `AgentError`.
 */
export function createAgentApi<State = unknown>(transport: AgentTransport): AgentAPI<State> {
  const { stateManagement } = transport;
  const api: AgentAPI<State> = {
    chat: (init) => new Chat<State>(transport, new Conversation<State>(init, stateManagement)),

    loadChat: async (lookup) => {
      const snapshot = await api.getSnapshot(lookup);
      if (!snapshot) {
        const what = 'snapshotId' in lookup ? `snapshot ${lookup.snapshotId}` : `session ${lookup.sessionId}`;
        throw new AgentError({ status: 'NOT_FOUND', message: `There is no ${what}.` });
      }
      return new Chat<State>(transport, Conversation.of<State>(snapshot, stateManagement));
    },

    getSnapshot: async (lookup) => {
      const exact = typeof lookup === 'string' ? { snapshotId: lookup } : lookup;
      try {
        return (await transport.getSnapshot(exact)) as SessionSnapshot<State> | undefined;
      } catch (error) {
        throw toAgentError(error);
      }
    },

    abort: async (snapshotId) => {
      try {
        return await transport.abort(snapshotId);
      } catch (error) {
        throw toAgentError(error);
      }
    },
  };
  return api;
}
