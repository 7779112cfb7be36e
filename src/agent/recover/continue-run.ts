import { logOf } from '../../session/log/session-log.ts';
import type { SessionOwner } from '../../session/owner.ts';
import type { TurnOutcome } from '../../session/turn.ts';
import { Session } from '../../session/session.ts';
import { waitsOf } from '../../session/tool-requests.ts';
import { addUsage } from '../../session/usage.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { runOf, turnOf } from '../run-lease.ts';
import { ownerFor, placeRecords, readRecords } from '../open/agent-scopes.ts';
import { assertSnapshotFits, sessionFrom } from '../open/open-session.ts';
import { toRuntimeError } from '../runtime-error.ts';
import { AbortScope } from '../abort-scope.ts';
import { Intake } from '../intake.ts';
import { runFunction, settingOf } from '../turn/run-function.ts';
import type { AgentFn } from '../types.ts';
import type { TakenRun } from './take-over.ts';

/**
 * Continues a background run that was taken over from its last completed turn. Never rejects: failures are stored in the run's snapshots.
 *
 * @param run Must have at least one open turn.
 */
export async function continueRun<State>(
  agent: AgentDefinition<State>,
  fn: AgentFn<State>,
  run: TakenRun<State>,
): Promise<void> {
  const { lease, open, before, caller } = run;
  const scope = new AbortScope(new AbortController().signal);
  const turns = open.map(turnOf).filter((turn) => turn !== undefined);
  const intake = new Intake(noInputs(), () => {}, turns);
  const { session, owner, failure } = await reopen(agent, run);
  addUsage(session, runOf(open[0])?.usage);
  const opened = { session, owner, caller, ...waitsOf(before), ...(before && { parentId: before.snapshotId }) };
  const setting = settingOf<State>({ agent, intake, scope, opened });
  setting.background.takeOver(
    lease,
    open.map(({ snapshotId }) => snapshotId),
  );
  if (failure) return setting.background.settle(failure);
  await runFunction(fn, setting);
}

// oxlint-disable-next-line require-yield
async function* noInputs(): AsyncGenerator<never> {}

/** The session as it was before the open turns. An error here fails them. */
async function reopen<State>(
  agent: AgentDefinition<State>,
  { before, sessionId, caller }: TakenRun<State>,
): Promise<{ session: Session<State>; owner?: SessionOwner; failure?: TurnOutcome }> {
  const owner = before ? logOf(before).owner : ownerFor(agent, caller);
  try {
    if (before) await assertSnapshotFits(agent, before);
    const session = before ? sessionFrom(agent, before) : new Session<State>({ sessionId });
    placeRecords(agent, session, caller, await readRecords(agent, caller));
    return { session, owner };
  } catch (error) {
    const failure: TurnOutcome = { status: 'failed', error: toRuntimeError(error) };
    return { session: new Session<State>({ sessionId }), owner, failure };
  }
}
