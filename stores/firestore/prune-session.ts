import type { DocumentData, QueryDocumentSnapshot } from '@google-cloud/firestore';
import { SessionTree } from '../../src/snapshot/lineage.ts';
import { commitSave, rewriteSnapshot, writePointer } from './commit-writes.ts';
import type { DocumentWrite } from './database.ts';
import { removeForeignShards } from './delete-session.ts';
import { isConflict, Stale } from './failures.ts';
import { foreignState, isForeign } from './genkit-format.ts';
import { adopt, foreignDocuments } from './genkit-session.ts';
import { isAlive, newest, type Lineage } from './lineage.ts';
import { keyOf, orderRange } from './names.ts';
import { unpackJson } from './pack-json.ts';
import type { Pointer, PointerDocument } from './pointer-document.ts';
import type { ListedShard } from './prune.ts';
import { shardsOf } from './checkpoint.ts';
import {
  HEAD_FIELDS,
  nextBy,
  nextRev,
  readHead,
  type SnapshotDocument,
  type SnapshotHead,
  type StoredState,
} from './snapshot-document.ts';
import type { SnapshotReader } from './snapshot-reader.ts';
import { newToken, type Token } from './state-chain.ts';
import { NO_STATE, StateWriter, type StatePlan } from './state-writer.ts';
import type { Tenant } from './tenant.ts';

const PAGE = 300;
/** Snapshots removed with one commit. */
const MOST_AT_ONCE = 200;

/** A session as pruning sees it: every snapshot without its state, and what each stands on. */
export class PrunedSession {
  readonly tree = new SessionTree();
  /** Snapshots that count as gone already. */
  readonly expired: string[] = [];
  readonly #tenant: Tenant;
  readonly #reader: SnapshotReader;
  readonly #documents = new Map<string, QueryDocumentSnapshot>();
  readonly #heads = new Map<string, SnapshotHead>();
  #pointer: PointerDocument;

  private constructor(tenant: Tenant, reader: SnapshotReader, pointer: PointerDocument) {
    this.#tenant = tenant;
    this.#reader = reader;
    this.#pointer = pointer;
  }

  static async read(tenant: Tenant, reader: SnapshotReader, pointer: PointerDocument): Promise<PrunedSession> {
    const session = new PrunedSession(tenant, reader, pointer);
    const now = Date.now();
    for (const document of await session.#list()) {
      const head = readHead(document.id, document.data());
      const { snapshotId } = head.meta;
      session.#documents.set(snapshotId, document);
      session.#heads.set(snapshotId, head);
      if (isAlive(head, now)) session.tree.put(head.meta);
      else session.expired.push(snapshotId);
    }
    return session;
  }

  /** What the pointer would say of the snapshots that do not count as gone. */
  get lineage(): Lineage {
    return this.#shape().lineage;
  }

  /** Shards that nobody names once these snapshots are gone. */
  spare(shards: readonly ListedShard[], removed: readonly string[]): ListedShard[] {
    const gone = new Set(removed);
    const named = new Set<string>();
    for (const [id, document] of this.#documents) {
      if (gone.has(id)) continue;
      for (const name of (document.get('shards') as string[] | undefined) ?? []) named.add(name);
    }
    const base = this.#pointer.head?.chain.base;
    for (const name of base?.shards ?? []) named.add(name);
    for (const name of base?.checkpoint ? shardsOf(base.checkpoint) : []) named.add(name);
    return shards.filter((shard) => !named.has(shard.name));
  }

