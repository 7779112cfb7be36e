import type { Timestamp } from '@google-cloud/firestore';
import { revise, sessionOf, type SessionSnapshot, type SessionSnapshotInput } from '../../src/snapshot/snapshot.ts';
import { refuseCycle } from '../../src/snapshot/lineage.ts';
import { copyMetadata, copyState } from '../../src/snapshot/own-copy.ts';
import { unreadableSnapshot } from '../../src/store/unreadable.ts';
import type { DocumentWrite } from './database.ts';
import { clearExpired } from './clear-away.ts';
import { createSnapshot, removalOf, writePointer } from './commit-writes.ts';
import { Stale } from './failures.ts';
import { adopt } from './genkit-session.ts';
import {
  EMPTY_LINEAGE,
  hasExpiredLeaf,
  isAlive,
  withArrival,
  type Arrival,
  type Leaf,
  type Lineage,
} from './lineage.ts';
import { markParents } from './lone-parents.ts';
import { keyOf, ownerKey, parentKey } from './names.ts';
import { lifetimeWith, mayBeIncomplete, type Pointer, type PointerDocument } from './pointer-document.ts';
import { finishDeletion } from './delete-session.ts';
import { assertFits, doubted, type SaveRequest, type SaveTools, type Trust } from './save-request.ts';
import { HEAD_FIELDS, readHead, type SnapshotDocument, type SnapshotHead } from './snapshot-document.ts';
import { handOutLoaded } from './snapshot-reader.ts';
import { endOf } from './state-chain.ts';
import { NO_STATE, StateWriter, type ParentState, type StatePlan } from './state-writer.ts';

/** The parent of a new snapshot, as far as it had to be looked at. */
interface Parent {
  readonly kind: Arrival['parent'];
  readonly state: ParentState | undefined;
}

/** Of snapshots that name one parent so many are looked at, to find one that does not count as gone. */
const MOST_EXPIRED_NAMERS = 20;

/** The first save of a snapshot. */
export class CreateSnapshot<S> {
  readonly #save: SaveRequest<S>;
  readonly #tools: SaveTools;
  readonly #id: string;
  readonly #answer: SessionSnapshotInput<S> | undefined;

  /** @param answer What the mutator answered before the id was known. */
  constructor(save: SaveRequest<S>, id: string, answer: SessionSnapshotInput<S> | undefined) {
    this.#save = save;
    this.#tools = save.tools;
    this.#id = id;
    this.#answer = answer;
  }

