import { FieldPath, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import { isUnreadable } from '../../../src/errors.ts';
import { planRetention } from '../../../src/snapshot/retention.ts';
import type { PruneOptions } from '../../../src/store/base-session-store.ts';
import type { DeleteResult, PrunePolicy, PruneResult } from '../../../src/store/contract.ts';
import { ORPHAN_RECORD_MS } from '../../../src/store/records/session-records.ts';
import { isDataLoss, Stale } from '../failures.ts';
import { keyOf } from '../format/names.ts';
import { LIST_FIELDS, readPointer, type PointerDocument } from '../format/pointer-document.ts';
import { readRecordHead, RECORD_FIELDS, type RecordHead } from '../format/record-document.ts';
import { readHead } from '../format/snapshot-document.ts';
import { firstOfOwners, shardsByOwner, snapshotsOf } from '../read/owners.ts';
import type { SnapshotReader } from '../read/snapshot-reader.ts';
import type { TenantDatabase } from '../tenant-database.ts';
import { forgetDeadRecords, isDeadRecord, removeRemains, removeSession } from '../remove/delete-session.ts';
import { PrunedSession } from './prune-session.ts';

/** A session that is written during each of this many attempts is not pruned. */
const MOST_ATTEMPTS = 10;

/**
 * Removes what the policy names, session by session, then the rest of expired sessions, then the shards that no snapshot names and the
 * records that belong to no session. If it is interrupted, run it again.
 *
 * The shards are listed before anything else: a shard that a save writes or names later is not on the list, or has another update time.
 */
export class Prune {
  readonly #tenant: TenantDatabase;
  readonly #reader: SnapshotReader;
  readonly #policy: PrunePolicy;
  readonly #nowMs = Date.now();
  /** The session to prune; `undefined`: all. */
  readonly #only: string | undefined;
  /** The shards of each owner. */
  #shards: ReadonlyMap<string, readonly QueryDocumentSnapshot[]> = new Map();
  /** Owners that were pruned or are kept. The shards of all other owners are removed at the end. */
  readonly #known = new Set<string>();
  readonly #result: PruneResult;
  #damage: unknown;

  constructor(reader: SnapshotReader, policy: PrunePolicy, { dryRun, sessionId }: PruneOptions) {
    this.#only = sessionId;
    this.#tenant = reader.tenant;
    this.#reader = reader;
    this.#policy = policy;
    this.#result = { sessions: 0, snapshots: 0, shards: 0, dryRun };
  }

  /** @throws `DATA_LOSS` when a session is damaged, or `FAILED_PRECONDITION` when its key is missing, after all others are pruned. */
  async run(): Promise<PruneResult> {
    await this.#tenant.hasSnapshots();
    const { database, pointers } = this.#tenant;
    this.#shards = await shardsByOwner(this.#tenant, this.#only === undefined ? '' : keyOf('session', this.#only));
    if (this.#only !== undefined) {
      await this.#pruneSession(this.#only);
      return this.#result;
    }
    const named = pointers.orderBy(FieldPath.documentId()).select(...LIST_FIELDS);
    for await (const document of database.documents(named)) {
      await this.#guarded(() => this.#pruneSession(readPointer(document).sessionId));
    }
    for await (const [owner, document] of firstOfOwners(this.#tenant)) {
      if (!this.#known.has(owner)) await this.#guarded(() => this.#pruneRemains(document, owner));
    }
    const orphans = [...this.#shards].flatMap(([owner, shards]) => (this.#known.has(owner) ? [] : shards));
    await this.#removeShards(orphans);
    await this.#pruneRecords();
    if (this.#damage) throw this.#damage;
    return this.#result;
  }

  /** Runs the work on one session. If the session can't be read, its error is kept for the end, and the others are still pruned. */
  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.#damage ??= error;
    }
  }

  async #pruneSession(sessionId: string): Promise<void> {
    const { queues } = this.#tenant;
    const pointerRef = this.#tenant.pointerRef(sessionId);
    await queues.sessions.run(this.#tenant.keyOf(sessionId), async () => {
      for (let before: PointerDocument | undefined, attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
        const document = await this.#tenant.database.get(pointerRef);
        if (!document.exists) return;
        const pointer = readPointer(document, sessionId);
        this.#known.add(pointer.owner);
        try {
          return await this.#tryOnce(pointer);
        } catch (error) {
          // Another prune or a deletion may have removed documents while they were read.
          const isChanged = !before?.updateTime.isEqual(pointer.updateTime);
          if (!(error instanceof Stale) && !(isDataLoss(error) && isChanged)) throw error;
          before = pointer;
        }
      }
    });
  }

  /** @throws `Stale` when the session was written meanwhile. */
  async #tryOnce(pointer: PointerDocument): Promise<void> {
    const session = await PrunedSession.read(this.#reader, pointer);
    const { tree } = session;
    const plan = planRetention(tree, this.#policy, this.#nowMs);
    if (plan.whole || tree.size === 0 || !this.#tenant.isLive(pointer)) return this.#removeWhole(pointer, tree.size);
    await session.readBase();
    if (!this.#result.dryRun) await session.remove(plan.remove);
    this.#result.snapshots += plan.remove.length;
    const named = session.shardsWithout(plan.remove);
    await this.#removeShards(this.#shardsOf(pointer.owner).filter(({ id }) => !named.has(id)));
  }

  async #removeWhole(pointer: PointerDocument, snapshots: number): Promise<void> {
    const planned = { snapshots, shards: this.#shardsOf(pointer.owner).length };
    const removed = this.#result.dryRun ? planned : await removeSession(this.#tenant, pointer);
    if (!removed) throw new Stale();
    if (snapshots > 0) this.#result.sessions++;
    this.#count(removed);
  }

  /** Removes the rest of an expired or deleted session; prunes a snapshot without a session. */
  async #pruneRemains(first: QueryDocumentSnapshot, owner: string): Promise<void> {
    const head = readHead(first.id, first.data());
    const { dryRun } = this.#result;
    if (head.sessionId === undefined) {
      const isAlive = await this.#reader.isAlive(head);
      if (isAlive) this.#known.add(owner);
      const named = new Set(isAlive ? (first.get('shards') as string[] | null) : []);
      await this.#removeShards(this.#shardsOf(owner).filter(({ id }) => !named.has(id)));
      if (isAlive) return;
      this.#count({ snapshots: await this.#remove([first]), shards: 0 });
      if (!dryRun) await this.#tenant.sealerOf(head).forget();
      return;
    }
    this.#known.add(owner);
    const live = await this.#reader.livePointer(head.sessionId);
    if (live?.owner === owner) return;
    this.#known.delete(owner);
    if (dryRun) {
      const snapshots = await this.#tenant.database.all(snapshotsOf(this.#tenant, owner).select('at'));
      return this.#count({ snapshots: snapshots.length, shards: 0 });
    }
    await this.#tenant.sealerOf(head).forget();
    await forgetDeadRecords(this.#tenant, head.sessionId);
    this.#count(await removeRemains(this.#tenant, [head.sessionId], { keepsWaiting: true }));
  }

  /** Removes the records that belong to no session. */
  async #pruneRecords(): Promise<void> {
    const { database, records } = this.#tenant;
    const longAgo = database.now() - ORPHAN_RECORD_MS;
    const isDead = (record: RecordHead, pointer: PointerDocument | undefined): boolean =>
      isDeadRecord(this.#tenant, record, pointer, record.written.toMillis() <= longAgo);
    const ordered = records.orderBy(FieldPath.documentId()).select(...RECORD_FIELDS);
    for await (const page of database.pages(ordered)) {
      const sessions = new Map<string, Promise<PointerDocument | undefined>>();
      const dead: QueryDocumentSnapshot[] = [];
      const absent = new Set<string>();
      const check = async (document: QueryDocumentSnapshot): Promise<void> => {
        const record = readRecordHead(document);
        const { sessionId } = record;
        const pointer = sessions.get(sessionId) ?? this.#reader.livePointer(sessionId);
        sessions.set(sessionId, pointer);
        if (!isDead(record, await pointer)) return;
        dead.push(document);
        if (!(await pointer)) absent.add(sessionId);
      };
      for (const document of page) await this.#guarded(() => check(document));
      const forget = (id: string): Promise<void> =>
        forgetDeadRecords(this.#tenant, id, (record) => isDead(record, undefined));
      if (!this.#result.dryRun) for (const id of absent) await this.#guarded(() => forget(id));
      await this.#remove(dead);
    }
  }

  #shardsOf(owner: string): readonly QueryDocumentSnapshot[] {
    return this.#shards.get(owner) ?? [];
  }

  async #removeShards(shards: readonly QueryDocumentSnapshot[]): Promise<void> {
    this.#count({ snapshots: 0, shards: await this.#remove(shards) });
  }

  async #remove(documents: readonly QueryDocumentSnapshot[]): Promise<number> {
    return this.#result.dryRun ? documents.length : this.#tenant.database.removeUnchanged(documents);
  }

  #count({ snapshots, shards }: DeleteResult): void {
    this.#result.snapshots += snapshots;
    this.#result.shards += shards;
  }
}
