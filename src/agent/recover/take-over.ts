import type { ActionContext } from 'genkit';
import type { SessionSnapshot, SessionStore } from 'genkit/beta';
import { sessionOf } from '../../snapshot/snapshot.ts';
import { isTerminal } from '../../snapshot/status.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { standInFor, type Caller } from '../open/agent-scopes.ts';
import { isExpired } from '../open/expiry.ts';
import { RunLease, runOf, type RunRecord, type RunSnapshot } from '../background/run-lease.ts';
import { ABORTED, givenUp, type TurnEnding } from '../turn-ending.ts';

/** A background run that this process now has. */
export interface TakenRun<State> {
  readonly lease: RunLease;
  readonly sessionId: string | undefined;
  /** Its turns that have no end yet, in order. */
  readonly open: readonly SessionSnapshot<State>[];
  /** The last turn before those, or what the run began from; absent where that was nothing. */
  readonly before: SessionSnapshot<State> | undefined;
  /** The run is not to go on: all that is left of it ends like this. */
  readonly ending: TurnEnding | undefined;
  readonly caller: Caller;
}

/** A run to take over. */
export interface TakeOverRequest<State> {
  agent: AgentDefinition<State>;
  store: SessionStore<State>;
  /** The last snapshot of the run that is there. */
  snapshotId: string;
  context: ActionContext | undefined;
}

/** Whether nobody runs the turn of this snapshot any more. */
export function isDead(snapshot: SessionSnapshot, leaseMs: number): boolean {
  return snapshot.status === 'expired' || isExpired(snapshot, leaseMs);
}

/**
 * Takes a run over whose process is silent. Of any number of processes that try one gets it: the run's last snapshot is the place where that
 * is decided, in one step. When this answers, nothing that the former owner writes is taken any more.
 *
 * @returns Nothing when there is nothing to take: the run is alive, settled, another agent's, or somebody else has it by now.
 */
export async function takeOver<State>(request: TakeOverRequest<State>): Promise<TakenRun<State> | undefined> {
  const { agent, store, snapshotId, context } = request;
  const claim = await claimLast(request);
  if (!claim) return undefined;
  const { lease, last } = claim;
  const turns = [last];
  for (let { parentId } = last; parentId !== undefined; { parentId } = turns[0]!) {
    const snapshot = await store.getSnapshot({ snapshotId: parentId, context });
    if (!snapshot || runOf(snapshot)?.id !== lease.id) break;
    turns.unshift(snapshot);
  }
  // The former owner may be at it still: first what it would write first, so that what it has done has no gap.
  for (const [i, turn] of turns.entries()) {
    if (turn.snapshotId !== snapshotId) turns[i] = await claimTurn(request, lease, turn);
  }
  const firstOpen = turns.findIndex((turn) => !isTerminal(turn.status));
  const previous = turns[firstOpen - 1];
  const { baseId } = claim.run;
  const before =
    previous ?? (baseId === undefined ? undefined : await store.getSnapshot({ snapshotId: baseId, context }));
  // It was stopped by its last turn, or was never stored whole.
  const next = lease.id === snapshotId ? undefined : await store.getSnapshot({ snapshotId: lease.id, context });
  const isBaseGone = baseId !== undefined && !before;
  return {
    lease,
    sessionId: sessionOf(last),
    open: turns.slice(firstOpen),
    before,
    ending: endingAfter(previous) ?? endingAfter(next) ?? (isBaseGone ? gone() : endingOf(agent, claim.run)),
    // Whoever looked for the run may be somebody else.
    caller: standInFor(agent, claim.run.context ? { ...context, ...claim.run.context } : context, claim.run.userId),
  };
}

interface Claim<State> {
  readonly lease: RunLease;
  readonly last: SessionSnapshot<State>;
  /** As the former owner had it. */
  readonly run: RunRecord;
}

async function claimLast<State>(request: TakeOverRequest<State>): Promise<Claim<State> | undefined> {
  const { agent, store, snapshotId, context } = request;
  let claim: Claim<State> | undefined;
  const saved = await store.saveSnapshot(
    snapshotId,
    (current) => {
      claim = undefined;
      const run = runOf(current);
      if (!current || run?.agent !== agent.name || !isDead(current, agent.background.leaseMs)) return null;
      const lease = RunLease.next(run, agent.background.leaseMs);
      const last = claimed(current, run, lease);
      claim = { lease, last, run };
      return last;
    },
    { context },
  );
  return saved === null ? undefined : claim;
}

/** Answers the turn as it is from now on. */
async function claimTurn<State>(
  { store, context }: TakeOverRequest<State>,
  lease: RunLease,
  turn: SessionSnapshot<State>,
): Promise<SessionSnapshot<State>> {
  let after = turn;
  await store.saveSnapshot(
    turn.snapshotId,
    (current) => {
      const run = runOf(current);
      after = current ?? turn;
      if (!current || !run || isTerminal(current.status) || run.generation >= lease.generation) return null;
      after = claimed(current, run, lease);
      return after;
    },
    { context },
  );
  return after;
}

function claimed<State>(current: SessionSnapshot<State>, run: RunRecord, lease: RunLease): RunSnapshot<State> {
  const now = new Date().toISOString();
  return { ...current, status: 'pending', heartbeatAt: now, updatedAt: now, backgroundRun: lease.recordOf(run) };
}

/** What the end of one of its turns means for the others; `undefined`: they go on. */
function endingAfter(turn: SessionSnapshot | undefined): TurnEnding | undefined {
  if (turn?.status === 'aborted') return ABORTED;
  return turn?.status === 'failed' ? givenUp('This turn was not run: another one of its run failed.') : undefined;
}

/** Why a run is not taken over once more; `undefined` when it is. */
function endingOf<State>(
  { background: { maxAttempts } }: AgentDefinition<State>,
  { generation }: RunRecord,
): TurnEnding | undefined {
  if (generation <= maxAttempts) return undefined;
  const died = maxAttempts === 0 ? '' : `, and so did each that took it over (${maxAttempts})`;
  return givenUp(`This run was given up: its process died${died}. Its input is kept; run it again.`);
}

function gone(): TurnEnding {
  return givenUp('This run was given up: its process died, and the snapshot that it continues from is gone.');
}

/** Gives all that is left of a run its end, the last turn last: should this process die as well, the run is found again. */
export async function endRun<State>(
  { store, context }: TakeOverRequest<State>,
  { open, lease }: TakenRun<State>,
  ending: TurnEnding,
): Promise<void> {
  for (const { snapshotId } of open) {
    await store.saveSnapshot(
      snapshotId,
      (current) =>
        current && !isTerminal(current.status) && lease.holds(current)
          ? { ...current, ...ending, ...usageOfRun(current), updatedAt: new Date().toISOString() }
          : null,
      { context },
    );
  }
}

/** The usage of a turn that ends with the run it is part of. */
function usageOfRun(snapshot: SessionSnapshot): Pick<RunRecord, 'usage'> {
  const { usage } = runOf(snapshot) ?? {};
  return usage ? { usage } : {};
}
