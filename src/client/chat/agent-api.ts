import { Chat } from './chat.ts';
import { readInit, readLookup } from '../check.ts';
import { Conversation } from './conversation.ts';
import { AgentError, toAgentError } from '../errors.ts';
import { withInterrupts } from './interrupt.ts';
import { pause, withLimits } from '../signals.ts';
import type { AgentTransport } from '../transport.ts';
import type { AgentAPI, SessionSnapshot } from '../types.ts';

/** How long the server may wait before it answers, in ms. Proxies close connections that are idle for longer. */
const LONG_POLL_MS = 25_000;

/** Minimum pause between two requests, in ms. */
const PAUSE_MS = 1000;

/**
 * The `AgentAPI` over any transport. An agent in this process and one behind HTTP differ in their transport only. Every failure rejects with an
 * `AgentError`.
 */
export function createAgentApi<State = unknown, O = unknown>(transport: AgentTransport): AgentAPI<State, O> {
  const { stateManagement } = transport;
  const api: AgentAPI<State, O> = {
    chat: (init) => new Chat<State, O>(transport, new Conversation<State>(readInit(init), stateManagement)),

    loadChat: async (given) => {
      const lookup = readLookup(given);
      const snapshot = await api.getSnapshot(lookup);
      if (!snapshot) {
        const what = 'snapshotId' in lookup ? `snapshot ${lookup.snapshotId}` : `session ${lookup.sessionId}`;
        throw new AgentError({ status: 'NOT_FOUND', message: `There is no ${what}.` });
      }
      return new Chat<State, O>(transport, Conversation.of<State>(snapshot, stateManagement));
    },

    getSnapshot: async (lookup, { metadataOnly } = {}) => {
      const exact = typeof lookup === 'string' ? { snapshotId: lookup } : lookup;
      try {
        const snapshot = (await transport.getSnapshot(exact, { metadataOnly })) as SessionSnapshot<State> | undefined;
        return snapshot && withInterrupts(snapshot);
      } catch (error) {
        throw toAgentError(error);
      }
    },

    waitForSnapshot: (snapshotId, { metadataOnly, ...limits } = {}) =>
      withLimits(limits, `Waiting for the snapshot ${snapshotId}`, async (abortSignal) => {
        for (;;) {
          const asked = performance.now();
          const read = { abortSignal, metadataOnly, waitMs: LONG_POLL_MS };
          const snapshot = (await transport.getSnapshot({ snapshotId }, read)) as SessionSnapshot<State> | undefined;
          if (!snapshot) {
            throw new AgentError({ status: 'NOT_FOUND', message: `There is no snapshot ${snapshotId}.` });
          }
          if (snapshot.status !== 'pending') {
            return withInterrupts(snapshot);
          }
          // A server that did not wait must not be polled without a pause.
          await pause(Math.max(0, PAUSE_MS - (performance.now() - asked)), abortSignal);
        }
      }),

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
