import { refuseCycle } from '../../../src/snapshot/lineage.ts';
import { copyMetadata, copyState } from '../../../src/snapshot/own-copy.ts';
import { revise, sessionOf, type SessionSnapshot, type SessionSnapshotInput } from '../../../src/snapshot/snapshot.ts';
import { Stale } from '../failures.ts';
import { EMPTY_LINEAGE, withArrival } from '../format/lineage.ts';
import { newOwner } from '../format/names.ts';
import type { PointerDocument } from '../format/pointer-document.ts';
import type { SnapshotDocument, SnapshotHead } from '../format/snapshot-document.ts';
import { chainTo, endOf } from '../format/state-chain.ts';
import { addUsage } from '../format/usage-counts.ts';
import type { SnapshotReader } from '../read/snapshot-reader.ts';
import { removeRecordsBefore } from '../remove/delete-session.ts';
import * as writes from './commit-save.ts';
import { planState, type BaseState } from './plan-state.ts';
import { assertFits, type Save } from './save.ts';

/**
 * The first save of a snapshot.
 *
 * @param answer The mutator's answer, where it was asked before the id was known.
 */
export async function createSnapshot<S>(
  save: Save<S>,
  id: string,
  answer: SessionSnapshotInput<S> | undefined,
): Promise<string | null> {
  const answered = answer ?? save.request.mutator(undefined);
  if (answered === null) {
    // Asked about a snapshot that is there, the mutator may answer otherwise.
    if (save.trust === 'cached') throw new Stale();
    return null;
  }
  const next = revise(id, undefined, answered, () => new Date().toISOString());
  assertFits(next, save.tenant);
  const sessionId = sessionOf(next);
  if (sessionId === undefined) return createAlone(save, next);
  return save.inSession({ sessionId, parentId: next.parentId }, () => createInSession(save, next, sessionId));
}

async function createAlone<S>(save: Save<S>, next: SessionSnapshot<S>): Promise<string> {
  const { tenant, nonce } = save;
  save.assertLeaf(undefined, undefined);
  await tenant.hasSnapshots();
  const owner = newOwner('snapshot', next.snapshotId);
  const head = newHead(save, next, { sessionId: undefined, owner, seq: 0 });
  const place = { name: nonce, owner, seq: 0 };
  const plan = await planState(tenant, copyState(next, undefined), { place });
  const time = await save.commit(writes.createSnapshot(tenant, head, plan.state), { plan });
  return save.noteSaved(head, plan.next?.known, time);
}

async function createInSession<S>(save: Save<S>, next: SessionSnapshot<S>, sessionId: string): Promise<string> {
  const { tenant, reader } = save;
  const { snapshotId: id, parentId } = next;
  const stored = await save.pointer(sessionId);
  // The pointer of an expired or deleted session is replaced by that of its next incarnation.
  const pointer = stored && tenant.isLive(stored) ? stored : undefined;
  const before = pointer?.lineage ?? EMPTY_LINEAGE;
  const owner = pointer?.owner ?? newOwner('session', sessionId);
  save.assertLeaf(sessionId, pointer);
  if (before.leaves.some((leaf) => leaf.id === id)) throw save.lost(id);
  if (parentId === id) refuseCycle(id, id);
  if (before.missing.includes(id) && parentId !== undefined) await assertNoCycle(reader, { id, parentId, owner });
  if (stored?.isGone) await removeRecordsBefore(tenant, stored);
  const { isInTree, base } = await findParent(save, parentId, pointer);
  const seq = before.nextSeq;
  const plan = await planState(tenant, copyState(next, base?.known.state), {
    place: { name: save.nonce, owner, seq },
    base,
    packs: () => save.packsOf(base?.chain),
  });
  const head = newHead(save, next, { sessionId, owner, seq });
  const { status } = head.meta;
  const leaf = { id, seq, ...(status && { status }) };
  const chain = plan.next?.chain;
  const written = save.nextPointer(pointer, head, {
    lineage: withArrival(before, leaf, parentId, isInTree),
    usage: addUsage(pointer?.usage ?? {}, usageOf(head)),
    head: chain && { id, chain },
  });
  const write = writes.createSnapshot(tenant, head, plan.state);
  const time = await save.commit(write, { plan, pointer: written, stored });
  return save.noteSaved(head, plan.next?.known, time);
}

function newHead<S>(
  { tenant, nonce }: Save<S>,
  next: SessionSnapshot<S>,
  place: Pick<SnapshotHead, 'sessionId' | 'owner' | 'seq'>,
): SnapshotHead {
  return { meta: copyMetadata(next), ...place, by: [nonce], ...tenant.expiry() };
}

/** Any saver may put a `usage` into the metadata. */
export function usageOf({ meta }: SnapshotHead): unknown {
  return (meta as { usage?: unknown }).usage;
}

async function assertNoCycle(
  reader: SnapshotReader,
  { id, parentId, owner }: { id: string; parentId: string; owner: string },
): Promise<void> {
  const seen = new Set<string>();
  for (let at: string | undefined = parentId; at !== undefined && !seen.has(at);) {
    if (at === id) refuseCycle(id, parentId);
    seen.add(at);
    const ancestor = await reader.snapshot(at);
    at = ancestor?.owner === owner ? ancestor.meta.parentId : undefined;
  }
}

/** Whether a new snapshot's parent is there, and the state that the new snapshot's may stand on. */
async function findParent<S>(
  save: Save<S>,
  parentId: string | undefined,
  pointer: PointerDocument | undefined,
): Promise<{ readonly isInTree: boolean; readonly base?: BaseState | undefined }> {
  if (parentId === undefined || !pointer || pointer.lineage.missing.includes(parentId)) return { isInTree: false };
  const { tenant, reader } = save;
  const { lineage, head, owner } = pointer;
  const leaf = lineage.leaves.find(({ id }) => id === parentId);
  if (leaf && head?.id === parentId) {
    const chain = leaf.status === 'completed' ? head.chain : chainTo(head.chain, head.chain.names.at(-2));
    const known = chain && tenant.caches.states.get(endOf(chain));
    if (known) return { isInTree: true, base: { known, chain } };
  }
  const parent = await save.snapshot(parentId);
  if (parent?.owner !== owner) {
    // A snapshot is never saved on top of one that is lost.
    if (leaf) throw save.lost(parentId);
    return { isInTree: false };
  }
  return { isInTree: true, base: await baseOn(reader, parent, pointer) };
}

/** The state of a completed snapshot; of another the state that its own stands on. */
async function baseOn(
  { states }: SnapshotReader,
  parent: SnapshotDocument,
  pointer: PointerDocument,
): Promise<BaseState | undefined> {
  const { state, meta } = parent;
  if (state.kind === 'none') return undefined;
  const own = await states.chainOf(parent, pointer);
  const chain = meta.status === 'completed' ? own : chainTo(own, own.names.at(-2));
  return chain && { chain, known: await states.stateAt(chain, parent) };
}
