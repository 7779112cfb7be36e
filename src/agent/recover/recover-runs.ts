import { runWithContext } from '@genkit-ai/core';
import type { ActionContext } from 'genkit';
import { logger } from 'genkit/logging';
import { runInNewSpan, SPAN_TYPE_ATTR } from 'genkit/tracing';
import { logError, quote } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import { checkOptions, isListOf, isObject, isString } from '../../store/check-options.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { definedAgents, type DefinedAgent } from '../defined-agents.ts';
import { findPendingLeaves, type FindRunsOptions } from './find-runs.ts';
import { contextFor, registryOf } from '../registry.ts';
import { readMetadata } from '../open/read-snapshot.ts';
import { continueRun } from './continue-run.ts';
import { runOf } from '../run-lease.ts';
import { endRun, isDead, takeOver, type TakenRun, type TakeOverRequest } from './take-over.ts';
import type { GenkitOrRegistry } from '../types.ts';

/** Options of {@link recoverRuns}. */
export interface RecoverOptions {
  /** The context for the stores, and so the tenant to search. The runs get it as their context, overridden by the part that `keepContext` kept. */
  context?: ActionContext;
  /** Takes over only the runs of these snapshots. Required for a store that cannot list its sessions. */
  snapshotIds?: readonly string[];
}

/** A run that {@link recoverRuns} took over. */
export interface RecoveredRun {
  /** The agent's name. */
  agent: string;
  /** The session of the run. */
  sessionId?: string;
  /** The run's last stored snapshot: when it is terminal, the whole run has ended. */
  snapshotId: string;
  /** 2 when the run was taken over for the first time, increased by each takeover. */
  generation: number;
  /** `'continued'`: the run continues. `'settled'`: it was ended, because its process died too often or one of its turns stopped it. */
  outcome: 'continued' | 'settled';
}

/** Result of {@link recoverRuns}. */
export interface Recovery {
  /** In the order in which they were found. */
  runs: RecoveredRun[];
  /** Names of agents whose stores cannot list their sessions: for these only the runs in `snapshotIds` were considered. */
  unlisted: string[];
}

/**
 * Takes over the background runs whose processes died: runs without a heartbeat for longer than their agent's `background.leaseMs`. Each
 * continues from its last completed turn, in this process and in the background; wait for its snapshot to see it end. A run has one owner:
 * when several processes try, one gets it, and later writes of a former owner that was only paused are refused.
 *
 * The turn that was running starts again from its beginning, so its tools may run a second time.
 *
 * It searches all sessions of the tenant through the store's list. Agents with `background.recover` do this by themselves.
 *
 * @param ai The `Genkit` instance, or its registry, with the agents.
 * @throws `INVALID_ARGUMENT` when `ai` is neither, and for an unknown option; the store's errors from listing its sessions. A run that cannot be taken over is
 *   logged, and found again by the next search.
 * @example
 * const { runs } = await recoverRuns(ai);
 * for (const { snapshotId } of runs) await support.waitForSnapshot(snapshotId);
 */
export async function recoverRuns(ai: GenkitOrRegistry, options: RecoverOptions = {}): Promise<Recovery> {
  const registry = registryOf(ai);
  checkOptions('recoverRuns', options, { context: isObject, snapshotIds: isListOf(isString, 'ids') });
  const agents = definedAgents(registry).filter(({ agent }) => agent.store);
  const context = contextFor(registry, options.context);
  const { snapshotIds } = options;
  if (snapshotIds) {
    for (const snapshotId of snapshotIds) assertId(snapshotId, 'snapshotId');
    const { runs } = await collect(agents, context, async function* () {
      yield* snapshotIds;
    });
    return { runs, unlisted: [] };
  }
  const unlisted = agents.filter(({ agent }) => !agent.can.list).map(({ agent }) => agent.name);
  if (unlisted.length > 0) {
    logger.warn(
      `recoverRuns cannot find the runs of ${unlisted.join(', ')}: the store cannot list its sessions. Pass their snapshotIds.`,
    );
  }
  const listed = agents.filter(({ agent }) => agent.can.list);
  const { runs } = await recoverListed(listed, { context });
  return { runs, unlisted };
}

interface Collected {
  runs: RecoveredRun[];
  /** Some runs could not be taken over; the next search may succeed. */
  hasFailed: boolean;
}

/** Takes over the runs of agents whose stores can list their sessions. */
export async function recoverListed(agents: readonly DefinedAgent[], options: FindRunsOptions): Promise<Collected> {
  return collect(agents, options.context, (agent) => findPendingLeaves(agent.store as SnapshotStore, options));
}

/** Searches each store once, for all agents that share it. */
async function collect(
  agents: readonly DefinedAgent[],
  context: ActionContext | undefined,
  find: (agent: AgentDefinition) => AsyncGenerator<string>,
): Promise<Collected> {
  const runs: RecoveredRun[] = [];
  let hasFailed = false;
  for (const store of new Set(agents.map(({ agent }) => agent.sharedStore))) {
    const sharing = agents.filter(({ agent }) => agent.sharedStore === store);
    for await (const snapshotId of find(sharing[0]!.agent)) {
      try {
        const run = await recover(sharing, snapshotId, context);
        if (run) runs.push(run);
      } catch (error) {
        hasFailed = true;
        // A run that cannot be read or written must not stop the others.
        logError(`The run of snapshot ${quote(snapshotId)} could not be taken over.`, error);
      }
    }
  }
  return { runs, hasFailed };
}

async function recover(
  agents: readonly DefinedAgent[],
  foundId: string,
  context: ActionContext | undefined,
): Promise<RecoveredRun | undefined> {
  const found = await readMetadata(agents[0]!.agent, { snapshotId: foundId, context });
  const defined = agents.find(({ agent }) => agent.name === runOf(found)?.agent);
  if (!found || !defined || !isDead(defined.agent, found)) return undefined;
  const { agent, fn } = defined;
  const store = agent.store!;
  const { id } = runOf(found)!;
  // Any snapshot id of a run stands for the whole run.
  const last = id === foundId ? found : await readMetadata(agent, { snapshotId: id, context });
  const snapshotId = last && isDead(agent, last) ? id : foundId;
  const request: TakeOverRequest<unknown> = { agent, store, snapshotId, context };
  const run = await takeOver(request);
  if (!run) return undefined;
  if (run.ending) await endRun(request, run, run.ending);
  else void continueInBackground({ agent, fn }, run);
  return {
    agent: agent.name,
    ...(run.sessionId !== undefined && { sessionId: run.sessionId }),
    snapshotId,
    generation: run.lease.generation,
    outcome: run.ending ? 'settled' : 'continued',
  };
}

/** Continues the run as a regular call runs: with its context, in a span, in the session's queue. */
async function continueInBackground({ agent, fn }: DefinedAgent, run: TakenRun<unknown>): Promise<void> {
  const { name } = agent;
  const labels = { [SPAN_TYPE_ATTR]: 'action', 'genkit:metadata:subtype': 'agent' };
  const go = () =>
    runWithContext(run.caller.context, () =>
      runInNewSpan({ metadata: { name }, labels }, () => continueRun(agent, fn, run)),
    );
  try {
    const queue = agent.onConflict === 'queue' ? run.sessionId : undefined;
    await (queue === undefined ? go() : agent.turns.run(queue, go));
  } catch (error) {
    const last = run.open.at(-1)!.snapshotId;
    logError(`A run of agent '${name}' that was taken over (snapshot ${quote(last)}) could not be continued.`, error);
  }
}
