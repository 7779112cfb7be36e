import { GenkitError, type ActionContext } from 'genkit';
import type { AgentInit, SessionSnapshot } from 'genkit/beta';
import { addressTo, AgentInitError, failedPrecondition, invalidArgument, quote } from '../../errors.ts';
import { parsePointer } from '../../json/pointer.ts';
import { copyJson, JsonValueError } from '../../json/value.ts';
import { lastCompleted } from '../../session/log/last-completed.ts';
import { logOf } from '../../session/log/session-log.ts';
import type { SessionOwner } from '../../session/owner.ts';
import { adoptState, Session } from '../../session/session.ts';
import { waitsOf, type Waits } from '../../session/tool-requests.ts';
import { assertId } from '../../snapshot/ids.ts';
import { runStateOf } from '../../snapshot/lease.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { isRunHere } from '../hand-over.ts';
import { runOf } from '../run-lease.ts';
import { callerOf, ownerFor, placeRecords, readErasureFence, readRecords, type Caller } from './agent-scopes.ts';
import { assertNoResources, assertPlainKeys } from './client-input.ts';
import { assertCustomState } from './custom-state.ts';
import { lookupNotFound, readOrExplain } from './damaged-session.ts';
import type { ScopeChange } from '../../store/contract.ts';
import { isHidden } from './visible-snapshot.ts';

export interface OpenedSession<State> extends Waits {
  readonly session: Session<State>;
  /** The snapshot that it continues from. Missing for a new session and for a client's state. */
  readonly parentId?: string;
  /** The leaf that the session must still have when the first turn is saved (`null`: none). Optional: without it the leaf is not checked. */
  readonly expectedLeafId?: string | null;
  readonly caller: Caller;
  /** The owner of the session. Optional: without one the session has no owner. */
  readonly owner?: SessionOwner;
  /** The first turn continues from no snapshot of the session: from none at all, or from one that belongs to no session. */
  readonly isNew?: boolean;
  /** Refuses saves that would restore data that is erased in the meantime. */
  readonly erasureFence?: ScopeChange | undefined;
}

/**
 * Refuses a call that does not fit the way the agent keeps its state.
 *
 * @throws AgentInitError `FAILED_PRECONDITION`
 */
