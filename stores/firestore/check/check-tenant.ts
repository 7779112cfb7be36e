import { FieldPath, type CollectionReference, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import { isLeaseOver } from '../../../src/snapshot/lease.ts';
import { SessionTree } from '../../../src/snapshot/session-tree.ts';
import type { Found, StoreCheck } from '../../../src/store/parts/store-check.ts';
import { MOST_READ_AT_ONCE } from '../database.ts';
import { isDataLoss } from '../failures.ts';
import { keyOf } from '../format/names.ts';
import { readPointer, type PointerDocument } from '../format/pointer-document.ts';
import { readRecord, readRecordHead } from '../format/record-document.ts';
import { readScopeDocument } from '../format/scope-document.ts';
import { assertOwnDocument } from '../format/foreign-layout.ts';
import { unpackText } from '../format/packed-text.ts';
import {
  readHead,
  readSnapshotDocument,
  type SnapshotDocument,
  type SnapshotHead,
} from '../format/snapshot-document.ts';
import { extended, type StateChain } from '../format/state-chain.ts';
import { firstOfOwners, shardsByOwner, snapshotsOf } from '../read/owners.ts';
import { SnapshotReader } from '../read/snapshot-reader.ts';
import { wholeChain } from '../read/state-reader.ts';
import { isDeadRecord, removeRemains, removeSession } from '../remove/delete-session.ts';
import type { TenantDatabase } from '../tenant-database.ts';

/** How often a session is read again because it was written meanwhile. */
const MOST_ATTEMPTS = 3;

/** The results for the snapshots of one owner. */
interface OwnerCheck {
  readonly tree: SessionTree;
  /** Shards that they name; `undefined`: a snapshot can't be read, so any shard may be needed. */
  readonly shards: Set<string> | undefined;
  readonly findings: readonly (() => void)[];
  readonly count: number;
  /** When one of them was written last, in ms. */
  readonly writtenMs: number;
}

/**
 * Reads everything of a tenant once, and reports damage, orphans and expired data.
 *
 * The shards are listed first: one that a save writes or names later is not on the list, or has another update time, so it is not an orphan.
 */
export class TenantCheck {
  readonly #tenant: TenantDatabase;
  readonly #reader: SnapshotReader;
  readonly #check: StoreCheck;
  #shards = new Map<string, QueryDocumentSnapshot[]>();
  /** Owners that were found with snapshots or a pointer. The shards of all others are orphans. */
  readonly #known = new Set<string>();
  /** Keys of sessions whose pointers can't be read. */
  readonly #lost = new Set<string>();

  /** @param tenant Has empty caches, so that everything is read from the database. */
  constructor(tenant: TenantDatabase, check: StoreCheck) {
    this.#tenant = tenant;
    this.#reader = new SnapshotReader(tenant);
    this.#check = check;
  }

  async run(): Promise<void> {
    await this.#tenant.hasSnapshots();
    const { pointers, records, scopes } = this.#tenant;
    this.#shards = await shardsByOwner(this.#tenant);
    for await (const document of this.#all(pointers)) await this.#checkPointer(document);
    await this.#checkRemains();
    // The shards of unknown owners are orphans.
    for (const [owner, found] of this.#shards) if (!this.#known.has(owner)) await this.#checkShards(found);
    for await (const document of this.#all(records)) await this.#checkRecord(document);
    for await (const document of this.#all(scopes)) await this.#checkScope(document);
  }

  #all(collection: CollectionReference): AsyncGenerator<QueryDocumentSnapshot> {
    return this.#tenant.database.documents(collection.orderBy(FieldPath.documentId()), MOST_READ_AT_ONCE);
  }

  async #checkPointer(document: QueryDocumentSnapshot): Promise<void> {
    // The name of the document is nearly always the id of the session.
    const { id, path } = document.ref;
    const guess = id.startsWith('~') ? {} : { sessionId: id };
    try {
      const pointer = readPointer(document);
      await this.#checkSession(pointer, path);
    } catch (error) {
      if (guess.sessionId !== undefined) this.#lost.add(keyOf('session', guess.sessionId));
      this.#check.reportError(error, { ...guess, place: path });
    }
  }

  async #checkSession(first: PointerDocument, place: string): Promise<void> {
    let pointer = first;
    const { sessionId } = pointer;
    for (let attempt = 1; ; attempt++) {
      this.#known.add(pointer.owner);
      if (pointer.isGone) return this.#checkGone(pointer, place);
      if (!this.#tenant.isLive(pointer)) {
        return this.#check.report({ kind: 'expired', sessionId, place, problem: 'a session that has expired' });
      }
      const checked = await this.#checkOwner(pointer.owner, sessionId);
      const problems = [...this.#problemsOf(pointer, checked), ...(await this.#problemsOfHead(pointer, place))];
      if (problems.length + checked.findings.length > 0 && attempt < MOST_ATTEMPTS) {
        const again = await this.#tenant.database.get(pointer.ref);
        const now = again.exists ? readPointer(again, sessionId) : undefined;
        if (!now) return;
        if (!now.updateTime.isEqual(pointer.updateTime)) {
          pointer = now;
          continue;
        }
      }
      for (const report of checked.findings) report();
      for (const problem of problems) this.#check.report(problem);
      this.#check.count('snapshots', checked.count);
      this.#check.count('sessions');
      const named = new Set([...(checked.shards ?? []), ...(await this.#shardsOfHead(pointer))]);
      const isSure = checked.shards !== undefined && problems.length === 0;
      const unneeded = isSure ? (this.#shards.get(pointer.owner) ?? []).filter(({ id }) => !named.has(id)) : [];
      return this.#checkShards(unneeded, sessionId);
    }
  }

  /** A deletion that was interrupted. */
  async #checkGone(pointer: PointerDocument, place: string): Promise<void> {
    const { sessionId, updateTime } = pointer;
    const found = { sessionId, place, problem: 'the rest of a session after an interrupted deletion' };
    await this.#reportOrphan(found, updateTime.toMillis(), () => removeSession(this.#tenant, pointer));
  }

  /** The differences between the pointer and the snapshots. */
  #problemsOf({ sessionId, lineage }: PointerDocument, { tree, count }: OwnerCheck): Found[] {
    const nodes = [...tree.nodes()];
    const named = [
      ...lineage.leaves.map(({ id }) => id),
      ...nodes.flatMap(({ parentId }) => (parentId === undefined ? [] : [parentId])),
    ];
    const pruned = new Set(lineage.missing);
    const missing = [...new Set(named)].filter((id) => !tree.has(id) && !pruned.has(id));
    const found = missing.map((snapshotId): Found => ({
      kind: 'damaged',
      sessionId,
      snapshotId,
      place: this.#tenant.snapshotRef(snapshotId).path,
      problem: "the document of the snapshot is missing, or can't be read",
    }));
    const others = lineage.count - count - missing.length;
    if (others > 0) {
      found.push({ kind: 'damaged', sessionId, problem: `${others} more documents of its snapshots are missing` });
    }
    return found;
  }

  /** Checks the chain to the latest state that the pointer has. The chain by the snapshots is checked apart. */
  async #problemsOfHead(pointer: PointerDocument, place: string): Promise<Found[]> {
    if (!pointer.head) return [];
    const { sessionId, owner, head } = pointer;
    try {
      // Without the cache, which may hold the same state as read from the snapshots.
      const { states } = new SnapshotReader(this.#tenant.withEmptyCaches());
      await states.stateAt(head.chain, { sessionId, owner, meta: { snapshotId: head.id } });
      return [];
    } catch (error) {
      if (!isDataLoss(error)) throw error;
      return [
        {
          kind: 'damaged',
          sessionId,
          snapshotId: head.id,
          place,
          problem: 'the latest state in the pointer of the session is damaged',
        },
      ];
    }
  }

  async #shardsOfHead(pointer: PointerDocument): Promise<readonly string[]> {
    const { head } = pointer;
    if (!head) return [];
    const packs = await this.#reader.states
      .packsOf(head.chain, { ...pointer, meta: { snapshotId: head.id } })
      .catch(() => []);
    return [...(head.chain.base.shards ?? []), ...packs.flatMap(({ shards }) => shards)];
  }

  /** Reads all snapshots of an owner, in the order of their first saves: a diff needs the states before it. */
  async #checkOwner(owner: string, sessionId: string | undefined): Promise<OwnerCheck> {
    const chains = new Map<string, StateChain>();
    const tree = new SessionTree();
    const shards = new Set<string>();
    const findings: (() => void)[] = [];
    let count = 0;
    let writtenMs = 0;
    let isSure = true;
    const snapshots = snapshotsOf(this.#tenant, owner);
    for await (const document of this.#tenant.database.documents(snapshots, MOST_READ_AT_ONCE)) {
      const { id, path } = document.ref;
      count++;
      writtenMs = Math.max(writtenMs, document.updateTime.toMillis());
      let found: Omit<Found, 'kind' | 'problem'> = { place: path, ...(sessionId !== undefined && { sessionId }) };
      if (!id.startsWith('~')) found = { ...found, snapshotId: id };
      try {
        const snapshot = readSnapshotDocument(id, document);
        tree.put(snapshot.meta);
        for (const name of snapshot.shards) shards.add(name);
        found = { ...found, snapshotId: snapshot.meta.snapshotId };
        const { meta } = await this.#reader.opened(snapshot);
        if (isLeaseOver(meta)) findings.push(() => this.#check.reportRun(meta, found));
        await this.#checkState(snapshot, chains);
      } catch (error) {
        isSure = false;
        findings.push(() => this.#check.reportError(error, found));
      }
    }
    return { tree, shards: isSure ? shards : undefined, findings, count, writtenMs };
  }

  async #checkState(snapshot: SnapshotDocument, chains: Map<string, StateChain>): Promise<void> {
    const { state, seq } = snapshot;
    if (state.kind === 'none') return;
    const base = state.kind === 'diff' ? chains.get(state.base) : undefined;
    const known = state.kind === 'whole' ? wholeChain(state, seq) : base && extended(base, state.name, state.patch);
    // A base that was not read yet is searched as for a reader, to get its error.
    const chain = known ?? (await this.#reader.states.chainOf(snapshot));
    await this.#reader.states.stateAt(chain, snapshot);
    chains.set(state.name, chain);
  }

  /** Snapshots that no pointer names. */
  async #checkRemains(): Promise<void> {
    for await (const [owner, first] of firstOfOwners(this.#tenant)) {
      if (this.#known.has(owner)) continue;
      const place = first.ref.path;
      try {
        const head = readHead(first.id, first.data());
        if (head.sessionId === undefined) await this.#checkWithoutSession(head, owner, place);
        else await this.#checkRest(head.sessionId, owner);
      } catch (error) {
        this.#known.add(owner);
        this.#check.reportError(error, { place });
      }
    }
  }

  async #checkWithoutSession(head: SnapshotHead, owner: string, place: string): Promise<void> {
    const { snapshotId } = head.meta;
    if (!(await this.#reader.isAlive(head))) {
      this.#known.add(owner);
      return this.#check.report({ kind: 'expired', snapshotId, place, problem: 'a snapshot that has expired' });
    }
    const checked = await this.#checkOwner(owner, undefined);
    this.#known.add(owner);
    for (const report of checked.findings) report();
    this.#check.count('snapshots', checked.count);
    const { shards } = checked;
    if (shards) await this.#checkShards((this.#shards.get(owner) ?? []).filter(({ id }) => !shards.has(id)));
  }

  /** Snapshots of a session whose pointer is missing, or of another incarnation. */
  async #checkRest(sessionId: string, owner: string): Promise<void> {
    const place = this.#tenant.pointerRef(sessionId).path;
    const pointer = this.#lost.has(keyOf('session', sessionId)) ? 'lost' : await this.#pointerOf(sessionId, place);
    if (pointer === 'lost') {
      // The snapshots can still be read by their ids.
      this.#known.add(owner);
      const checked = await this.#checkOwner(owner, sessionId);
      for (const report of checked.findings) report();
      this.#check.count('snapshots', checked.count);
    } else if (pointer?.owner === owner) {
      // The session began while this check was running.
      this.#known.add(owner);
    } else if (!pointer && this.#tenant.settings.expireAfterMs !== undefined) {
      this.#known.add(owner);
      this.#check.report({ kind: 'expired', sessionId, problem: 'the rest of a session that has expired' });
    } else {
      const { writtenMs, count } = await this.#checkOwner(owner, sessionId);
      const found = { sessionId, problem: `${count} snapshots of a deleted session` };
      await this.#reportOrphan(found, writtenMs, () => {
        // Its shards are removed as well.
        this.#shards.delete(owner);
        return removeRemains(this.#tenant, [sessionId], { keepsWaiting: true });
      });
    }
  }

  async #pointerOf(sessionId: string, place: string): Promise<PointerDocument | 'lost' | undefined> {
    try {
      return await this.#reader.livePointer(sessionId);
    } catch (error) {
      this.#lost.add(keyOf('session', sessionId));
      this.#check.reportError(error, { sessionId, place });
      return 'lost';
    }
  }

  /** Checks shards that no state needs. */
  async #checkShards(shards: readonly QueryDocumentSnapshot[], sessionId?: string): Promise<void> {
    const { database } = this.#tenant;
    const session = sessionId === undefined ? {} : { sessionId };
    for (const shard of shards) {
      const found = { ...session, place: shard.ref.path, problem: 'a shard that no state needs' };
      await this.#reportOrphan(found, shard.updateTime.toMillis(), () => database.removeUnchanged([shard]));
    }
  }

  async #checkRecord(document: QueryDocumentSnapshot): Promise<void> {
    const { database } = this.#tenant;
    const { path: place } = document.ref;
    this.#check.count('records');
    let sessionId: string | undefined;
    try {
      ({ sessionId } = readRecordHead(document));
      const record = await readRecord(document, this.#tenant.sealer('session', sessionId));
      if (this.#lost.has(keyOf('session', sessionId))) return;
      const pointer = await this.#reader.livePointer(sessionId);
      if (!isDeadRecord(this.#tenant, record, pointer, true)) return;
      const found = { sessionId, place, problem: 'a record of a session that does not exist' };
      await this.#reportOrphan(found, record.written.toMillis(), () => database.removeUnchanged([document]));
    } catch (error) {
      this.#check.reportError(error, { ...(sessionId !== undefined && { sessionId }), place });
    }
  }

  async #checkScope(document: QueryDocumentSnapshot): Promise<void> {
    const { path: place } = document.ref;
    this.#check.count('scopes');
    try {
      assertOwnDocument(document.data(), 'A record of a user or an app');
      const key = await unpackText(document.get('scope') as Buffer).catch(() => undefined);
      if (key !== undefined) await readScopeDocument(document, key, this.#tenant.sealer('scope', key));
      else {
        const problem = 'a record of a user or an app whose document is damaged';
        this.#check.report({ kind: 'damaged', place, problem });
      }
    } catch (error) {
      this.#check.reportError(error, { place });
    }
  }

  /** Reports an orphan. With `repair`, and if it is older than the grace, runs `remove` first, which returns a falsy value if it removed nothing. */
  async #reportOrphan(found: Omit<Found, 'kind'>, writtenMs: number, remove: () => Promise<unknown>): Promise<void> {
    const isOld = this.#check.mayRepair(writtenMs, this.#tenant.database.now());
    const isRepaired = isOld && Boolean(await remove());
    this.#check.report({ ...found, kind: 'orphan' }, isRepaired);
  }
}