  async run(trust: Trust): Promise<string | null> {
    try {
      const answer = this.#answer ?? this.#save.ask(undefined);
      if (answer === null) {
        // Of a snapshot that is there the mutator would have been asked otherwise.
        if (trust === 'cached') throw new Stale();
        return null;
      }
      const next = revise(this.#id, undefined, answer, () => new Date().toISOString());
      assertFits(next, this.#tools.tenant);
      const sessionId = sessionOf(next);
      if (sessionId === undefined) return await this.#createAlone(next);
      this.#save.hint = { sessionId, parentId: next.parentId };
      return await this.#save.inSession(sessionId, () => this.#createInSession(next, sessionId, trust));
    } catch (error) {
      throw trust === 'cached' ? doubted(error) : error;
    }
  }

  async #createAlone(next: SessionSnapshot<S>): Promise<string> {
    const { tenant, reader } = this.#tools;
    this.#save.assertLeaf(undefined, undefined);
    const head = this.#head(next, undefined, 0);
    const marks = await markParents(tenant, head, this.#save.nonce);
    const state = copyState(next, undefined);
    const owner = ownerKey(undefined, this.#id);
    const writer = new StateWriter(tenant, reader.states);
    const plan =
      state === undefined ? NO_STATE : await writer.planNew(state, { owner, parent: undefined, pointer: undefined });
    const [time] = await this.#save.commit([createSnapshot(tenant, head, plan.state), ...marks], plan);
    this.#remember(head, plan, time!);
    return this.#id;
  }

  async #createInSession(next: SessionSnapshot<S>, sessionId: string, trust: Trust): Promise<string> {
    const { tenant, reader } = this.#tools;
    const pointer = await this.#pointer(sessionId, trust);
    const nothing = { ...EMPTY_LINEAGE, nextSeq: tenant.firstSeqOf(sessionId) ?? 0 };
    const before = pointer?.lineage ?? nothing;
    if (pointer && hasExpiredLeaf(before, Date.now())) return this.#clearExpired(pointer);
    this.#save.assertLeaf(sessionId, pointer?.lineage);
    const same = before.leaves.find((leaf) => leaf.id === this.#id);
    if (same) return this.#throwLost(same, pointer!);
    const hasChildren = await this.#hasChildren(pointer, sessionId);
    if (next.parentId === this.#id) refuseCycle(this.#id, this.#id);
    if (hasChildren && next.parentId !== undefined) await this.#assertNoCycle(next.parentId, sessionId);
    const parent = await this.#parent(next.parentId, sessionId, pointer);
    const head = this.#head(next, sessionId, before.nextSeq);
    const state = copyState(next, parent.state?.known.state);
    const writer = new StateWriter(tenant, reader.states);
    const owner = keyOf('session', sessionId);
    const plan = state === undefined ? NO_STATE : await writer.planNew(state, { owner, parent: parent.state, pointer });
    const { status } = head.meta;
    const leaf = { id: this.#id, seq: head.seq, ...(status && { status }), ...(head.until && { until: head.until }) };
    const lineage = withArrival(before, { leaf, parentId: next.parentId, parent: parent.kind, hasChildren });
    const written = this.#written(head, pointer, lineage, plan);
    const writes: DocumentWrite[] = [createSnapshot(tenant, head, plan.state), writePointer(tenant, pointer, written)];
    if (pointer?.isForeign) await adopt(tenant, sessionId);
    const times = await this.#save.commit(writes, plan);
    tenant.rememberPointer(sessionId, { ...written, ref: tenant.pointerRef(sessionId), updateTime: times[1]! });
    this.#remember(head, plan, times[0]!);
    return this.#id;
  }

  async #pointer(sessionId: string, trust: Trust): Promise<PointerDocument | undefined> {
    const pointer = await this.#save.pointer(sessionId, trust);
    if (!pointer?.isGone) return pointer;
    // Whoever removes the session may have died; it must be gone before it begins anew.
    await finishDeletion(this.#tools.tenant, pointer);
    throw new Stale();
  }

  #head(next: SessionSnapshot<S>, sessionId: string | undefined, seq: number): SnapshotHead {
    const { expireAfterMs } = this.#tools.tenant.settings;
    const until = expireAfterMs === undefined ? {} : { until: Date.now() + expireAfterMs };
    return { meta: copyMetadata(next), sessionId, seq, rev: 1, by: [this.#save.nonce], ...until };
  }

  #written(head: SnapshotHead, before: PointerDocument | undefined, lineage: Lineage, plan: StatePlan): Pointer {
    const { createdAt, updatedAt } = head.meta;
    const chain = plan.cached?.chain;
    return {
      sessionId: head.sessionId!,
      lineage,
      removals: before?.removals ?? 0,
      createdAt: before && before.lineage.count > 0 ? before.createdAt : createdAt,
      updatedAt: updatedAt ?? createdAt,
      ...(chain && { head: { id: this.#id, chain } }),
      ...lifetimeWith(before, head, removalOf(this.#tools.tenant, head)),
      isGone: false,
    };
  }

  #remember(head: SnapshotHead, plan: StatePlan, createTime: Timestamp): void {
    const { tenant, onSaved } = this.#tools;
    const { cached } = plan;
    if (cached) tenant.caches.remember(endOf(cached.chain), cached);
    tenant.rememberSnapshot(this.#id, head.sessionId);
    const snapshot = { ...head, state: plan.state } as SnapshotDocument;
    const version = { id: this.#id, rev: head.rev, createTime, status: head.meta.status };
    onSaved(version, () => handOutLoaded({ snapshot, state: cached }));
  }

  /** Of a leaf there must be a document, unless it came or went just now, or counts as gone. */
  async #throwLost(leaf: Leaf, pointer: PointerDocument): Promise<never> {
    const { reader } = this.#tools;
    if (!isAlive(leaf, Date.now())) return this.#clearExpired(pointer);
    const document = await reader.document(leaf.id);
    const now = await reader.pointer(pointer.sessionId);
    if (document || !now?.updateTime.isEqual(pointer.updateTime)) throw new Stale();
    throw unreadableSnapshot(leaf.id, 'its document is missing');
  }

  async #clearExpired(pointer: PointerDocument): Promise<never> {
    throw new Stale(await clearExpired(this.#tools, pointer));
  }

  /** Whether snapshots of the session name this one as parent already. */
  async #hasChildren(pointer: PointerDocument | undefined, sessionId: string): Promise<boolean> {
    const { missing, moreMissing } = pointer?.lineage ?? EMPTY_LINEAGE;
    if (missing.includes(this.#id)) return true;
    const isUnsure = moreMissing || (pointer !== undefined && mayBeIncomplete(pointer, Date.now()));
    return isUnsure && (await this.#isNamed(this.#id, sessionId));
  }

  async #isNamed(snapshotId: string, sessionId: string): Promise<boolean> {
    const { database, collections } = this.#tools.tenant;
    const key = parentKey(keyOf('session', sessionId), snapshotId);
    const { expireAfterMs } = this.#tools.tenant.settings;
    // One that counts as gone names nobody. So many at a time are hardly ever.
    const most = expireAfterMs === undefined ? 1 : MOST_EXPIRED_NAMERS;
    const namers = collections.snapshots.where('up', '==', key).limit(most);
    const found = await database.query(namers.select(...HEAD_FIELDS));
    const now = Date.now();
    return found.length === most || found.some((document) => isAlive(readHead(snapshotId, document.data()), now));
  }

  async #assertNoCycle(parentId: string, sessionId: string): Promise<void> {
    const seen = new Set<string>();
    for (let id: string | undefined = parentId; id !== undefined && !seen.has(id);) {
      if (id === this.#id) refuseCycle(this.#id, parentId);
      seen.add(id);
      const ancestor = await this.#tools.reader.document(id);
      id = ancestor?.sessionId === sessionId ? ancestor.meta.parentId : undefined;
    }
  }

  async #parent(
    parentId: string | undefined,
    sessionId: string,
    pointer: PointerDocument | undefined,
  ): Promise<Parent> {
    if (parentId === undefined) return { kind: 'none', state: undefined };
    const { tenant, reader } = this.#tools;
    const lineage = pointer?.lineage ?? EMPTY_LINEAGE;
    const leaf = lineage.leaves.find(({ id }) => id === parentId);
    const { head } = pointer ?? {};
    if (leaf && head?.id === parentId) {
      const cached = tenant.caches.states.get(endOf(head.chain));
      if (cached) return { kind: 'leaf', state: { ...cached, snapshotId: parentId, ...leaf } };
    }
    if (lineage.missing.includes(parentId)) return { kind: 'missing', state: undefined };
    const document = await this.#save.snapshot(parentId);
    // A snapshot is never saved on top of one that is lost.
    if (leaf && !document) return this.#throwLost(leaf, pointer!);
    if (document?.sessionId !== sessionId) return { kind: 'missing', state: undefined };
    const isLeaf = leaf ?? (lineage.moreLeaves > 0 && !(await this.#isNamed(parentId, sessionId)));
    const loaded = await reader.states.stateOf(document, pointer?.isForeign ? undefined : pointer);
    const { seq, until } = document;
    const state = loaded && { ...loaded, snapshotId: parentId, seq, ...(until !== undefined && { until }) };
    return { kind: isLeaf ? 'leaf' : 'inner', state };
  }
}
