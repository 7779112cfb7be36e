import {
  FieldPath,
  FieldValue,
  type CollectionReference,
  type DocumentData,
  type DocumentReference,
  type DocumentSnapshot,
  type Firestore,
  type Query,
  type QueryDocumentSnapshot,
  type Timestamp,
} from '@google-cloud/firestore';
import { unavailable } from '../../src/errors.ts';
import type { Meter } from './meter.ts';
import { documentId } from './names.ts';

/** One write of a commit. */
export type DocumentWrite =
  | { readonly kind: 'create'; readonly ref: DocumentReference; readonly data: DocumentData }
  | { readonly kind: 'set'; readonly ref: DocumentReference; readonly data: DocumentData }
  /** The document must be there, and with `at` be as it was then. */
  | { readonly kind: 'update'; readonly ref: DocumentReference; readonly data: DocumentData; readonly at?: Timestamp }
  /** With `at` the document must be as it was then; with `mustExist` it must be there. */
  | { readonly kind: 'delete'; readonly ref: DocumentReference; readonly at?: Timestamp; readonly mustExist?: boolean };

/** What a commit may hold: the emulator refuses requests over 4 MiB, production those over 10 MiB. */
export const LARGEST_COMMIT = 3 * 1024 * 1024;
/** Documents of up to 1 MiB read with one request. */
const MOST_READ_AT_ONCE = 40;
/** Deleted with one commit. */
export const MOST_DELETES_AT_ONCE = 300;

/** The collections of a tenant. */
export interface TenantCollections {
  readonly snapshots: CollectionReference;
  readonly pointers: CollectionReference;
  readonly shards: CollectionReference;
  /** The records of apps and users. */
  readonly scopes: CollectionReference;
  /** Which snapshots without a session are named as parents. */
  readonly parents: CollectionReference;
}

/** Firestore as the store uses it: every request is counted and ends in time. */
export class Database {
  readonly db: Firestore;
  readonly meter: Meter;
  readonly #collection: string;
  readonly #timeoutMs: number;
  readonly #pending = new Set<Promise<unknown>>();

  constructor(db: Firestore, options: { collection: string; timeoutMs: number; meter: Meter }) {
    this.db = db;
    this.meter = options.meter;
    this.#collection = options.collection;
    this.#timeoutMs = options.timeoutMs;
  }

  collections(tenant: string): TenantCollections {
    const id = documentId(tenant);
    const below = (suffix: string, name: string): CollectionReference =>
      this.db.collection(`${this.#collection}${suffix}`).doc(id).collection(name);
    return {
      snapshots: below('', 'snapshots'),
      pointers: below('-pointers', 'pointers'),
      shards: below('-shards', 'shards'),
      scopes: below('-scopes', 'scopes'),
      parents: below('-parents', 'parents'),
    };
  }

  async get(ref: DocumentReference, fields?: readonly string[]): Promise<DocumentSnapshot> {
    const [found] = await this.getAll([ref], fields);
    return found!;
  }

  /** The documents in the order of `refs`; `fields` names those wanted. */
  async getAll(refs: readonly DocumentReference[], fields?: readonly string[]): Promise<DocumentSnapshot[]> {
    const found: DocumentSnapshot[] = [];
    for (let start = 0; start < refs.length; start += MOST_READ_AT_ONCE) {
      const some = refs.slice(start, start + MOST_READ_AT_ONCE);
      const options = fields ? [{ fieldMask: [...fields] }] : [];
      this.meter.add({ rpcs: 1 });
      const documents = await this.#inTime(this.db.getAll(...some, ...options));
      this.meter.add({ reads: some.length, bytesRead: sum(documents.map(sizeOfSnapshot)) });
      found.push(...documents);
    }
    return found;
  }

  async query(query: Query): Promise<QueryDocumentSnapshot[]> {
    this.meter.add({ rpcs: 1 });
    const { docs } = await this.#inTime(query.get());
    this.meter.add({ reads: Math.max(1, docs.length), bytesRead: sum(docs.map(sizeOfSnapshot)) });
    return docs;
  }

