import { jsonEqual, type Json } from '../../../src/json/value.ts';
import { refuseCycle } from '../../../src/snapshot/session-tree.ts';
import { copyMetadata, copyState } from '../../../src/snapshot/own-copy.ts';
import {
  assertStateMayChange,
  revise,
  sessionOf,
  storedOf,
  type SessionSnapshot,
  type SessionSnapshotInput,
} from '../../../src/snapshot/snapshot.ts';
import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import { assertRequiredSnapshot } from '../../../src/store/choose-leaf.ts';
import { largestUsage, usageOf } from '../../../src/store/list/session-summary.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { isConflict, isDataLoss, Stale } from '../failures.ts';
import { EMPTY_LINEAGE, withNewSnapshot, withStatus, type Lineage } from '../format/lineage.ts';
import { newOwner } from '../format/names.ts';
import type { Pointer, PointerDocument } from '../format/pointer-document.ts';
import { nextBy, type SnapshotDocument, type SnapshotHead } from '../format/snapshot-document.ts';
import { chainTo, endOf } from '../format/state-chain.ts';
import { addUsage } from '../format/usage-counts.ts';
import { handOutLoaded, type SnapshotReader } from '../read/snapshot-reader.ts';
import { removeRecordsBefore } from '../remove/delete-session.ts';
import { writeSnapshot } from './commit-save.ts';
import { planState, type BaseState, type StatePlan } from './plan-state.ts';
import { assertFits, type Save } from './save-call.ts';

/** A save after its mutator has returned. */
interface Revision<S> {
  readonly next: SessionSnapshot<S>;
  /** The snapshot as it was just read; the commit fails if it has changed. `undefined`: there is none. */
  readonly current: SnapshotDocument | undefined;
  /** Its state, if it has one. */
  readonly loaded: KnownState | undefined;
}

const now = (): string => new Date().toISOString();

/**
 * The first save of a snapshot.
 *
 * @param answer The mutator's result, if it was called before the id was known.
 */
export async function createSnapshot<S>(
  save: Save<S>,
  id: string,
  answer: SessionSnapshotInput<S> | undefined,
): Promise<string | null> {
  const answered = answer ?? save.request.mutator(undefined);
  if (answered === null) {
    // The snapshot may exist although the cache does not have it; the mutator may then return another result.
    if (save.usesCache) throw new Stale();
    return null;
  }
  const next = revise(id, undefined, answered, now);
  return store(save, { next, current: undefined, loaded: undefined }, sessionOf(next));
}

/**
 * A save of an existing snapshot.
 *
 * @param current The snapshot as it was just read.
 */
export async function rewriteSnapshot<S>(save: Save<S>, current: SnapshotDocument): Promise<string | null> {
  const { meta, sessionId } = current;
  if (!(await save.reader.isAlive(current))) await removeStale(save, current);
  const loaded = await load(save, current);
  const snapshot = await save.reader.opened(current);
  const answer = save.request.mutator(handOutLoaded<S>({ snapshot, state: loaded }));
  if (answer === null) return null;
  const next = revise(meta.snapshotId, storedOf(meta, sessionId), answer, now);
  return store(save, { next, current: snapshot, loaded }, sessionId);
}

async function store<S>(save: Save<S>, revision: Revision<S>, sessionId: string | undefined): Promise<string> {
  const { next, current } = revision;
  assertFits(next, save.tenant);
  if (sessionId === undefined) return storeWithoutSession(save, revision);
  if (current && isHeartbeat(save, revision, current)) return storeHeartbeat(save, revision, current);
  const place = { sessionId, parentId: current ? undefined : next.parentId };
  return save.inSession(place, () => storeInSession(save, revision, sessionId));
}

async function load<S>(save: Save<S>, current: SnapshotDocument): Promise<KnownState | undefined> {
  try {
    return await save.reader.states.stateOf(current);
  } catch (error) {
    if (!isDataLoss(error)) throw error;
    // It may have been rewritten or removed since it was read.
    const found = await save.reader.recheck(current);
    if (found === 'absent') await removeStale(save, current);
    throw found === 'unchanged' ? error : new Stale();
  }
}

