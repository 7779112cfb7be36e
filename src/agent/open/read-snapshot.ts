import type { SessionSnapshot, SessionState } from 'genkit/beta';
import { visibleCustomOf } from '../../session/state/session-state.ts';
import { adoptState } from '../../session/session.ts';
import { isLeaseOver } from '../../snapshot/lease.ts';
import { metadataOf, type SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { SnapshotLookup, SnapshotStore } from '../../store/contract.ts';
import { checkLookup } from '../../store/check-lookup.ts';
import { mustHaveStore, toClientState, type AgentDefinition } from '../agent-definition.ts';
import { statusOf } from '../runtime-error.ts';
import { callerOf, placeRecords, readRecords, type Caller, type Records } from './agent-scopes.ts';
import { orExplain, readOrExplain } from './damaged-session.ts';
import { isHidden, withoutInternals } from './visible-snapshot.ts';

export interface ReadRequest extends SnapshotLookup {
  /** Reads the snapshot without its state. */
  metadataOnly?: boolean;
}

/**
 * Reads a snapshot as clients see it. A running one without a recent heartbeat reads as `expired`.
 *
 * @throws `FAILED_PRECONDITION` for an agent without a store, and the store's errors.
 */
export async function readSnapshot<State>(
  agent: AgentDefinition<State>,
  { metadataOnly = false, ...lookup }: ReadRequest,
): Promise<SessionSnapshot<State> | undefined> {
  mustHaveStore(agent, 'Reading a snapshot');
  checkLookup(lookup);
  const caller = callerOf(agent, lookup.context);
  const reading = metadataOnly ? undefined : readRecords(agent, caller);
  const finding = metadataOnly ? orExplain(agent, lookup, readMetadata(agent, lookup)) : readOrExplain(agent, lookup);
  const found = await finding.catch(undefinedIfHidden);
  if (!found || isHidden(agent, found, lookup.context)) return undefined;
  const visible = withoutInternals(found);
  const seen: SessionSnapshot<State> = isLeaseOver(found, agent.background.leaseMs)
    ? { ...visible, status: 'expired' }
    : visible;
  if (!seen.state) return seen;
  const state = reading ? withShared(agent, seen.state, { caller, records: await reading }) : seen.state;
  return { ...seen, state: toClientState(agent, state) as SessionSnapshot<State>['state'] };
}

function undefinedIfHidden(error: unknown): undefined {
  if (statusOf(error) !== 'NOT_FOUND') throw error;
}

/** The state with the current shared scopes: always the reader's own `user:` keys, even in the session of another user. */
function withShared<State>(
  agent: AgentDefinition<State>,
  state: SessionState<State>,
  { caller, records }: { caller: Caller; records: Records },
): SessionState<State> {
  const session = adoptState(state);
  placeRecords(agent, session, caller, records);
  const custom = visibleCustomOf(session) as State | undefined;
  return custom === undefined ? state : { ...state, custom };
}

/** The snapshot as it is stored, without its state. A store that can't read metadata alone reads all of it. */
export async function readMetadata<State>(
  { can, store }: AgentDefinition<State>,
  lookup: SnapshotLookup,
): Promise<SnapshotMetadata | undefined> {
  if (can.metadata) return (store as SnapshotStore<State>).getSnapshotMetadata(lookup);
  const snapshot = await store!.getSnapshot(lookup);
  return snapshot && metadataOf(snapshot);
}