  /** All or nothing. Answers the update time of each written document. */
  async commit(writes: readonly DocumentWrite[]): Promise<Timestamp[]> {
    const batch = this.db.batch();
    for (const write of writes) {
      const at = 'at' in write && write.at ? { lastUpdateTime: write.at } : undefined;
      if (write.kind === 'create') batch.create(write.ref, write.data);
      else if (write.kind === 'set') batch.set(write.ref, write.data);
      else if (write.kind === 'delete') batch.delete(write.ref, at ?? (write.mustExist ? { exists: true } : {}));
      else batch.update(write.ref, write.data, at ?? { exists: true });
    }
    this.meter.add({ rpcs: 1 });
    const results = await this.#inTime(batch.commit());
    const deletes = writes.filter((write) => write.kind === 'delete').length;
    const bytesWritten = sum(writes.map((write) => ('data' in write ? sizeOfData(write.data) : 0)));
    this.meter.add({ writes: writes.length - deletes, deletes, bytesWritten });
    return results.map((result) => result.writeTime);
  }

  /** Counts a document that a listener was sent. */
  countHeard(document: DocumentSnapshot): void {
    this.meter.add({ reads: 1, bytesRead: sizeOfSnapshot(document) });
  }

  /** Removes documents, some at a time. */
  async deleteAll(refs: readonly DocumentReference[]): Promise<void> {
    for (let start = 0; start < refs.length; start += MOST_DELETES_AT_ONCE) {
      const some = refs.slice(start, start + MOST_DELETES_AT_ONCE);
      await this.commit(some.map((ref) => ({ kind: 'delete', ref })));
    }
  }

  /** A page of a collection in the order of the documents' ids, with no more than the fields named. */
  page(
    collection: CollectionReference,
    options: { limit: number; after?: string; prefix?: string; fields?: readonly string[] },
  ): Promise<QueryDocumentSnapshot[]> {
    const { after, prefix, fields = [] } = options;
    const id = FieldPath.documentId();
    let query = collection.orderBy(id).select(...fields);
    if (after !== undefined) query = query.startAfter(after);
    else if (prefix !== undefined) query = query.startAt(prefix);
    if (prefix !== undefined) query = query.endBefore(`${prefix}~`);
    return this.query(query.limit(options.limit));
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    // What comes after its time is nobody's.
    const end: Promise<unknown> = answer.then(ignore, ignore).then(() => this.#pending.delete(end));
    this.#pending.add(end);
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(unavailable('Firestore does not answer. Try again later.')), this.#timeoutMs);
    });
    try {
      return await Promise.race([answer, tooLate]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits for requests that were given up and still go on inside the client: one that is terminated before throws into the void. */
  async drain(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tooLate = new Promise((resolve) => (timer = setTimeout(resolve, this.#timeoutMs)));
    await Promise.race([Promise.all(this.#pending), tooLate]);
    clearTimeout(timer);
  }
}

/** Removes a field in an update. */
export function without(): FieldValue {
  return FieldValue.delete();
}

/** The time of the commit. */
export function commitTime(): FieldValue {
  return FieldValue.serverTimestamp();
}

function ignore(): void {}

function sizeOfSnapshot(document: DocumentSnapshot): number {
  const data = document.data();
  return data ? sizeOfData(data) : 0;
}

/** The size of a document's fields, about as Firestore counts it. */
function sizeOfData(data: unknown): number {
  if (typeof data === 'string') return Buffer.byteLength(data) + 1;
  if (data instanceof Uint8Array) return data.length;
  if (Array.isArray(data)) return sum(data.map(sizeOfData));
  if (typeof data !== 'object' || data === null || Object.getPrototypeOf(data) !== Object.prototype) return 8;
  return sum(Object.entries(data).map(([name, value]) => name.length + 1 + sizeOfData(value)));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