  /**
   * Removes snapshots, and the shards that are spare then; answers how many shards went. What stands on a removed snapshot is given a whole
   * state first.
   *
   * @throws Stale when somebody wrote to the session.
   */
  async remove(removed: readonly string[], shards: readonly ListedShard[]): Promise<number> {
    if (this.#pointer.isForeign) {
      if (removed.length === 0) return 0;
      throw new Stale(await this.#takeOver());
    }
    const base = this.#pointer.head?.chain.base;
    if (base) await this.#reader.states.checkpoint(base);
    await this.#removeSnapshots(removed);
    const spare = this.spare(shards, removed);
    if (spare.length > 0 && removed.length === 0) await this.#removeSome([]);
    return removeShards(this.#tenant, spare);
  }

  /**
   * Removes what counts as gone, and has the pointer say what is left.
   *
   * @throws Stale when somebody wrote to the session.
   */
  async clear(): Promise<void> {
    await this.#removeSnapshots(this.expired);
    if (this.expired.length === 0) await this.#removeSome([]);
  }

  async #removeSnapshots(removed: readonly string[]): Promise<void> {
    if (removed.length > 0) await this.#anchor(new Set(removed));
    for (let start = 0; start < removed.length; start += MOST_AT_ONCE) {
      await this.#removeSome(removed.slice(start, start + MOST_AT_ONCE));
    }
  }

  async #list(): Promise<QueryDocumentSnapshot[]> {
    if (this.#pointer.isForeign) {
      const found = await foreignDocuments(this.#tenant, this.#pointer.sessionId);
      return found.map(({ document }) => document);
    }
    const { from, below } = orderRange(keyOf('session', this.#pointer.sessionId));
    return listOwned(this.#tenant, from, below, [...HEAD_FIELDS, 'shards', 'base', 'old']);
  }

  async #takeOver(): Promise<void> {
    await adopt(this.#tenant, this.#pointer.sessionId);
    const { isForeign: _isForeign, ...pointer } = this.#pointer;
    await commitSave(this.#tenant, [writePointer(this.#tenant, this.#pointer, pointer)], NO_STATE);
  }

  async #anchor(removed: ReadonlySet<string>): Promise<void> {
    const standing = [...this.#documents].filter(([id, document]) => !removed.has(id) && standsOn(document, removed));
    // Of Genkit's own snapshots later ones stand on the patches of earlier ones, which go when these are anchored.
    for (const [id, document] of standing.toSorted(([, a], [, b]) => segmentLength(b) - segmentLength(a))) {
      const snapshot = await this.#reader.document(id);
      if (!snapshot) throw new Stale();
      const { plan, old } = await this.#anchored(snapshot, removed);
      const head = {
        ...snapshot,
        rev: snapshot.state.kind === 'foreign' ? nextRev(snapshot) : snapshot.rev,
        by: nextBy(snapshot, newToken()),
      };
      const write = rewriteSnapshot(this.#tenant, snapshot, head, { state: plan.state, old, isLeaf: true });
      await commitSave(this.#tenant, [write], plan);
      const fresh = await this.#tenant.database.query(
        this.#tenant.collections.snapshots.where('at', '==', document.get('at')).select(...HEAD_FIELDS, 'shards'),
      );
      if (fresh[0]) this.#documents.set(id, fresh[0]);
    }
  }

  /** The same states under the same tokens, none of which stands on a removed snapshot. */
  async #anchored(
    snapshot: SnapshotDocument,
    removed: ReadonlySet<string>,
  ): Promise<{ plan: StatePlan; old: StoredState[] }> {
    const states: StoredState[] = [];
    const plans: StatePlan[] = [];
    const needed = this.#tokensNeeded(snapshot.meta.snapshotId, removed);
    const kept = snapshot.old.filter((state) => tokensOf(state).some((token) => needed.has(token)));
    for (const state of [snapshot.state, ...kept]) {
      const plan = await this.#anchoredState(snapshot, state, removed);
      states.push(plan.state);
      plans.push(plan);
    }
    const [state, ...old] = states;
    const shards = new Map(plans.flatMap((plan) => plan.shards).map((shard) => [shard.name, shard]));
    const prolonged = plans.flatMap((plan) => plan.prolonged);
    const life = this.#lifeOf(snapshot);
    return { plan: { ...NO_STATE, state: state!, shards: [...shards.values()], prolonged, ...life }, old };
  }

  /** The states of a snapshot that others stand on. What nobody does may stand on what is gone. */
  #tokensNeeded(snapshotId: string, removed: ReadonlySet<string>): ReadonlySet<Token> {
    const tokens = new Set<Token>();
    for (const [id, document] of this.#documents) {
      if (removed.has(id)) continue;
      for (const [baseId, token] of basesOf(document.data())) if (baseId === snapshotId) tokens.add(token);
    }
    return tokens;
  }

  async #anchoredState(
    snapshot: SnapshotDocument,
    state: StoredState,
    removed: ReadonlySet<string>,
  ): Promise<StatePlan> {
    const { states } = this.#reader;
    const writer = new StateWriter(this.#tenant, states);
    const { life } = this.#lifeOf(snapshot);
    const options = { owner: keyOf('session', this.#pointer.sessionId), pointer: this.#pointer, life };
    if (state.kind === 'foreign') {
      const loaded = await states.stateOf({ ...snapshot, state });
      return writer.planWhole(loaded!, options);
    }
    if (state.kind !== 'diff' || !removed.has(state.parent.id)) return { ...NO_STATE, state };
    const chain = await states.chainBefore(snapshot, state);
    const loaded = await states.stateAt(chain, snapshot.meta.snapshotId);
    const plan = await writer.planWhole({ known: loaded.known, chain }, options);
    if (plan.state.kind !== 'whole') throw new Error('invariant: a whole state was planned');
    const { base } = plan.state;
    const tokens = [state.parent.token, ...state.tokens];
    return { ...plan, state: { kind: 'whole', base, tokens, patches: state.patches } };
  }

  /** How long what a snapshot stands on is needed. */
  #lifeOf({ until }: SnapshotDocument): Pick<StatePlan, 'life'> {
    const { expireAfterMs = 1 } = this.#tenant.settings;
    return until === undefined ? {} : { life: Math.max(expireAfterMs, until - Date.now()) };
  }

  async #removeSome(snapshotIds: readonly string[]): Promise<void> {
    const documents = snapshotIds.map((id) => this.#documents.get(id)!);
    await removeForeignShards(this.#tenant, documents);
    for (const id of snapshotIds) {
      this.tree.remove(id);
      this.#heads.delete(id);
      this.#tenant.forgetSnapshot(id);
    }
    const { until: _until, completeUntil: _complete, ...before } = this.#pointer;
    const pointer = { ...before, ...this.#shape(), removals: before.removals + 1 };
    const writes: DocumentWrite[] = [
      writePointer(this.#tenant, this.#pointer, pointer, { isWritten: false }),
      ...documents.map((document): DocumentWrite => ({ kind: 'delete', ref: document.ref })),
    ];
    const [updateTime] = await commitSave(this.#tenant, writes, NO_STATE);
    this.#pointer = { ...pointer, updateTime: updateTime! };
    this.#tenant.rememberPointer(pointer.sessionId, this.#pointer);
  }

  /** What the pointer has to say of the tree as it is now. */
  #shape(): Pick<Pointer, 'lineage' | 'createdAt' | 'until' | 'completeUntil'> {
    const all = this.tree.leaves().map((leaf) => {
      const { seq, until } = this.#heads.get(leaf.snapshotId)!;
      return { id: leaf.snapshotId, seq, ...(leaf.status && { status: leaf.status }), ...(until && { until }) };
    });
    const leaves = newest(all, (leaf) => leaf.id);
    const parents = [...this.tree.nodes()].flatMap(({ parentId }) => (parentId === undefined ? [] : [parentId]));
    const absent = [...new Set(parents)].filter((id) => !this.tree.has(id));
    const missing = newest(absent, (id) => id);
    const [first] = this.tree.nodes();
    return {
      createdAt: first?.createdAt ?? this.#pointer.createdAt,
      ...this.#lifetime(),
      lineage: {
        nextSeq: this.#pointer.lineage.nextSeq,
        count: this.tree.size,
        leaves,
        moreLeaves: all.length - leaves.length,
        missing,
        moreMissing: missing.length < absent.length,
      },
    };
  }

  #lifetime(): Pick<Pointer, 'until' | 'completeUntil'> {
    let from = Infinity;
    let to = 0;
    for (const { snapshotId } of this.tree.nodes()) {
      const { until = Infinity } = this.#heads.get(snapshotId)!;
      from = Math.min(from, until);
      to = Math.max(to, until);
    }
    return { ...(from < Infinity && { completeUntil: from }), ...(to > 0 && to < Infinity && { until: to }) };
  }
}

/** All documents of an owner's order, page by page. */
export async function listOwned(
  tenant: Tenant,
  from: string,
  below: string,
  fields: readonly string[],
): Promise<QueryDocumentSnapshot[]> {
  const { collections, database } = tenant;
  const query = collections.snapshots.where('at', '>=', from).where('at', '<', below).orderBy('at');
  const all: QueryDocumentSnapshot[] = [];
  for (;;) {
    const last = all.at(-1);
    const page = (last ? query.startAfter(last.get('at')) : query).limit(PAGE).select('at', ...fields);
    const found = await database.query(page);
    all.push(...found);
    if (found.length < PAGE) return all;
  }
}

/** Removes shards that are as they were listed; answers how many. One that was written since is in use again. */
export async function removeShards(tenant: Tenant, shards: readonly ListedShard[]): Promise<number> {
  let removed = 0;
  for (const { name, updateTime } of shards) {
    try {
      await tenant.database.commit([{ kind: 'delete', ref: tenant.shardRef(name), at: updateTime }]);
      removed++;
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  return removed;
}

/** Whether a state of a snapshot starts from one of these. */
function standsOn(document: QueryDocumentSnapshot, removed: ReadonlySet<string>): boolean {
  const data = document.data();
  if (isForeign(data)) {
    const { checkpointId, segment } = foreignState(data);
    return [checkpointId, ...segment].some((id) => removed.has(id));
  }
  return basesOf(data).some(([id]) => removed.has(id));
}

/** How many patches a snapshot of Genkit's own store stands on. */
function segmentLength(document: QueryDocumentSnapshot): number {
  const data = document.data();
  return isForeign(data) ? foreignState(data).segment.length : 0;
}

/** The states of others that a document's states start from. */
function basesOf(data: DocumentData): [snapshotId: string, token: Token][] {
  const old = (data['old'] as { base?: Buffer }[] | undefined) ?? [];
  const bases = [data['base'] as Buffer | undefined, ...old.map((state) => state.base)];
  return bases.flatMap((base) => (base ? [unpackJson(base) as [string, Token]] : []));
}

function tokensOf(state: StoredState): readonly Token[] {
  return state.kind === 'whole' || state.kind === 'diff' ? state.tokens : [];
}
