import type { DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { dataLoss, quote, unavailable } from '../../../src/errors.ts';
import { handOut } from '../../../src/snapshot/hand-out.ts';
import type { SessionSnapshot } from '../../../src/snapshot/snapshot.ts';
import { type Lookup } from '../../../src/store/check-lookup.ts';
import { assertNotBranched } from '../../../src/store/choose-leaf.ts';
import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { isDataLoss } from '../failures.ts';
import type { Leaf } from '../format/lineage.ts';
import { keyOf } from '../format/names.ts';
import { readPointer, type PointerDocument } from '../format/pointer-document.ts';
import {
  HEAD_FIELDS,
  openHead,
  readHead,
  readSnapshotDocument,
  type SnapshotDocument,
  type SnapshotHead,
} from '../format/snapshot-document.ts';
import type { TenantDatabase } from '../tenant-database.ts';
import { StateReader } from './state-reader.ts';

/** A snapshot that was read. Immutable: parts of its state are shared with others. */
export interface LoadedSnapshot {
  readonly snapshot: SnapshotDocument;
  /** `undefined`: the snapshot has no state. */
  readonly state: KnownState | undefined;
}

/** How often a read starts again because of writes at the same time. */
const MOST_ATTEMPTS = 20;
/** How often a missing pointer of a session with snapshots is read again: the session may have just begun, or may be being removed. */
const POINTER_READS = 3;

/** Finds a tenant's snapshots. */
export class SnapshotReader {
  readonly tenant: TenantDatabase;
  readonly states: StateReader;

  constructor(tenant: TenantDatabase) {
    this.tenant = tenant;
    this.states = new StateReader(tenant);
  }

  /** The snapshot that a lookup names, with its state. */
  find({ by, id }: Lookup): Promise<LoadedSnapshot | undefined> {
    return by === 'snapshot' ? this.#byId(id) : this.#bySession(id, true);
  }

  /** The metadata of the snapshot that a lookup names. */
  async findMetadata({ by, id }: Lookup): Promise<SnapshotDocument['meta'] | undefined> {
    if (by === 'session') return (await this.#bySession(id, false))?.snapshot.meta;
    const document = await this.tenant.database.get(this.tenant.snapshotRef(id), HEAD_FIELDS);
    if (!document.exists) return this.#none();
    const head = readHead(id, document.data()!);
    return (await this.isAlive(head)) ? (await this.opened(head)).meta : undefined;
  }

  /** The snapshot, if it exists and has not expired. */
  async snapshot(snapshotId: string, document?: DocumentSnapshot): Promise<SnapshotDocument | undefined> {
    const snapshot = this.read(
      snapshotId,
      document ?? (await this.tenant.database.get(this.tenant.snapshotRef(snapshotId))),
    );
    return snapshot && (await this.isAlive(snapshot)) ? snapshot : undefined;
  }

  /** The content of a document, even of an expired snapshot. Notes in the cache whether the snapshot exists. */
  read(snapshotId: string, document: DocumentSnapshot): SnapshotDocument | undefined {
    const { caches } = this.tenant;
    const key = this.tenant.keyOf(snapshotId);
    if (document.exists) caches.snapshots.set(key, true, 1);
    else caches.snapshots.delete(key);
    return document.exists ? readSnapshotDocument(snapshotId, document) : undefined;
  }

  /** The head with its encrypted part decrypted. @throws as {@link openHead}. */
  opened<T extends SnapshotHead>(head: T): Promise<T> {
    return openHead(head, this.tenant.sealerOf(head));
  }

  /**
   * Whether a snapshot has not expired. The session's pointer is read only if the snapshot's own expiry does not decide: it has passed, or
   * is later than this store would set it.
   */
  async isAlive(snapshot: SnapshotHead): Promise<boolean> {
    const { sessionId, until } = snapshot;
    const { expireAfterMs } = this.tenant.settings;
    const left = until === undefined ? Infinity : until - this.tenant.database.now();
    if (sessionId === undefined) return left > 0;
    return (left > 0 && left <= (expireAfterMs ?? Infinity)) || this.#isOfSession(snapshot);
  }

  /** The session's pointer, even of a session that is being removed; `undefined` if it is missing. Caches the result. */
  async pointer(sessionId: string, document?: DocumentSnapshot): Promise<PointerDocument | undefined> {
    const found = document ?? (await this.tenant.database.get(this.tenant.pointerRef(sessionId)));
    if (found.exists) {
      const pointer = readPointer(found, sessionId);
      this.tenant.rememberPointer(sessionId, pointer);
      return pointer;
    }
    this.tenant.caches.pointers.delete(this.tenant.keyOf(sessionId));
    if (await this.#isLost(sessionId)) {
      throw dataLoss(
        `The pointer of session ${quote(sessionId)} is missing. Restore it from a backup, or resume by snapshotId.`,
      );
    }
    this.tenant.rememberPointer(sessionId, 'absent');
    return undefined;
  }

  /** The pointer of a session, if it has not expired and is not being removed. */
  async livePointer(sessionId: string, document?: DocumentSnapshot): Promise<PointerDocument | undefined> {
    const pointer = await this.pointer(sessionId, document);
    return pointer && this.tenant.isLive(pointer) ? pointer : undefined;
  }

  /** Reads again whether a snapshot exists after a part of it was missing: it may have been rewritten or removed while it was read. */
  async recheck(snapshot: SnapshotDocument): Promise<'unchanged' | 'rewritten' | 'absent'> {
    const { updateTime } = await this.tenant.database.get(snapshot.ref, ['v']);
    if (!updateTime || (snapshot.sessionId !== undefined && !(await this.#isOfSession(snapshot)))) return 'absent';
    return updateTime.isEqual(snapshot.updateTime) ? 'unchanged' : 'rewritten';
  }

  async #byId(snapshotId: string): Promise<LoadedSnapshot | undefined> {
    for (let attempt = 1; ; attempt++) {
      const snapshot = await this.snapshot(snapshotId);
      if (!snapshot) return this.#none();
      try {
        return { snapshot: await this.opened(snapshot), state: await this.states.stateOf(snapshot) };
      } catch (error) {
        if (!isDataLoss(error) || attempt === MOST_ATTEMPTS) throw error;
        const now = await this.recheck(snapshot);
        if (now === 'absent') return undefined;
        if (now === 'unchanged') throw error;
      }
    }
  }

  async #bySession(sessionId: string, withState: boolean): Promise<LoadedSnapshot | undefined> {
    const { database } = this.tenant;
    for (let before: Timestamp | undefined, attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const cached = this.tenant.pointer(sessionId);
      const guess = cached === 'absent' ? undefined : cached?.lineage.leaves.at(-1)?.id;
      const refs = [this.tenant.pointerRef(sessionId)];
      if (guess !== undefined) refs.push(this.tenant.snapshotRef(guess));
      const [pointerDocument, guessed] = await database.getShared(refs);
      const pointer = await this.livePointer(sessionId, pointerDocument);
      if (!pointer) return undefined;
      const leaf = this.#leafOf(pointer);
      try {
        const [document] = await Promise.all([
          leaf.id === guess ? guessed! : database.get(this.tenant.snapshotRef(leaf.id)),
          withState ? this.#prepare(pointer, leaf) : undefined,
        ]);
        const snapshot = this.read(leaf.id, document);
        if (snapshot?.owner !== pointer.owner) throw unreadableSnapshot(leaf.id, 'its document is missing', sessionId);
        const state = withState ? await this.states.stateOf(snapshot, pointer) : undefined;
        return { snapshot: await this.opened(snapshot), state };
      } catch (error) {
        // The session may have continued, and the leaf been pruned, during the read.
        if (!isDataLoss(error) || before?.isEqual(pointer.updateTime)) throw error;
        before = pointer.updateTime;
      }
    }
    throw unavailable(`Session ${quote(sessionId)} changed too often while it was read. Try again.`);
  }

  /** Reads the shards of the leaf's state while its document is read. */
  async #prepare({ head, sessionId, owner }: PointerDocument, leaf: Leaf): Promise<void> {
    if (head?.id !== leaf.id) return;
    // Errors are thrown when the state itself is read: the leaf may have another state by now.
    await this.states.stateAt(head.chain, { sessionId, owner, meta: { snapshotId: leaf.id } }).catch(() => {});
  }

  #leafOf({ sessionId, lineage: { leaves } }: PointerDocument): Leaf {
    if (this.tenant.settings.rejectBranching) assertNotBranched(sessionId, leaves.length);
    return leaves.at(-1)!;
  }

  async #isOfSession({ sessionId, owner }: SnapshotHead): Promise<boolean> {
    const document = await this.tenant.database.get(this.tenant.pointerRef(sessionId!));
    // Without `expireAfterMs` a missing pointer was lost, but the snapshots can still be read.
    if (!document.exists) return this.tenant.settings.expireAfterMs === undefined;
    const pointer = readPointer(document, sessionId);
    return this.tenant.isLive(pointer) && pointer.owner === owner;
  }

  /** Whether a session without a pointer has snapshots. Where sessions expire, a missing pointer is an expired session. */
  async #isLost(sessionId: string): Promise<boolean> {
    const { database, snapshots, settings } = this.tenant;
    if (!(await this.tenant.hasSnapshots()) || settings.expireAfterMs !== undefined) return false;
    const key = keyOf('session', sessionId);
    const query = snapshots.where('at', '>=', key).where('at', '<', `${key}~`).limit(1).select();
    for (let reads = 0; reads < POINTER_READS; reads++) {
      if ((await database.query(query)).length === 0) return false;
      // The session may have begun after its pointer was read.
      if ((await database.get(this.tenant.pointerRef(sessionId), ['v'])).exists) return false;
    }
    return true;
  }

  /** The result for a missing snapshot. First makes sure that the collection does not hold the data of another store. */
  async #none(): Promise<undefined> {
    await this.tenant.hasSnapshots();
  }
}

/** The snapshot for a caller; see {@link handOut}. */
export function handOutLoaded<S>(
  { snapshot, state }: { readonly snapshot: Pick<SnapshotHead, 'meta'>; readonly state: KnownState | undefined },
  { frozen }: Pick<Lookup, 'frozen'> = {},
): SessionSnapshot<S> {
  return handOut(snapshot.meta, { state: state && (() => state.state), frozen });
}
