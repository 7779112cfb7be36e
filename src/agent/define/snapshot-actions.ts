import { AgentAbortRequestSchema, AgentAbortResponseSchema, GetSnapshotRequestSchema } from '@genkit-ai/ai';
import { SessionSnapshotSchema } from '@genkit-ai/ai/session';
import { defineAction, type ActionContext } from '@genkit-ai/core';
import { z } from 'genkit';
import { assertId } from '../../snapshot/ids.ts';
import type { SnapshotStatus } from '../../snapshot/snapshot.ts';
import { mustHaveStore, type AgentDefinition } from '../agent-definition.ts';
import { lookupNotFound } from '../open/damaged-session.ts';
import { isHidden } from '../open/visible-snapshot.ts';
import { abortIn } from '../save/abort-snapshot.ts';
import { waitForSnapshot } from '../open/wait-for-snapshot.ts';
import type { Agent } from '../types.ts';

/** Genkit's schema with this package's options, which foreign servers ignore. */
const ReadSnapshotSchema = GetSnapshotRequestSchema.extend({
  metadataOnly: z.boolean().optional().describe('Omits the state.'),
  waitMs: z
    .number()
    .int()
    .min(0)
    .max(60_000)
    .optional()
    .describe('Waits for a terminal status, for at most this many ms.'),
});

/**
 * Aborts the run of a snapshot; a terminal snapshot is not changed.
 *
 * @returns The status before; `undefined` when the snapshot does not exist.
 */
export async function abortSnapshot<State>(
  agent: AgentDefinition<State>,
  snapshotId: string,
  context: ActionContext | undefined,
): Promise<SnapshotStatus | undefined> {
  const store = mustHaveStore(agent, 'Aborting a snapshot');
  assertId(snapshotId, 'snapshotId');
  return abortIn(store, snapshotId, { context }, (current) => isHidden(agent, current, context));
}

/** Registers `/agent-snapshot/<name>` and `/agent-abort/<name>`, through which servers and the Dev UI reach the agent's snapshots. */
export function registerSnapshotActions<State>(
  agent: AgentDefinition<State>,
): Pick<Agent<State>, 'getSnapshotDataAction' | 'abortAgentAction'> {
  const { name, registry } = agent;
  const getSnapshotDataAction = defineAction(
    registry,
    {
      actionType: 'agent-snapshot',
      name,
      description: `Reads a snapshot of agent '${name}', by its id or as the latest of a session.`,
      inputSchema: ReadSnapshotSchema,
      outputSchema: SessionSnapshotSchema,
    },
    async (lookup, { context, abortSignal }) => {
      const snapshot = await waitForSnapshot(agent, { ...lookup, context }, abortSignal);
      if (snapshot) return snapshot;
      throw lookupNotFound(agent, lookup);
    },
  );
  const abortAgentAction = defineAction(
    registry,
    {
      actionType: 'agent-abort',
      name,
      description: `Aborts a running snapshot of agent '${name}'. Returns its previous status.`,
      inputSchema: AgentAbortRequestSchema,
      outputSchema: AgentAbortResponseSchema,
    },
    async ({ snapshotId }, { context }) => {
      const status = await abortSnapshot(agent, snapshotId, context);
      return { snapshotId, ...(status && { status }) };
    },
  );
  return { getSnapshotDataAction, abortAgentAction };
}
