import type { CollectionReference, DocumentReference, Timestamp } from '@google-cloud/firestore';
import { Sealer, type Encryption } from '../../src/store/encryption/encryption.ts';
import { KeyQueue } from '../../src/store/parts/key-queue.ts';
import { LruCache } from '../../src/store/parts/lru-cache.ts';
import type { KnownState } from '../chain/known-state.ts';
import type { Database } from './database.ts';
import { foreignLayout } from './format/foreign-layout.ts';
import { documentId, recordName, scopeName } from './format/names.ts';
import type { Pointer, PointerDocument } from './format/pointer-document.ts';
import type { ScopeDocument } from './format/scope-document.ts';

/** The total JSON length of all cached states; a part that several states share counts for each. */
const MOST_LENGTH = 64 * 1024 * 1024;
const MOST_POINTERS = 2000;
const MOST_SNAPSHOTS = 20_000;
const MOST_REVISIONS = 20_000;
const MOST_TENANTS = 20_000;
/** The total JSON length of all cached records of apps and users. */
const MOST_SCOPES_LENGTH = 16 * 1024 * 1024;
/** Added to the length of each cached record; a missing one counts as well. */
const SCOPE_OVERHEAD = 1024;

/** Tenant names that Genkit's own store uses as a path of collections and documents. */
const NESTED = /^[A-Za-z0-9][ -.0-~]*(?:\/[A-Za-z0-9][ -.0-~]*\/[A-Za-z0-9][ -.0-~]*)+$/;

/** The key of a record's revision in {@link Caches.revisions}. */
export function revisionKey(
  { sessionId, kind, key }: { readonly sessionId: string; readonly kind: string; readonly key: string },
  revision: string,
): string {
  return JSON.stringify([sessionId, kind, key, revision]);
}

/** The store's caches. All of them except the states are revalidated by a commit or a read before they are relied on. */
export class Caches {
  /** By name. A name is never used for another state. */
  readonly states = new LruCache<KnownState>(MOST_LENGTH);
  /** `absent`: the session did not exist when it was read, so its first save need not read again. */
  readonly pointers = new LruCache<PointerDocument | 'absent'>(MOST_POINTERS);
  /** Snapshots that existed when they were last read. */
  readonly snapshots = new LruCache<true>(MOST_SNAPSHOTS);
  readonly scopes = new LruCache<ScopeDocument>(MOST_SCOPES_LENGTH);
  /** By {@link revisionKey}: the update times of the revisions of session records. */
  readonly revisions = new LruCache<{ readonly updateTime: Timestamp; readonly until: number }>(MOST_REVISIONS);
  /** Tenants that hold data of this store. */
  readonly tenants = new LruCache<true>(MOST_TENANTS);

  clear(): void {
    for (const cache of [this.states, this.pointers, this.snapshots, this.scopes, this.revisions, this.tenants])
      cache.clear();
  }
}

/** Serialize the saves of this process, which would otherwise conflict. Take them always in this order, to prevent deadlocks. */
export const newQueues = () => ({ snapshots: new KeyQueue(), scopes: new KeyQueue(), sessions: new KeyQueue() });

/** Options of the store. */
export interface StoreSettings {
  readonly checkpointInterval: number;
  readonly shardSize: number;
  readonly rejectBranching: boolean;
  readonly expireAfterMs: number | undefined;
  readonly maxStateBytes: number;
}

/** Shared by all tenants of a store. */
export interface Shared {
  readonly database: Database;
  readonly settings: StoreSettings;
  readonly caches: Caches;
  readonly queues: ReturnType<typeof newQueues>;
  readonly encryption: Encryption | undefined;
}

/** The part of a snapshot or a pointer that selects its data key. */
export interface SealedFor {
  readonly sessionId: string | undefined;
  /** The incarnation: a session that begins again has new keys, so those of the old one can be removed at any time. */
  readonly owner: string;
  readonly meta: { readonly snapshotId: string };
}

/** The part of the database that belongs to one tenant. */
export class TenantDatabase {
  readonly name: string;
  readonly database: Database;
  readonly settings: StoreSettings;
  readonly caches: Caches;
  readonly queues: Shared['queues'];
  readonly snapshots: CollectionReference;
  readonly pointers: CollectionReference;
  readonly shards: CollectionReference;
  /** The records of apps and users. */
  readonly scopes: CollectionReference;
  /** The records of sessions. */
  readonly records: CollectionReference;
  readonly #id: string;
  readonly #shared: Shared;

