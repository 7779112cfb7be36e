import { GenkitError, type ActionContext } from 'genkit';
import type { AgentInit, SessionSnapshot, SessionStore } from 'genkit/beta';
import { AgentInitError, failedPrecondition, invalidArgument, quote } from '../errors.ts';
import { Session } from '../session/session.ts';
import { assertId } from '../snapshot/ids.ts';
import { sessionOf } from '../snapshot/snapshot.ts';
import type { AgentDefinition } from './agent-definition.ts';
import { assertCustomState } from './custom-state.ts';

/** A session to run turns on. */
export interface OpenedSession<State> {
  readonly session: Session<State>;
  /** The snapshot that it continues from; absent for a new session and for a client's state. */
  readonly parentId?: string;
}

/**
 * Refuses a call that does not fit how the agent keeps its state.
 *
 * @throws AgentInitError `FAILED_PRECONDITION`
 */
export function assertInitFits<State>(agent: AgentDefinition<State>, init: AgentInit): void {
  const key = init.snapshotId !== undefined ? 'snapshotId' : init.sessionId !== undefined ? 'sessionId' : undefined;
  if (key && !agent.store) {
    throw new AgentInitError({
      status: 'FAILED_PRECONDITION',
      message: `Cannot use '${key}' with agent '${agent.name}': it has no store, its callers keep the state. Send 'state' instead.`,
    });
  }
  if (init.state !== undefined && agent.store) {
    throw new AgentInitError({
      status: 'FAILED_PRECONDITION',
      message: `Cannot send 'state' to agent '${agent.name}': it keeps its state in a store. Send 'snapshotId' or 'sessionId' instead.`,
    });
  }
}

/**
 * Resolves the session that a call is about: the one of a snapshot, of a session's last completed snapshot, of the state that the client
 * sent, or a new one.
 *
 * @throws AgentInitError when the snapshot belongs to another session than the caller says; other `GenkitError`s for what is not there, is
 *   not to be resumed, or does not fit the agent's `stateSchema`.
 */
export async function openSession<State>(
  agent: AgentDefinition<State>,
  init: AgentInit,
  context: ActionContext | undefined,
): Promise<OpenedSession<State>> {
  if (!agent.store) {
    await assertCustomState(agent, init.state?.custom, 'the state sent along');
    return { session: new Session<State>(init.state as AgentInit<State>['state']) };
  }
  const snapshot = await findSnapshot(agent.store, init, context);
  if (!snapshot) return { session: new Session<State>({ sessionId: init.sessionId }) };
  const { snapshotId } = snapshot;
  await assertCustomState(agent, snapshot.state?.custom, `snapshot ${quote(snapshotId)}`);
  return { session: new Session<State>({ ...snapshot.state, sessionId: sessionOf(snapshot) }), parentId: snapshotId };
}

async function findSnapshot<State>(
  store: SessionStore<State>,
  { snapshotId, sessionId }: AgentInit,
  context: ActionContext | undefined,
): Promise<SessionSnapshot<State> | undefined> {
  if (sessionId !== undefined) assertId(sessionId, 'sessionId');
  if (snapshotId !== undefined) {
    assertId(snapshotId, 'snapshotId');
    return mustBeResumable(await store.getSnapshot({ snapshotId, context }), snapshotId, sessionId);
  }
  return sessionId === undefined ? undefined : findLastCompleted(store, sessionId, context);
}

function mustBeResumable<State>(
  snapshot: SessionSnapshot<State> | undefined,
  snapshotId: string,
  sessionId: string | undefined,
): SessionSnapshot<State> {
  if (!snapshot)
    throw new GenkitError({ status: 'NOT_FOUND', message: `Snapshot ${quote(snapshotId)} was not found.` });
  if (sessionId !== undefined && sessionOf(snapshot) !== sessionId) {
    throw new AgentInitError({
      status: 'INVALID_ARGUMENT',
      message: `Snapshot ${quote(snapshotId)} does not belong to session ${quote(sessionId)}.`,
    });
  }
  if (snapshot.status !== 'completed' && snapshot.status !== 'aborted') {
    throw invalidArgument(
      `Snapshot ${quote(snapshotId)} is ${snapshot.status ?? 'without a status'} and cannot be resumed: only completed and aborted ` +
        `snapshots can.`,
    );
  }
  return snapshot;
}

/** The latest leaf, or the nearest completed snapshot before it; `undefined` when no turn of the session ever completed. */
async function findLastCompleted<State>(
  store: SessionStore<State>,
  sessionId: string,
  context: ActionContext | undefined,
): Promise<SessionSnapshot<State> | undefined> {
  const seen = new Set<string>();
  let snapshot = await store.getSnapshot({ sessionId, context });
  while (snapshot && snapshot.status !== 'completed') {
    const { parentId }: SessionSnapshot<State> = snapshot;
    if (parentId === undefined) return undefined;
    if (seen.has(parentId)) {
      throw failedPrecondition(
        `The snapshots of session ${quote(sessionId)} name each other as parents in a circle (at ${quote(parentId)}). ` +
          `Resume it by snapshotId.`,
      );
    }
    seen.add(parentId);
    snapshot = await store.getSnapshot({ snapshotId: parentId, context });
    if (!snapshot) {
      throw failedPrecondition(
        `Session ${quote(sessionId)} has no completed snapshot left to continue from: ${quote(parentId)} is gone. ` +
          `Start a new session.`,
      );
    }
  }
  return snapshot;
}
