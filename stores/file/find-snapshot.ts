import { dataLoss, quote } from '../../src/errors.ts';
import { resolveLeaf, type Lookup } from '../../src/store/lookup.ts';
import { sessionNameOf } from './names.ts';
import type { Session } from './session.ts';
import type { IndexNode } from './session-index.ts';
import type { Tenant } from './tenant.ts';

/** A snapshot, and the session that it was found in. */
export interface FoundSnapshot {
  readonly session: Session;
  readonly node: IndexNode;
}

/** The session of this id, brought up to date; `undefined` when there is none. */
export async function findSession(tenant: Tenant, sessionId: string): Promise<Session | undefined> {
  if (tenant.folder.kind() === 'none') return undefined;
  const session = await tenant.session(sessionNameOf(sessionId));
  const isIt = session.id === sessionId || (session.id === undefined && session.missingLeaf !== undefined);
  return isIt ? session : undefined;
}

/**
 * The snapshot that a lookup means; `undefined` when there is none.
 *
 * @throws `FAILED_PRECONDITION` when that is not clear, `DATA_LOSS` when it is missing or damaged.
 */
export async function findSnapshot(
  tenant: Tenant,
  { by, id }: Lookup,
  { rejectBranching }: { rejectBranching: boolean },
): Promise<FoundSnapshot | undefined> {
  const session = by === 'snapshot' ? await locate(tenant, id) : await findSession(tenant, id);
  if (!session) return undefined;
  const node = by === 'snapshot' ? session.index.tree.get(id) : leafOf(session, id, rejectBranching);
  return node && { session, node };
}

async function locate(tenant: Tenant, snapshotId: string): Promise<Session | undefined> {
  return tenant.folder.kind() === 'none' ? undefined : tenant.locate(snapshotId);
}

function leafOf(session: Session, sessionId: string, rejectBranching: boolean): IndexNode | undefined {
  assertLeafIsThere(session, sessionId);
  return resolveLeaf(session.index.tree, sessionId, rejectBranching);
}

/**
 * @throws `DATA_LOSS` when the session's latest snapshot is named by a pointer, and is missing or damaged.
 */
export function assertLeafIsThere({ missingLeaf }: Session, sessionId: string): void {
  if (missingLeaf === undefined) return;
  throw dataLoss(
    `Snapshot ${quote(missingLeaf)}, the latest of session ${quote(sessionId)}, is missing or damaged. Restore it from a backup, or ` +
      `resume from another snapshot.`,
  );
}