/** Removes a snapshot of an expired or deleted session, because its id is used again. */
async function removeStale<S>({ tenant }: Save<S>, { ref, updateTime }: SnapshotDocument): Promise<never> {
  try {
    await tenant.database.commit([{ kind: 'delete', ref, at: updateTime }]);
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
  throw new Stale();
}

async function storeWithoutSession<S>(save: Save<S>, revision: Revision<S>): Promise<string> {
  const { next, current, loaded } = revision;
  save.assertLeaf(undefined, undefined);
  assertRequiredSnapshot(save.request.ifSnapshot, undefined, () => false);
  if (!current) await save.tenant.hasSnapshots();
  const place = { sessionId: undefined, owner: current?.owner ?? newOwner('snapshot', next.snapshotId), seq: 0 };
  const head = newHead(save, revision, place);
  const cipher = await save.tenant.sealerOf(head).cipher();
  const plan = await planRevision(save, revision, head, { state: copyState(next, loaded?.state), cipher });
  return commit(save, revision, { head, plan, cipher });
}

/** Whether it is only a heartbeat, which does not change the session's pointer. A session that may expire soon needs the pointer's new expiry. */
function isHeartbeat<S>(
  { request, tenant }: Save<S>,
  { next, loaded }: Revision<S>,
  current: SnapshotDocument,
): boolean {
  const { meta, until = 0 } = current;
  const { settings, database } = tenant;
  return (
    next.heartbeatAt !== meta.heartbeatAt &&
    next.status === meta.status &&
    request.expectedLeafId === undefined &&
    request.ifSnapshot === undefined &&
    !request.session &&
    (settings.expireAfterMs === undefined || until > database.now() + settings.expireAfterMs / 2) &&
    jsonEqual(usageOf(next), usageOf(meta)) &&
    copyState(next, loaded?.state) === loaded?.state
  );
}

async function storeHeartbeat<S>(save: Save<S>, revision: Revision<S>, current: SnapshotDocument): Promise<string> {
  const { until } = current;
  const head = newHead(save, revision, current, until === undefined ? {} : { until });
  return commit(save, revision, { head, plan: undefined, cipher: await save.tenant.sealerOf(head).cipher() });
}

async function storeInSession<S>(save: Save<S>, revision: Revision<S>, sessionId: string): Promise<string> {
  const { tenant } = save;
  const { next, current, loaded } = revision;
  const { snapshotId: id, parentId, status } = next;
  const stored = await save.pointer(sessionId);
  // The pointer of an expired or deleted session is replaced by that of its next incarnation.
  const pointer = stored && tenant.isLive(stored) ? stored : undefined;
  if (current && current.owner !== pointer?.owner) {
    if (save.usesCache) throw new Stale();
    return removeStale(save, current);
  }
  save.assertLeaf(sessionId, pointer);
  const { lineage: before = EMPTY_LINEAGE, usage = {}, summaryUsage, head: headBefore } = pointer ?? {};
  const { owner, seq } = current ?? { owner: pointer?.owner ?? newOwner('session', sessionId), seq: before.nextSeq };
  if (!current) await assertMayCreate(save, next, before, owner);
  if (stored?.isGone) await removeRecordsBefore(tenant, stored);
  const needsParent = !current || (!loaded && next.state !== undefined);
  const { isInTree = false, base } = needsParent ? await findParent(save, parentId, pointer) : {};
  await assertRequired(save, sessionId, pointer, isInTree ? parentId : undefined);
  const state = copyState(next, loaded?.state ?? base?.known.state);
  const isLeaf = before.leaves.some((leaf) => leaf.id === id);
  if (current)
    assertStateMayChange(
      current.meta,
      () => !isLeaf,
      () => state === loaded?.state,
    );
  const head = newHead(save, revision, { sessionId, owner, seq });
  const cipher = await tenant.sealerOf(head).cipher();
  const plan = await planRevision(save, revision, head, { state, base, pointer, cipher });
  const leaf = { id, seq, ...(status && { status }) };
  const written = save.nextPointer(pointer, head, {
    lineage: current ? withStatus(before, leaf) : withNewSnapshot(before, leaf, parentId, isInTree),
    usage: addUsage(current ? addUsage(usage, usageOf(current.meta).usage, -1) : usage, usageOf(head.meta).usage),
    summaryUsage: largestUsage([summaryUsage, usageOf(head.meta).summaryUsage]),
    head: headAfter(headBefore, plan, { id, isNewest: seq >= before.nextSeq - 1 }),
    cipher,
  });
  return commit(save, revision, { head, plan, cipher }, { pointer: written, stored });
}

/** The pointer's `head` after the save: the chain to the state of the newest snapshot that has one. */
function headAfter(
  before: Pointer['head'],
  plan: StatePlan | undefined,
  { id, isNewest }: { id: string; isNewest: boolean },
): Pointer['head'] {
  if (!plan || (!isNewest && before?.id !== id)) return before;
  if (plan.next) return { id, chain: plan.next.chain };
  return before?.id === id ? undefined : before;
}

function newHead<S>(
  { tenant, nonce }: Save<S>,
  { next, current }: Revision<S>,
  { sessionId, owner, seq }: Pick<SnapshotHead, 'sessionId' | 'owner' | 'seq'>,
  expiry = tenant.expiry(),
): SnapshotHead {
  return { meta: copyMetadata(next), sessionId, owner, seq, by: nextBy(current?.by ?? [], nonce), ...expiry };
}

/** @throws `FAILED_PRECONDITION` when a new snapshot would be its own ancestor, `DATA_LOSS` when it existed and is missing. */
async function assertMayCreate<S>(
  save: Save<S>,
  { snapshotId: id, parentId }: SessionSnapshot<S>,
  { leaves, missing }: Lineage,
  owner: string,
): Promise<void> {
  if (leaves.some((leaf) => leaf.id === id)) throw save.missingSnapshot(id);
  if (parentId === id) refuseCycle(id, id);
  const seen = new Set<string>();
  for (let at = missing.includes(id) ? parentId : undefined; at !== undefined && !seen.has(at);) {
    if (at === id) refuseCycle(id, parentId!);
    seen.add(at);
    const ancestor = await save.reader.snapshot(at);
    at = ancestor?.owner === owner ? ancestor.meta.parentId : undefined;
  }
}

/** Whether a snapshot's parent exists, and the base for a diff. */
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
    // A snapshot is never saved as the child of a missing leaf.
    if (leaf) throw save.missingSnapshot(parentId);
    return { isInTree: false };
  }
  return { isInTree: true, base: await baseOn(reader, parent, pointer) };
}

