import {
  AgentAbortRequestSchema,
  AgentAbortResponseSchema,
  GetSnapshotRequestSchema,
  type GetSnapshotDataAction,
} from '@genkit-ai/ai';
import { SessionSnapshotSchema } from '@genkit-ai/ai/session';
import { defineAction, type ActionContext } from '@genkit-ai/core';
import { GenkitError, type Action } from 'genkit';
import type { SessionSnapshot } from 'genkit/beta';
import { quote } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import type { SnapshotStatus } from '../snapshot/snapshot.ts';
import type { SnapshotLookup } from '../store/contract.ts';
import { checkLookup } from '../store/lookup.ts';
import { isExpired } from './expiry.ts';
import { mustHaveStore, toClientState, type AgentDefinition } from './agent-definition.ts';

/** The two actions beside an agent's own. */
export interface SnapshotActions<State> {
  getSnapshotDataAction: GetSnapshotDataAction<State>;
  abortAgentAction: Action<typeof AgentAbortRequestSchema, typeof AgentAbortResponseSchema>;
}

/**
 * Reads a snapshot as a client sees it. A running one whose worker went silent reads as `expired`.
 *
 * @throws `FAILED_PRECONDITION` for an agent without a store, and what the store throws.
 */
export async function readSnapshot<State>(
  agent: AgentDefinition<State>,
  lookup: SnapshotLookup,
): Promise<SessionSnapshot<State> | undefined> {
  const store = mustHaveStore(agent, 'Reading a snapshot');
  checkLookup(lookup);
  const snapshot = await store.getSnapshot(lookup);
  if (!snapshot) return undefined;
  const seen: SessionSnapshot<State> = isExpired(snapshot, agent.background.leaseMs)
    ? { ...snapshot, status: 'expired' }
    : snapshot;
  return seen.state ? { ...seen, state: toClientState(agent, seen.state) as SessionSnapshot<State>['state'] } : seen;
}

/**
 * Marks a running snapshot as aborted; one that is settled stays as it is.
 *
 * @returns The status before; `undefined` when there is no such snapshot.
 */
export async function abortSnapshot<State>(
  agent: AgentDefinition<State>,
  snapshotId: string,
  context: ActionContext | undefined,
): Promise<SnapshotStatus | undefined> {
  const store = mustHaveStore(agent, 'Aborting a snapshot');
  assertId(snapshotId, 'snapshotId');
  let before: SnapshotStatus | undefined;
  await store.saveSnapshot(
    snapshotId,
    (current) => {
      before = current?.status;
      if (!current || current.status !== 'pending') return null;
      return { ...current, status: 'aborted', finishReason: 'aborted', updatedAt: new Date().toISOString() };
    },
    { context },
  );
  return before;
}

/** Registers `/agent-snapshot/<name>` and `/agent-abort/<name>`, by which servers and the Dev UI reach the agent's snapshots. */
export function registerSnapshotActions<State>(agent: AgentDefinition<State>): SnapshotActions<State> {
  const { name, registry } = agent;
  const getSnapshotDataAction = defineAction(
    registry,
    {
      actionType: 'agent-snapshot',
      name,
      description: `Reads a snapshot of agent '${name}': an exact one, or a session's latest.`,
      inputSchema: GetSnapshotRequestSchema,
      outputSchema: SessionSnapshotSchema,
    },
    async (lookup, { context }) => {
      const snapshot = await readSnapshot(agent, { ...lookup, context });
      if (snapshot) return snapshot;
      const what = lookup.snapshotId
        ? `snapshot ${quote(lookup.snapshotId)}`
        : `session ${quote(lookup.sessionId ?? '')}`;
      throw new GenkitError({ status: 'NOT_FOUND', message: `Agent '${name}' has no ${what}.` });
    },
  );
  const abortAgentAction = defineAction(
    registry,
    {
      actionType: 'agent-abort',
      name,
      description: `Stops a running snapshot of agent '${name}'. Answers the status it had before.`,
      inputSchema: AgentAbortRequestSchema,
      outputSchema: AgentAbortResponseSchema,
    },
    async ({ snapshotId }, { context }) => {
      const status = await abortSnapshot(agent, snapshotId, context);
      return { snapshotId, ...(status && { status }) };
    },
  );
  return {
    getSnapshotDataAction,
    abortAgentAction,
  };
}