  /** @param id The tenant's document in each collection. */
  constructor(name: string, shared: Shared, id = documentId(name)) {
    const { database } = shared;
    this.name = name;
    this.#id = id;
    this.#shared = shared;
    this.database = database;
    this.settings = shared.settings;
    this.caches = shared.caches;
    this.queues = shared.queues;
    this.snapshots = database.collection('', id, 'snapshots');
    this.pointers = database.collection('-pointers', id, 'pointers');
    this.shards = database.collection('-shards', id, 'shards');
    this.scopes = database.collection('-scopes', id, 'scopes');
    this.records = database.collection('-records', id, 'records');
  }

  withEmptyCaches(): TenantDatabase {
    return new TenantDatabase(this.name, { ...this.#shared, caches: new Caches() }, this.#id);
  }

  /** Whether new data is encrypted. */
  get isEncrypted(): boolean {
    return this.#shared.encryption !== undefined;
  }

  /** Encrypts and decrypts the records of a session, or that of a user or an app. */
  sealer(kind: 'session' | 'scope', id: string, reopen?: () => Promise<unknown>): Sealer {
    // Not the tenant's name: `removeExpired` knows only the document.
    return new Sealer(this.#shared.encryption, { tenant: this.#id, kind, id }, reopen);
  }

  /** Encrypts and decrypts snapshots: those of a session, or one without. */
  sealerOf({ sessionId, owner, meta }: Omit<SealedFor, 'meta'> & Partial<SealedFor>): Sealer {
    const what =
      sessionId === undefined
        ? { kind: 'snapshot' as const, id: meta?.snapshotId ?? '' }
        : { kind: 'session' as const, id: sessionId };
    return new Sealer(this.#shared.encryption, { tenant: this.#id, ...what, incarnation: owner });
  }

  snapshotRef(snapshotId: string): DocumentReference {
    return this.snapshots.doc(documentId(snapshotId));
  }

  pointerRef(sessionId: string): DocumentReference {
    return this.pointers.doc(documentId(sessionId));
  }

  /** @param key The record's `scopeKey`. */
  scopeRef(key: string): DocumentReference {
    return this.scopes.doc(scopeName(this.name, key));
  }

  recordRef(sessionId: string, kind: string, key: string): DocumentReference {
    return this.records.doc(recordName(sessionId, kind, key));
  }

  /** The key for an id of this tenant in a cache, a queue or the watch hub. */
  keyOf(id: string): string {
    return JSON.stringify([this.name, id]);
  }

  /** The session's pointer as it was read or written last. */
  pointer(sessionId: string): PointerDocument | 'absent' | undefined {
    return this.caches.pointers.get(this.keyOf(sessionId));
  }

  rememberPointer(sessionId: string, pointer: PointerDocument | 'absent'): void {
    this.caches.pointers.set(this.keyOf(sessionId), pointer, 1);
  }

  rememberState(name: string, state: KnownState): void {
    this.caches.states.set(name, state, state.length);
  }

  /** @param key The record's `scopeKey`. */
  rememberScope(key: string, record: ScopeDocument): void {
    this.caches.scopes.set(this.keyOf(key), record, record.length + SCOPE_OVERHEAD);
  }

  /** Whether a session exists: it has not expired, and is not being removed. */
  isLive({ isGone, until }: Pointer): boolean {
    return !isGone && (until === undefined || until > this.database.now());
  }

  /** When a session that is written now expires, in ms; empty when sessions never expire. */
  expiry(): { readonly until?: number } {
    const { expireAfterMs } = this.settings;
    return expireAfterMs === undefined ? {} : { until: this.database.now() + expireAfterMs };
  }

  /**
   * Whether the tenant has snapshots. Called before a session or a snapshot is reported as missing, so that data of another store is
   * noticed. If there are snapshots, it costs one read for each tenant and process.
   *
   * @throws `FAILED_PRECONDITION` when the collection holds data of another store.
   */
  async hasSnapshots(): Promise<boolean> {
    const key = this.keyOf('');
    if (this.caches.tenants.get(key)) return true;
    const documents = await this.database.query(this.snapshots.limit(1).select('v'));
    if (documents.length === 0 && NESTED.test(this.name)) {
      documents.push(...(await this.database.query(this.database.collection('', this.name, 'snapshots').limit(1))));
    }
    const [first] = documents;
    if (first && typeof first.get('v') !== 'number') throw foreignLayout();
    if (first) this.caches.tenants.set(key, true, 1);
    return first !== undefined;
  }
}
