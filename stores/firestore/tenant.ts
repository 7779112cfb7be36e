import type { CollectionReference } from '@google-cloud/firestore';
import { LruCache } from '../chain/lru-cache.ts';
import type { KnownState } from '../chain/written-state.ts';
import type { Database, TenantCollections } from './database.ts';
import { documentId, keyOf, recordName } from './names.ts';
import type { PointerDocument } from './pointer-document.ts';
import type { RecordDocument } from './record-document.ts';
import type { StateChain, Token } from './state-chain.ts';

/** What all states in the cache may take, measured by the length of their JSON; what they share counts for each. */
const MOST_LENGTH = 64 * 1024 * 1024;
const MOST_POINTERS = 2000;
const MOST_SNAPSHOTS = 20_000;
/** What all records in the cache may take, by the length of their JSON, ... */
const MOST_RECORDS_LENGTH = 16 * 1024 * 1024;
/** ... of which each counts as so much more, one that is not there too. */
const RECORD_OVERHEAD = 1024;

/** A state, and how to get to it. */
export interface CachedState {
  readonly known: KnownState;
  readonly chain: StateChain;
}

/** What the store remembers. All of it is confirmed before it counts: states by their tokens, pointers and records by their update times. */
export class Caches {
  /** By token: never becomes wrong. */
  readonly states = new LruCache<CachedState>(MOST_LENGTH);
  readonly pointers = new LruCache<PointerDocument>(MOST_POINTERS);
  /** Sessions that were looked for and not there: their first save need not look again. With the place that it is to have. */
  readonly absent = new LruCache<number>(MOST_POINTERS);
  /** Snapshots that were there, and their sessions. */
  readonly snapshots = new LruCache<{ readonly sessionId: string | undefined }>(MOST_SNAPSHOTS);
  readonly records = new LruCache<RecordDocument>(MOST_RECORDS_LENGTH);

  remember(token: Token, state: CachedState): void {
    this.states.set(token, state, state.known.length);
  }

  clear(): void {
    this.states.clear();
    this.pointers.clear();
    this.absent.clear();
    this.snapshots.clear();
    this.records.clear();
  }
}

/** What is the same for every call of a store. */
export interface StoreSettings {
  readonly checkpointInterval: number;
  readonly shardSize: number;
  readonly rejectBranching: boolean;
  readonly expireAfterMs: number | undefined;
  readonly maxStateBytes: number;
  /** How long a save may try again because of others, in ms. */
  readonly patienceMs: number;
}

/** One tenant's part of the database. */
export class Tenant {
  readonly name: string;
  readonly database: Database;
  readonly collections: TenantCollections;
  readonly caches: Caches;
  readonly settings: StoreSettings;

  constructor(name: string, options: { database: Database; caches: Caches; settings: StoreSettings }) {
    this.name = name;
    this.database = options.database;
    this.collections = options.database.collections(name);
    this.caches = options.caches;
    this.settings = options.settings;
  }

  snapshotRef(snapshotId: string): ReturnType<CollectionReference['doc']> {
    return this.collections.snapshots.doc(documentId(snapshotId));
  }

  pointerRef(sessionId: string): ReturnType<CollectionReference['doc']> {
    return this.collections.pointers.doc(documentId(sessionId));
  }

  shardRef(name: string): ReturnType<CollectionReference['doc']> {
    return this.collections.shards.doc(name);
  }

  /** The mark of a snapshot without a session that others name as parent. */
  parentRef(snapshotId: string): ReturnType<CollectionReference['doc']> {
    return this.collections.parents.doc(`p${keyOf('snapshot', snapshotId)}`);
  }

  /** @param key The record's `scopeKey`. */
  recordRef(key: string): ReturnType<CollectionReference['doc']> {
    return this.collections.scopes.doc(recordName(this.name, key));
  }

  /** The key of something of this tenant in a cache, a queue or the watch hub. */
  keyOf(id: string): string {
    return JSON.stringify([this.name, id]);
  }

  pointer(sessionId: string): PointerDocument | undefined {
    return this.caches.pointers.get(this.keyOf(sessionId));
  }

  rememberPointer(sessionId: string, pointer: PointerDocument | undefined): void {
    this.caches.absent.delete(this.keyOf(sessionId));
    if (pointer) this.caches.pointers.set(this.keyOf(sessionId), pointer, 1);
    else this.caches.pointers.delete(this.keyOf(sessionId));
  }

  /**
   * To be called when the session was looked for and is not there.
   *
   * @param nextSeq The place of its first snapshot: after those of expired ones that Firestore has not removed yet.
   */
  rememberAbsence(sessionId: string, nextSeq: number): void {
    this.rememberPointer(sessionId, undefined);
    this.caches.absent.set(this.keyOf(sessionId), nextSeq, 1);
  }

  /** The place of the session's first snapshot, where it is known that there is none. */
  firstSeqOf(sessionId: string): number | undefined {
    return this.caches.absent.get(this.keyOf(sessionId));
  }

  rememberSnapshot(snapshotId: string, sessionId: string | undefined): void {
    this.caches.snapshots.set(this.keyOf(snapshotId), { sessionId }, 1);
  }

  forgetSnapshot(snapshotId: string): void {
    this.caches.snapshots.delete(this.keyOf(snapshotId));
  }

  sessionOfSnapshot(snapshotId: string): { readonly sessionId: string | undefined } | undefined {
    return this.caches.snapshots.get(this.keyOf(snapshotId));
  }

  /** @param key The record's `scopeKey`. */
  rememberRecord(key: string, record: RecordDocument): void {
    this.caches.records.set(this.keyOf(key), record, record.length + RECORD_OVERHEAD);
  }

  forgetRecord(key: string): void {
    this.caches.records.delete(this.keyOf(key));
  }

  /** The record as it was read or written last; there may be another by now. */
  record(key: string): RecordDocument | undefined {
    return this.caches.records.get(this.keyOf(key));
  }
}
