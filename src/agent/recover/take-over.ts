import type { ActionContext } from 'genkit';
import type { SessionSnapshot, SessionStore } from 'genkit/beta';
import { isLeaseOver } from '../../snapshot/lease.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import { isTerminal } from '../../snapshot/status.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { isRunHere } from '../hand-over.ts';
import { callerAs, type Caller } from '../open/agent-scopes.ts';
import { RunLease, runOf, type RunRecord, type RunSnapshot } from '../run-lease.ts';
import { ABORTED, givenUp, type TurnEnding } from '../turn-ending.ts';

/** A background run that this process now owns. */
export interface TakenRun<State> {
  readonly lease: RunLease;
  readonly sessionId: string | undefined;
  /** Its turns without an end, in order. */
  readonly open: readonly SessionSnapshot<State>[];
  /** The last turn before those, or the snapshot that the run began from. Missing when the run began a session. */
  readonly before: SessionSnapshot<State> | undefined;
  /** Set when the run must not continue: the end of all its open turns. */
  readonly ending: TurnEnding | undefined;
  readonly caller: Caller;
}

export interface TakeOverRequest<State> {
  agent: AgentDefinition<State>;
  store: SessionStore<State>;
  /** The run's last stored snapshot. */
  snapshotId: string;
  context: ActionContext | undefined;
}

/** Whether the worker of this snapshot's turn is dead. */
export function isDead<State>({ registry, background }: AgentDefinition<State>, snapshot: SessionSnapshot): boolean {
  return !isRunHere(registry, runOf(snapshot)?.owner) && isLeaseOver(snapshot, background.leaseMs);
}

/**
 * Takes over a run without a recent heartbeat. When several processes try, exactly one gets it, by an atomic write of the run's last snapshot.
 * After this resolves, the store refuses all writes of the former owner.
 *
 * @returns `undefined` if the run is alive, has ended, belongs to another agent, or is already taken over.
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
  // The former owner may still write. Claims the turns in the order in which it writes them, so that no open turn precedes one that it ended.
  for (const [i, turn] of turns.entries()) {
    if (turn.snapshotId !== snapshotId) turns[i] = await claimTurn(request, lease, turn);
  }
  const firstOpen = turns.findIndex((turn) => !isTerminal(turn.status));
  const previous = turns[firstOpen - 1];
  const { baseId } = claim.run;
  const before =
    previous ?? (baseId === undefined ? undefined : await store.getSnapshot({ snapshotId: baseId, context }));
  // The run's last turn was ended by another process, for example aborted, or was never stored.
  const next = lease.id === snapshotId ? undefined : await store.getSnapshot({ snapshotId: lease.id, context });
  const isBaseGone = baseId !== undefined && !before;
  return {
    lease,
    sessionId: sessionOf(last),
    open: turns.slice(firstOpen),
    before,
    ending: endingAfter(previous) ?? endingAfter(next) ?? (isBaseGone ? baseMissing() : endingOf(agent, claim.run)),
    // The run keeps its user when another process takes it over.
    caller: callerAs(agent, claim.run.context ? { ...context, ...claim.run.context } : context, claim.run.userId),
  };
}

interface Claim<State> {
  readonly lease: RunLease;
  readonly last: SessionSnapshot<State>;
  /** As the former owner wrote it. */
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
      if (!current || run?.agent !== agent.name || !isDead(agent, current)) return null;
      const lease = RunLease.next(run, agent.background.leaseMs);
      const last = claimed(current, run, lease);
      claim = { lease, last, run };
      return last;
    },
    { context },
  );
  return saved === null ? undefined : claim;
}

/** Returns the claimed turn. */
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

/** How the other turns of the run end because this one has ended; `undefined` when they continue. */
function endingAfter(turn: SessionSnapshot | undefined): TurnEnding | undefined {
  if (turn?.status === 'aborted') return ABORTED;
  return turn?.status === 'failed'
    ? givenUp('This turn was not run because another turn of its run failed.')
    : undefined;
}

/** The reason to end a run instead of taking it over; `undefined` when it continues. */
function endingOf<State>(
  { background: { maxAttempts } }: AgentDefinition<State>,
  { generation }: RunRecord,
): TurnEnding | undefined {
  if (generation <= maxAttempts) return undefined;
  const died = maxAttempts === 0 ? '' : `, and so did the process of each takeover (${maxAttempts})`;
  return givenUp(`This run was given up because its process died${died}. Its input is saved; run it again.`);
}

function baseMissing(): TurnEnding {
  return givenUp(
    'This run was given up because its process died and the snapshot that it continues from no longer exists.',
  );
}

/** Ends all open turns of a run, the last turn last: if this process dies as well, the run is still found. */
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

/** The usage of a turn that ends with its run. */
function usageOfRun(snapshot: SessionSnapshot): Pick<RunRecord, 'usage'> {
  const { usage } = runOf(snapshot) ?? {};
  return usage ? { usage } : {};
}
