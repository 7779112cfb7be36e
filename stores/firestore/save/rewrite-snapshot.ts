import { jsonEqual, type Json } from '../../../src/json/value.ts';
import { copyMetadata, copyState } from '../../../src/snapshot/own-copy.ts';
import { assertStateMayChange, revise, storedOf } from '../../../src/snapshot/snapshot.ts';
import type { KnownState } from '../../chain/written-state.ts';
import { isConflict, isDataLoss, Stale } from '../failures.ts';
import type { PointerDocument } from '../format/pointer-document.ts';
import { nextBy, type SnapshotDocument, type SnapshotHead } from '../format/snapshot-document.ts';
import { chainTo } from '../format/state-chain.ts';
import { addUsage } from '../format/usage-counts.ts';
import { handOutLoaded } from '../read/snapshot-reader.ts';
import * as writes from './commit-save.ts';
import { usageOf } from './create-snapshot.ts';
import { planState, type StatePlan } from './plan-state.ts';
import { assertFits, type Save } from './save.ts';

/** A snapshot as it is, and as it is going to be. */
interface Revision {
  readonly current: SnapshotDocument;
  readonly loaded: KnownState | undefined;
  readonly head: SnapshotHead;
  /** The changed state; the current one when it stays as it is. */
  readonly state: Json | undefined;
  readonly isSameState: boolean;
}

/**
 * A save of a snapshot that is there.
 *
 * @param current The snapshot as it was just read; the commit counts only while it is so.
 */
export async function rewriteSnapshot<S>(save: Save<S>, current: SnapshotDocument): Promise<string | null> {
  const { meta, sessionId, owner, seq } = current;
  const { tenant, request, nonce } = save;
  if (!(await save.reader.isAlive(current))) await clearAway(save, current);
  const loaded = await load(save, current);
  const answer = request.mutator(handOutLoaded<S>({ snapshot: current, state: loaded }));
  if (answer === null) return null;
  const next = revise(meta.snapshotId, storedOf(meta, sessionId), answer, () => new Date().toISOString());
  assertFits(next, tenant);
  const state = copyState(next, loaded?.state);
  const by = nextBy(current.by, nonce);
  const head = { meta: copyMetadata(next), sessionId, owner, seq, by, ...tenant.expiry() };
  const revision = { current, loaded, head, state, isSameState: state === loaded?.state };
  if (sessionId === undefined) return rewriteAlone(save, revision);
  if (isHeartbeat(save, revision)) return beat(save, revision);
  return save.inSession({ sessionId }, () => rewriteInSession(save, revision, sessionId));
}

async function load<S>(save: Save<S>, current: SnapshotDocument): Promise<KnownState | undefined> {
  try {
    return await save.reader.states.stateOf(current);
  } catch (error) {
    if (!isDataLoss(error)) throw error;
    // It may have been rewritten or removed since it was read.
    const now = await save.reader.recheck(current);
    if (now === 'absent') await clearAway(save, current);
    throw now === 'unchanged' ? error : new Stale();
  }
}

/** Removes what is left of an expired or deleted session, because its id is used again. */
async function clearAway<S>({ tenant }: Save<S>, { ref, updateTime }: SnapshotDocument): Promise<never> {
  try {
    await tenant.database.commit([{ kind: 'delete', ref, at: updateTime }]);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
  throw new Stale();
}

async function rewriteAlone<S>(save: Save<S>, revision: Revision): Promise<string> {
  save.assertLeaf(undefined, undefined);
  const plan = await planRewrite(save, revision, undefined);
  return commit(save, revision, plan, {});
}

/** Whether it is a heartbeat: then the session's pointer has nothing to learn, unless the session is to live longer. */
function isHeartbeat<S>({ request, tenant }: Save<S>, { current, head, isSameState }: Revision): boolean {
  const { status, heartbeatAt } = head.meta;
  const { settings, database } = tenant;
  return (
    isSameState &&
    heartbeatAt !== current.meta.heartbeatAt &&
    status === current.meta.status &&
    request.expectedLeafId === undefined &&
    !request.session &&
    jsonEqual(usageOf(head), usageOf(current)) &&
    (settings.expireAfterMs === undefined || (current.until ?? 0) > database.now() + settings.expireAfterMs / 2)
  );
}

function beat<S>(save: Save<S>, revision: Revision): Promise<string> {
  const { until: _until, ...head } = revision.head;
  const { until } = revision.current;
  const beating = { ...revision, head: until === undefined ? head : { ...head, until } };
  return commit(save, beating, undefined, {});
}

async function rewriteInSession<S>(save: Save<S>, revision: Revision, sessionId: string): Promise<string> {
  const { current, head, isSameState } = revision;
  const { snapshotId: id, status } = head.meta;
  const pointer = await save.pointer(sessionId);
  if (!pointer || !save.tenant.isLive(pointer) || pointer.owner !== current.owner) {
    if (save.trust === 'cached') throw new Stale();
    return clearAway(save, current);
  }
  save.assertLeaf(sessionId, pointer);
  const { lineage, head: headBefore, usage } = pointer;
  const hasChildren = (): boolean => lineage.leaves.every((leaf) => leaf.id !== id);
  assertStateMayChange(current.meta, hasChildren, () => isSameState);
  const plan = await planRewrite(save, revision, pointer);
  const chain = plan?.next?.chain;
  const leaves = lineage.leaves.map((leaf) =>
    leaf.id === id ? { id, seq: leaf.seq, ...(status && { status }) } : leaf,
  );
  const written = save.nextPointer(pointer, head, {
    lineage: { ...lineage, leaves },
    usage: addUsage(addUsage(usage, usageOf(current), -1), usageOf(head)),
    head: plan && headBefore?.id === id ? chain && { id, chain } : headBefore,
  });
  return commit(save, revision, plan, { pointer: written, stored: pointer });
}

/** The changed state stands on the same base as the current one; `undefined`: the state stays as it is. */
async function planRewrite<S>(
  save: Save<S>,
  { current, loaded, state, isSameState }: Revision,
  pointer: PointerDocument | undefined,
): Promise<StatePlan | undefined> {
  if (isSameState) return undefined;
  const { states } = save.reader;
  const own = loaded && (await states.chainOf(current, pointer));
  const chain = own && chainTo(own, own.names.at(-2));
  return planState(save.tenant, state, {
    place: { name: save.nonce, owner: current.owner, seq: current.seq },
    base: chain && { chain, known: await states.stateAt(chain, current) },
    memory: loaded?.memory,
    packs: () => save.packsOf(own),
  });
}

async function commit<S>(
  save: Save<S>,
  { current, head, loaded }: Revision,
  plan: StatePlan | undefined,
  pointers: Pick<Parameters<typeof save.commit>[1], 'pointer' | 'stored'>,
): Promise<string> {
  const time = await save.commit(writes.rewriteSnapshot(current, head, plan?.state), { plan, ...pointers });
  return save.noteSaved(head, plan ? plan.next?.known : loaded, time);
}
