import type { DocumentSnapshot } from '@google-cloud/firestore';
import { dataLoss, quote, unavailable } from '../../src/errors.ts';
import { handOut, type HandOutOptions } from '../../src/snapshot/hand-out.ts';
import type { SessionSnapshot } from '../../src/snapshot/snapshot.ts';
import { assertNotBranched, type Lookup } from '../../src/store/lookup.ts';
import { unreadableSnapshot } from '../../src/store/unreadable.ts';
import { adoptedView } from './genkit-session.ts';
import { isForeignPointer } from './genkit-format.ts';
import { hasExpiredLeaf, isAlive, latestLeaf, leafCount, type Leaf } from './lineage.ts';
import { orderRange, keyOf } from './names.ts';
import { isThere, readPointer, type PointerDocument } from './pointer-document.ts';
import { PrunedSession } from './prune-session.ts';
import {
  HEAD_FIELDS,
  readHead,
  readSnapshotDocument,
  type SnapshotDocument,
  type SnapshotHead,
} from './snapshot-document.ts';
import { endOf } from './state-chain.ts';
import { StateReader, type LoadedState } from './state-reader.ts';
import type { Tenant } from './tenant.ts';

/** A snapshot as it was read. Immutable: parts of its state are shared with others. */
export interface LoadedSnapshot {
  readonly snapshot: SnapshotDocument;
  /** `undefined`: the snapshot has no state. */
  readonly state: LoadedState | undefined;
}

/** How often a read may start again because somebody was just writing. */
const MOST_ATTEMPTS = 20;

/** Finds a tenant's snapshots. */
export class SnapshotReader {
  readonly states: StateReader;
  readonly #tenant: Tenant;

  constructor(tenant: Tenant) {
    this.#tenant = tenant;
    this.states = new StateReader(tenant);
  }

  /** The snapshot that a lookup means, with its state. */
  find(lookup: Lookup): Promise<LoadedSnapshot | undefined> {
    return lookup.by === 'snapshot' ? this.#byId(lookup.id) : this.#bySession(lookup.id, true);
  }