/**
 * @param foundId A snapshot that was found in the session.
 * @throws `ABORTED` when the session does not have the snapshot that the save requires.
 */
async function assertRequired<S>(
  save: Save<S>,
  sessionId: string,
  pointer: PointerDocument | undefined,
  foundId: string | undefined,
): Promise<void> {
  const { ifSnapshot } = save.request;
  if (ifSnapshot === undefined || ifSnapshot === foundId) return;
  const isLeaf = pointer?.lineage.leaves.some(({ id }) => id === ifSnapshot) ?? false;
  const isThere = isLeaf || (pointer && (await save.snapshot(ifSnapshot))?.owner === pointer.owner) === true;
  assertRequiredSnapshot(ifSnapshot, sessionId, () => isThere);
}

/** The base for a diff from `parent`: its state if it is completed, else the base of its state. */
async function baseOn(
  { states }: SnapshotReader,
  parent: SnapshotDocument,
  pointer: PointerDocument,
): Promise<BaseState | undefined> {
  if (parent.state.kind === 'none') return undefined;
  const own = await states.chainOf(parent, pointer);
  const chain = parent.meta.status === 'completed' ? own : chainTo(own, own.names.at(-2));
  return chain && { chain, known: await states.stateAt(chain, parent) };
}

/**
 * Plans how the state is stored; `undefined` if it does not change. A rewritten state keeps its base.
 *
 * @param known.base The base for the state of a snapshot that had none.
 */
async function planRevision<S>(
  save: Save<S>,
  { current, loaded }: Revision<S>,
  head: SnapshotHead,
  known: {
    state: Json | undefined;
    base?: BaseState | undefined;
    pointer?: PointerDocument | undefined;
    cipher: Cipher | undefined;
  },
): Promise<StatePlan | undefined> {
  const { state, pointer, cipher } = known;
  const { owner, seq } = head;
  if (current && state === loaded?.state) return undefined;
  const { states } = save.reader;
  const own = current && loaded && (await states.chainOf(current, pointer));
  const chain = own && chainTo(own, own.names.at(-2));
  const base = own ? chain && { chain, known: await states.stateAt(chain, current) } : known.base;
  return planState(save.tenant, state, {
    place: { name: save.nonce, owner, seq, cipher },
    base,
    memory: loaded?.memory,
    packs: () => save.packsOf(own ?? base?.chain, head),
  });
}

async function commit<S>(
  save: Save<S>,
  { current, loaded }: Revision<S>,
  written: { head: SnapshotHead; plan: StatePlan | undefined; cipher: Cipher | undefined },
  pointers: Pick<Parameters<typeof save.commit>[1], 'pointer' | 'stored'> = {},
): Promise<string> {
  const { head, plan, cipher } = written;
  const write = writeSnapshot(save.tenant, head, plan?.state, { current, cipher });
  const time = await save.commit(write, { plan, ...pointers });
  return save.noteSaved(head, plan ? plan.next?.known : loaded, time);
}