export function assertInitFits<State>(agent: AgentDefinition<State>, init: AgentInit): void {
  const key = init.snapshotId !== undefined ? 'snapshotId' : init.sessionId !== undefined ? 'sessionId' : undefined;
  if (key && !agent.store) {
    throw new AgentInitError({
      status: 'FAILED_PRECONDITION',
      message:
        `Cannot use '${key}' with agent '${agent.name}': it has no store. Set the agent's 'store' or the ` +
        `default 'store' of agentRuntime(); if the callers keep the state, send it as 'state'.`,
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
 * Opens the session of a call: that of a snapshot, of a session's last completed snapshot, of the state that the client sent, or a new one.
 *
 * @throws AgentInitError when the snapshot belongs to another session than the caller names; other `GenkitError`s when it does not exist,
 *   cannot be resumed, or does not fit the agent's `stateSchema`.
 */
export async function openSession<State>(
  agent: AgentDefinition<State>,
  init: AgentInit,
  context: ActionContext | undefined,
): Promise<OpenedSession<State>> {
  const caller = callerOf(agent, context);
  if (!agent.store) {
    if (init.state) agent.signer?.verify(init.state);
    if (!agent.signer) assertNoResources(agent, init.state?.messages);
    if (agent.isStateForgeable) assertPlainKeys(agent, init.state?.custom);
    await assertCustomState(agent, init.state?.custom, { what: 'the state sent along', sentByCaller: true });
    const session = sessionOfClient<State>(init);
    placeRecords(agent, session, caller, undefined);
    return { session, caller };
  }
  // Read in parallel with the snapshot.
  const reading = readRecords(agent, caller);
  const { snapshot, leaf } = await findSnapshot(agent, init, context);
  if (leaf && rejects(agent, init)) assertNotRunning(agent, leaf);
  const expectedLeafId = agent.can.compareLeaf && rejects(agent, init) ? (leaf?.snapshotId ?? null) : undefined;
  // Skipped without a schema, because the await costs a microtask.
  if (snapshot && agent.stateSchema) await assertSnapshotFits(agent, snapshot);
  const session = snapshot ? sessionFrom(agent, snapshot) : new Session<State>({ sessionId: init.sessionId });
  placeRecords(agent, session, caller, reading && (await reading));
  // A session keeps its owner when another user continues it.
  const owner = snapshot ? logOf(snapshot).owner : ownerFor(agent, caller);
  const isNew = snapshot === undefined || sessionOf(snapshot) === undefined;
  const erasureFence = await readErasureFence(agent, caller, { isNew, owner });
  const parentId = snapshot?.snapshotId;
  return { session, parentId, expectedLeafId, caller, owner, isNew, erasureFence, ...waitsOf(snapshot) };
}

/** @throws `INTERNAL` when the snapshot's custom state does not fit the agent's `stateSchema`. */
export function assertSnapshotFits<State>(
  agent: AgentDefinition<State>,
  { snapshotId, state }: SessionSnapshot<State>,
): Promise<void> {
  return assertCustomState(agent, state?.custom, { what: `snapshot ${quote(snapshotId)}` });
}

/** The session of a snapshot. @throws `INTERNAL` when it does not fit the agent's `stateSchema`. */
export function sessionFrom<State>(agent: AgentDefinition<State>, snapshot: SessionSnapshot<State>): Session<State> {
  const state = { ...snapshot.state, sessionId: sessionOf(snapshot) };
  if (!agent.readsNeverChange) return new Session<State>(state);
  // A session never changes messages and artifacts; the custom state is changed in place.
  return adoptState(state.custom === undefined ? state : { ...state, custom: copyJson(state.custom) });
}

/** Whether the call must fail when another turn comes first. */
function rejects<State>({ onConflict }: AgentDefinition<State>, { snapshotId, sessionId }: AgentInit): boolean {
  if (snapshotId !== undefined) return onConflict === 'reject';
  return sessionId !== undefined && onConflict !== 'branch';
}

/** Refuses a new turn while one runs in the background, because the session would then have two leaves. */
export function assertNotRunning<State>(agent: AgentDefinition<State>, leaf: SessionSnapshot): void {
  // A run of this process is alive even if the clock has jumped ahead, as after the process was frozen.
  const isHere = leaf.status === 'pending' && isRunHere(agent.registry, runOf(leaf)?.owner);
  if (!isHere && runStateOf(leaf, agent.background.leaseMs) !== 'running') return;
  const error = new GenkitError({
    status: 'ABORTED',
    message:
      `A turn of this session is running in the background (snapshot ${quote(leaf.snapshotId)}). ` +
      `Wait for it or abort it; to branch, resume from the snapshotId of an earlier turn.`,
  });
  throw addressTo('caller', error);
}

function sessionOfClient<State>({ state }: AgentInit): Session<State> {
  try {
    return new Session<State>(state as AgentInit<State>['state']);
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    throw invalidArgument(
      `The state sent along is not JSON, at ${parsePointer(error.path).join('.')}: ${error.reason}.`,
    );
  }
}

/** Reads frozen: each turn reads the conversation again and never changes it, so this package's stores need not copy it. */
async function findSnapshot<State>(
  agent: AgentDefinition<State>,
  { snapshotId, sessionId }: AgentInit,
  context: ActionContext | undefined,
): Promise<Found<State>> {
  if (sessionId !== undefined) assertId(sessionId, 'sessionId');
  if (snapshotId !== undefined) {
    assertId(snapshotId, 'snapshotId');
    const found = await readOrExplain(agent, { snapshotId, context, frozen: true }, sessionId);
    if (!found || isHidden(agent, found, context)) throw lookupNotFound(agent, { snapshotId });
    assertResumable(found, sessionId);
    return { snapshot: found, leaf: found };
  }
  return sessionId === undefined ? {} : findLastCompleted(agent, sessionId, context);
}

/** The snapshot that a session continues from, and the leaf from which it was found. */
interface Found<State> {
  readonly snapshot?: SessionSnapshot<State>;
  readonly leaf?: SessionSnapshot<State>;
}

function assertResumable<State>(snapshot: SessionSnapshot<State>, sessionId: string | undefined): void {
  const { snapshotId } = snapshot;
  if (sessionId !== undefined && sessionOf(snapshot) !== sessionId) {
    throw new AgentInitError({
      status: 'INVALID_ARGUMENT',
      message: `Snapshot ${quote(snapshotId)} does not belong to session ${quote(sessionId)}.`,
    });
  }
  if (snapshot.status !== 'completed' && snapshot.status !== 'aborted') {
    throw invalidArgument(
      `Snapshot ${quote(snapshotId)} is ${snapshot.status ?? 'without a status'} and cannot be resumed; only completed and aborted ` +
        `snapshots can. By its sessionId the session continues from its last completed turn.`,
    );
  }
}

/** The session's latest leaf, or its nearest completed ancestor; `undefined` when no turn of the session ever completed. */
export async function findLastCompleted<State>(
  agent: AgentDefinition<State>,
  sessionId: string,
  context: ActionContext | undefined,
): Promise<Found<State>> {
  const leaf = await readOrExplain(agent, { sessionId, context, frozen: true });
  assertVisible(agent, leaf, sessionId, context);
  const snapshot = await lastCompleted(leaf, sessionId, async (snapshotId) => {
    const parent = await readOrExplain(agent, { snapshotId, context, frozen: true }, sessionId);
    assertVisible(agent, parent, sessionId, context);
    if (parent) return parent;
    throw failedPrecondition(
      `Session ${quote(sessionId)} has no completed snapshot left to continue from: ${quote(snapshotId)} no longer exists. ` +
        `Start a new session.`,
    );
  });
  return { snapshot, leaf };
}

/** Reports a session that another agent or user owns as not found. */
function assertVisible<State>(
  agent: AgentDefinition<State>,
  snapshot: SessionSnapshot<State> | undefined,
  sessionId: string,
  context: ActionContext | undefined,
): void {
  if (isHidden(agent, snapshot, context)) throw lookupNotFound(agent, { sessionId });
}