  /** The metadata of the snapshot that a lookup means. */
  async findMetadata(lookup: Lookup): Promise<SnapshotDocument['meta'] | undefined> {
    if (lookup.by === 'session') return (await this.#bySession(lookup.id, false))?.snapshot.meta;
    const document = await this.#tenant.database.get(this.#tenant.snapshotRef(lookup.id), HEAD_FIELDS);
    if (!document.exists) return undefined;
    const head = readHead(lookup.id, document.data()!);
    return isAlive(head, Date.now()) ? head.meta : undefined;
  }

  /** A snapshot that is there. */
  async document(snapshotId: string): Promise<SnapshotDocument | undefined> {
    return this.read(snapshotId, await this.#tenant.database.get(this.#tenant.snapshotRef(snapshotId)));
  }

  /** What a document says, and notes that the snapshot is there. */
  read(snapshotId: string, document: DocumentSnapshot): SnapshotDocument | undefined {
    if (!document.exists) {
      this.#tenant.forgetSnapshot(snapshotId);
      return undefined;
    }
    const snapshot = readSnapshotDocument(snapshotId, document);
    this.#tenant.rememberSnapshot(snapshotId, snapshot.sessionId);
    return isAlive(snapshot, Date.now()) ? snapshot : undefined;
  }

  /** The session's pointer, and notes it; `undefined` when there is no such session. */
  async pointer(sessionId: string): Promise<PointerDocument | undefined> {
    return this.readPointer(sessionId, await this.#tenant.database.get(this.#tenant.pointerRef(sessionId)));
  }

  async readPointer(sessionId: string, document: DocumentSnapshot): Promise<PointerDocument | undefined> {
    const data = document.data();
    if (!data) {
      const newest = await this.#newestOf(sessionId);
      if (!newest || !isAlive(newest, Date.now())) {
        this.#tenant.rememberAbsence(sessionId, newest ? newest.seq + 1 : 0);
        return undefined;
      }
      // Somebody may just have begun the session.
      const again = await this.#tenant.database.get(this.#tenant.pointerRef(sessionId));
      if (again.exists) return this.readPointer(sessionId, again);
      this.#tenant.rememberPointer(sessionId, undefined);
      throw dataLoss(
        `The pointer of session ${quote(sessionId)} is missing. Restore it from a backup, or resume by snapshotId.`,
      );
    }
    if (isForeignPointer(data)) return adoptedView(this.#tenant, sessionId, document);
    const pointer = readPointer(document, sessionId);
    this.#tenant.rememberPointer(sessionId, pointer);
    return pointer;
  }

  /**
   * The pointer with the leaves that there are once some that it knows count as gone: what they stood on may live longer, because it was
   * written again, or under another `expireAfterMs`.
   */
  async surviving(pointer: PointerDocument): Promise<PointerDocument> {
    if (!hasExpiredLeaf(pointer.lineage, Date.now())) return pointer;
    const session = await PrunedSession.read(this.#tenant, this, pointer);
    return { ...pointer, lineage: session.lineage };
  }

  async #byId(snapshotId: string): Promise<LoadedSnapshot | undefined> {
    for (let attempt = 1, before: SnapshotDocument | undefined; ; attempt++) {
      const snapshot = await this.document(snapshotId);
      if (!snapshot) return undefined;
      try {
        return { snapshot, state: await this.states.stateOf(snapshot) };
      } catch (error) {
        // Somebody may just have rewritten it, and removed what it stood on.
        if (before?.updateTime.isEqual(snapshot.updateTime) || attempt === MOST_ATTEMPTS) throw error;
        before = snapshot;
      }
    }
  }

  async #bySession(sessionId: string, withState: boolean): Promise<LoadedSnapshot | undefined> {
    const { database } = this.#tenant;
    let missing: { pointer: PointerDocument; leaf: Leaf } | undefined;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const cached = this.#tenant.pointer(sessionId);
      const guess = cached && latestLeaf(cached.lineage, Date.now())?.id;
      const refs = [this.#tenant.pointerRef(sessionId)];
      if (guess !== undefined) refs.push(this.#tenant.snapshotRef(guess));
      const [pointerDocument, guessed] = await database.getAll(refs);
      const known = await this.readPointer(sessionId, pointerDocument!);
      if (!known || !isThere(known, Date.now())) return undefined;
      const pointer = await this.surviving(known);
      const leaf = this.#leafOf(pointer);
      if (!leaf) return undefined;
      const [document] = await Promise.all([
        leaf.id === guess ? guessed! : database.get(this.#tenant.snapshotRef(leaf.id)),
        withState ? this.#prepare(pointer, leaf) : undefined,
      ]);
      const snapshot = this.read(leaf.id, document);
      if (snapshot) return { snapshot, state: withState ? await this.states.stateOf(snapshot, pointer) : undefined };
      if (missing?.leaf.id === leaf.id && missing.pointer.updateTime.isEqual(pointer.updateTime)) {
        throw unreadableSnapshot(leaf.id, 'its document is missing');
      }
      missing = { pointer, leaf };
    }
    throw unavailable(`Session ${quote(sessionId)} changed too often while it was read. Try again.`);
  }

  /** Reads the shards of the leaf's state while its document is read. */
  async #prepare({ head }: PointerDocument, leaf: Leaf): Promise<void> {
    if (head?.id !== leaf.id || this.#tenant.caches.states.get(endOf(head.chain))) return;
    // What is wrong with it is said when the state is asked for: the leaf may have another one by now.
    await this.states.stateAt(head.chain, leaf.id).catch(() => {});
  }

  #leafOf({ sessionId, lineage }: PointerDocument): Leaf | undefined {
    const now = Date.now();
    if (this.#tenant.settings.rejectBranching) assertNotBranched(sessionId, leafCount(lineage, now));
    return latestLeaf(lineage, now);
  }

  /** The newest snapshot of a session. One without a pointer must have none that is alive, else its pointer was lost. */
  async #newestOf(sessionId: string): Promise<SnapshotHead | undefined> {
    const { from, below } = orderRange(keyOf('session', sessionId));
    const { collections, database } = this.#tenant;
    const newest = collections.snapshots.where('at', '>=', from).where('at', '<', below).orderBy('at', 'desc');
    const [found] = await database.query(newest.limit(1).select(...HEAD_FIELDS));
    return found && readHead(sessionId, found.data());
  }
}

/** The snapshot as a caller gets it; see {@link handOut}. */
export function handOutLoaded<S>(
  { snapshot, state }: LoadedSnapshot,
  { frozen }: Pick<HandOutOptions, 'frozen'> = {},
): SessionSnapshot<S> {
  return handOut(snapshot.meta, { state: state && (() => state.known.state), frozen });
}
