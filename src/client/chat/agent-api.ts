import { Chat } from './chat.ts';
import { readInit, readLookup } from '../check.ts';
import { Conversation } from './conversation.ts';
import { withAgentErrors } from '../errors.ts';
import { mustGetSnapshot, withInterrupts } from './read-snapshot.ts';
import { pause, withLimits } from '../signals.ts';
import type { AgentTransport } from '../transport.ts';
import type { AgentAPI, SessionSnapshot } from '../types.ts';

/** How long the server may wait before it answers, in ms. Proxies close connections that are idle for longer. */
const LONG_POLL_MS = 25_000;

/** Minimum pause between two requests, in ms. */
const PAUSE_MS = 1000;

/**
 * The `AgentAPI` over any transport. Agents in this process and behind HTTP differ only in their transport. Every failure rejects with an
 * `AgentError`.
 */
export function createAgentApi<State = unknown, O = unknown>(transport: AgentTransport): AgentAPI<State, O> {
  const { stateManagement } = transport;
  return {
    chat: (init) => new Chat<State, O>(transport, new Conversation<State>(readInit(init), stateManagement)),

    loadChat: async (given) => {
      const lookup = readLookup(given);
      const conversation = await withAgentErrors(async () => {
        let from: SessionSnapshot<State> | undefined = await mustGetSnapshot<State>(transport, lookup);
        // A session continues from before a turn that failed or has expired.
        const isOver = ({ status }: SessionSnapshot) =>
          'sessionId' in lookup && (status === 'failed' || status === 'expired');
        while (from && isOver(from)) {
          const { parentId }: SessionSnapshot = from;
          from = (parentId && (await transport.getSnapshot({ snapshotId: parentId }))) as typeof from;
        }
        return from ? Conversation.of(from, stateManagement) : new Conversation<State>(lookup, stateManagement);
      });
      return new Chat<State, O>(transport, conversation);
    },

    getSnapshot: (lookup, { metadataOnly } = {}) =>
      withAgentErrors(async () => {
        const exact = typeof lookup === 'string' ? { snapshotId: lookup } : lookup;
        const snapshot = await transport.getSnapshot(exact, { metadataOnly });
        return snapshot && withInterrupts(snapshot as SessionSnapshot<State>);
      }),

    waitForSnapshot: (snapshotId, { metadataOnly, ...limits } = {}) =>
      withLimits(limits, `Waiting for the snapshot ${snapshotId}`, async (abortSignal) => {
        for (;;) {
          const start = performance.now();
          const read = { abortSignal, metadataOnly, waitMs: LONG_POLL_MS };
          const snapshot = await mustGetSnapshot<State>(transport, { snapshotId }, read);
          if (snapshot.status !== 'pending') {
            return snapshot;
          }
          // Some servers do not wait; these must not be polled without a pause.
          await pause(Math.max(0, PAUSE_MS - (performance.now() - start)), abortSignal);
        }
      }),

    abort: (snapshotId) => withAgentErrors(async () => transport.abort(snapshotId)),
  };
}
