import { FieldPath, Firestore } from '@google-cloud/firestore';
import type {
  CollectionReference,
  DocumentData,
  DocumentReference,
  DocumentSnapshot,
  Query,
  QueryDocumentSnapshot,
  Timestamp,
  Transaction,
  Precondition,
  QuerySnapshot,
  VectorQuery,
  VectorQuerySnapshot,
} from '@google-cloud/firestore';
import { closed, failedPrecondition, unavailable } from '../../src/errors.ts';
import { chunksOf } from '../chain/chunks.ts';
import { isConflict, ofClient } from './failures.ts';
import type { Meter } from './meter.ts';

/**
 * One write of a commit. `update` and `delete` need the document, unchanged since `at`; `absent` needs that it is missing; `drop` needs neither.
 */
export type DocumentWrite =
  | { readonly kind: 'create' | 'set'; readonly ref: DocumentReference; readonly data: DocumentData }
  | { readonly kind: 'update'; readonly ref: DocumentReference; readonly data: DocumentData; readonly at?: Timestamp }
  | { readonly kind: 'delete'; readonly ref: DocumentReference; readonly at?: Timestamp }
  | { readonly kind: 'absent' | 'drop'; readonly ref: DocumentReference };

/** Bytes of one commit: the emulator refuses requests over 4 MiB, production those over 10 MiB. */
export const LARGEST_COMMIT = 3 * 1024 * 1024;
/** Documents of up to 1 MiB read with one request. */
export const MOST_READ_AT_ONCE = 40;
/** Documents of up to 1 MiB that calls read together. Each call waits for all of them. */
const MOST_SHARED = 10;
/** Documents of one page of a list, or of one commit that deletes. */
export const PAGE = 300;

/** The requests to Firestore. Each is counted and has a deadline; after `close` all are refused. */
export class Database {
  readonly meter: Meter;
  readonly #db: Firestore;
  readonly #ownsDb: boolean;
  readonly #collection: string;
  readonly #timeoutMs: number;
  readonly #client: Client;
  #isClosed = false;
  /** How far the clocks of this process are behind Firestore's clock, in ms. */
  #offset = { wall: 0, steady: -Infinity };

  /** @param db Default: its own client, which `close` terminates. */
  constructor(db: Firestore | undefined, options: { collection: string; timeoutMs: number; meter: Meter }) {
    this.#ownsDb = db === undefined;
    // After an outage gRPC would pause for up to two minutes before it connects again.
    this.#db = db ?? new Firestore({ 'grpc.max_reconnect_backoff_ms': 2000 });
    this.meter = options.meter;
    this.#collection = options.collection;
    this.#timeoutMs = options.timeoutMs;
    this.#client = clientOf(this.#db, options.timeoutMs);
  }

  /** Runs one call of the store, as {@link Meter.call} does, with a client that knows its project. */
  call<T>(method: string, what: string, work: () => Promise<T>): Promise<T> {
    return this.meter.call(method, what, this.#knowsProject() ? work : () => this.#findProject().then(work));
  }

  /** A client without a configured project finds it with its first request. Until then it refuses queries that begin at a name. */
  #knowsProject(): boolean {
    const client = this.#client;
    if (client.knowsProject) return true;
    try {
      this.#db.collection(this.#collection).orderBy(FieldPath.documentId()).startAt('name');
      client.knowsProject = true;
    } catch {
      // Firestore's client says that it is not ready.
    }
    return client.knowsProject;
  }

  #findProject(): Promise<unknown> {
    const client = this.#client;
    return this.#send(() => {
      // A commit of nothing is not billed. Each store of the client waits for it with its own timeout.
      client.finding ??= this.#db
        .batch()
        .commit()
        .finally(() => (client.finding = undefined));
      return client.finding;
    });
  }

  /**
   * The time in ms by Firestore's clock, estimated from its last answer: the later of two estimates. The steady clock of the process stops
   * while the machine sleeps; the other may be set back, and a session that is written then must not expire early.
   */
  now(): number {
    return Math.max(Date.now() + this.#offset.wall, performance.now() + this.#offset.steady);
  }

  /** A collection of one tenant: `<collection><suffix>/<tenant>/<name>`. */
  collection(suffix: string, tenant: string, name: string): CollectionReference {
    return this.#db.collection(`${this.#collection}${suffix}`).doc(tenant).collection(name);
  }

  async get(ref: DocumentReference, fields?: readonly string[]): Promise<DocumentSnapshot> {
    const [found] = await (fields ? this.getAll([ref], fields) : this.getShared([ref]));
    return found!;
  }

  /**
   * Few documents, in the order of `refs`. Calls of all stores of the client in the same tick share a request: a turn reads its
   * session, its user's state and its memories with one.
   */
  async getShared(refs: readonly DocumentReference[]): Promise<DocumentSnapshot[]> {
    this.#assertUsable();
    if (refs.length === 0 || refs.length > MOST_SHARED) return this.getAll(refs);
    let shared = this.#client.nextRead;
    if (!shared || shared.refs.length + refs.length > MOST_SHARED) shared = this.#openRead();
    const { paths, found } = shared;
    const end = shared.refs.push(...refs);
    // A document that several calls read is billed once.
    const isBilled = refs.map(({ path }) => {
      const isNew = !paths.has(path);
      paths.add(path);
      return isNew;
    });
    const documents = (await inTime(found, this.#timeoutMs)).slice(end - refs.length, end);
    this.#count(documents.filter((_, i) => isBilled[i]));
    return documents;
  }

  /**
   * The documents in the order of `refs`, in separate requests.
   *
   * @param fields Small fields to read. Default: all fields.
   */
  async getAll(refs: readonly DocumentReference[], fields?: readonly string[]): Promise<DocumentSnapshot[]> {
    const found: DocumentSnapshot[] = [];
    for (const some of chunksOf(refs, fields ? PAGE : MOST_READ_AT_ONCE)) {
      const options = fields ? [{ fieldMask: [...fields] }] : [];
      const documents = await this.#send(() => this.#db.getAll(...some, ...options));
      this.#count(documents);
      found.push(...documents);
    }
    return found;
  }

  async query(query: Query | VectorQuery): Promise<QueryDocumentSnapshot[]> {
    const { docs, readTime } = await this.#send<QuerySnapshot | VectorQuerySnapshot>(() => query.get());
    this.#setClock(readTime);
    this.meter.add({ reads: Math.max(1, docs.length), bytesRead: sum(docs.map(sizeOfSnapshot)) });
    return docs;
  }

  /** How many documents a query finds. Each 1,000 of them are billed as one read. */
  async count(query: Query): Promise<number> {
    const answer = await this.#send(() => query.count().get());
    const { count } = answer.data();
    this.meter.add({ reads: Math.max(1, Math.ceil(count / 1000)) });
    return count;
  }

  /** A document and the results of a query, read at the same time. */
  async readTogether(ref: DocumentReference, query: Query): Promise<DocumentSnapshot[]> {
    const read = async (transaction: Transaction): Promise<DocumentSnapshot[]> => {
      const [document, { docs }] = await Promise.all([transaction.get(ref), transaction.get(query)]);
      return [document, ...docs];
    };
    const documents = await this.#send(() => this.#db.runTransaction(read, { readOnly: true }));
    this.meter.add({ rpcs: 2, reads: documents.length, bytesRead: sum(documents.map(sizeOfSnapshot)) });
    return documents;
  }

  /** Atomic. Returns the update time of each written document. */
  async commit(writes: readonly DocumentWrite[]): Promise<Timestamp[]> {
    const batch = this.#db.batch();
    for (const write of writes) addWrite(batch, write);
    const results = await this.#send(() => batch.commit());
    this.#setClock(results.at(-1)?.writeTime);
    this.#countWrites(writes);
    return results.map((result) => result.writeTime);
  }

  /** Reads a document and commits the write that `decide` returns for it, if the document has not changed meanwhile. */
  async readAndCommit(
    ref: DocumentReference,
    decide: (document: DocumentSnapshot) => Promise<DocumentWrite | undefined>,
  ): Promise<void> {
    const attempt = async (transaction: Transaction): Promise<readonly DocumentWrite[]> => {
      const document = await transaction.get(ref);
      this.meter.add({ rpcs: 1, reads: 1, bytesRead: sizeOfSnapshot(document) });
      const write = await decide(document);
      if (write) addWrite(transaction, write);
      return write ? [write] : [];
    };
    this.#countWrites(await this.#send(() => this.#db.runTransaction(attempt)));
  }

  /** Listens to a document. Returns a function that ends it. */
  listen(ref: DocumentReference, next: (document: DocumentSnapshot) => void, fail: (error: Error) => void): () => void {
    this.#assertUsable();
    this.meter.add({ rpcs: 1 });
    return ref.onSnapshot((document) => {
      this.meter.add({ reads: 1, bytesRead: sizeOfSnapshot(document) });
      next(document);
    }, fail);
  }

  /** All documents of a query with an order, page by page. */
  async *pages(query: Query, limit = PAGE): AsyncGenerator<QueryDocumentSnapshot[]> {
    for (let page: QueryDocumentSnapshot[] | undefined; !page || page.length === limit;) {
      const last: QueryDocumentSnapshot | undefined = page?.at(-1);
      page = await this.query((last ? query.startAfter(last) : query).limit(limit));
      if (page.length > 0) yield page;
    }
  }

  /** The documents of {@link pages}, one by one. */
  async *documents(query: Query, limit?: number): AsyncGenerator<QueryDocumentSnapshot> {
    for await (const page of this.pages(query, limit)) yield* page;
  }

  /** All documents of {@link pages}. */
  async all(query: Query, limit?: number): Promise<QueryDocumentSnapshot[]> {
    const found: QueryDocumentSnapshot[] = [];
    for await (const page of this.pages(query, limit)) found.push(...page);
    return found;
  }

  /** Removes the documents that have not changed since they were read: a changed one may be in use again. Returns how many. */
  removeUnchanged(documents: readonly QueryDocumentSnapshot[]): Promise<number> {
    return this.remove(documents.map(({ ref, updateTime }) => ({ ref, at: updateTime })));
  }

  /** Removes the documents that exist and have not changed since `at`. Returns how many. */
  async remove(documents: readonly { readonly ref: DocumentReference; readonly at?: Timestamp }[]): Promise<number> {
    if (documents.length === 0) return 0;
    try {
      if (documents.length <= PAGE) {
        await this.commit(documents.map((document) => ({ kind: 'delete', ...document })));
        return documents.length;
      }
    } catch (error) {
      // One of them was removed or written meanwhile.
      if (!isConflict(error)) throw error;
      if (documents.length === 1) return 0;
    }
    let removed = 0;
    const most = Math.min(PAGE, Math.ceil(documents.length / 2));
    for (const some of chunksOf(documents, most)) removed += await this.remove(some);
    return removed;
  }

  /**
   * Refuses further requests, and ends its own client when the running ones have ended: it must not be terminated before. Waits no longer
   * than the timeout of a request.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    const end = async (): Promise<void> => (this.#ownsDb ? this.#db.terminate() : undefined);
    await inTime(Promise.all(this.#client.pending).then(end), this.#timeoutMs).catch(ignore);
  }

  async #send<T>(send: () => Promise<T>): Promise<T> {
    this.#assertUsable();
    this.meter.add({ rpcs: 1 });
    return inTime(this.#track(send()), this.#timeoutMs);
  }

  /** Makes the end of the client wait for a request, also for one that timed out: it continues inside the client. */
  #track<T>(answer: Promise<T>): Promise<T> {
    const { pending } = this.#client;
    const end: Promise<unknown> = answer.then(ignore, ignore).then(() => pending.delete(end));
    pending.add(end);
    return answer;
  }

  #openRead(): SharedRead {
    const client = this.#client;
    const refs: DocumentReference[] = [];
    this.meter.add({ rpcs: 1 });
    // Sent when no promise can continue without waiting, so that the request has all calls of the tick.
    const found = new Promise<void>((resolve) => process.nextTick(resolve)).then(() => {
      if (client.nextRead === read) client.nextRead = undefined;
      return this.#db.getAll(...refs);
    });
    const read = { refs, paths: new Set<string>(), found: this.#track(found) };
    return (client.nextRead = read);
  }

  #count(documents: readonly DocumentSnapshot[]): void {
    this.#setClock(documents[0]?.readTime);
    this.meter.add({ reads: documents.length, bytesRead: sum(documents.map(sizeOfSnapshot)) });
  }

  #countWrites(writes: readonly DocumentWrite[]): void {
    const deletes = writes.filter(({ kind }) => kind === 'delete' || kind === 'absent' || kind === 'drop').length;
    const bytesWritten = sum(writes.map((write) => ('data' in write ? sizeOfData(write.data) : 0)));
    this.meter.add({ writes: writes.length - deletes, deletes, bytesWritten });
  }

  #assertUsable(): void {
    if (this.#isClosed) throw closed(this.meter.owner);
    if (this.#client.isTerminated) {
      throw failedPrecondition('The Firestore client of this store was terminated. Make a new store.');
    }
  }

  #setClock(time: Timestamp | undefined): void {
    if (!time) return;
    const ms = time.toMillis();
    this.#offset = { wall: ms - Date.now(), steady: ms - performance.now() };
  }
}

/** Documents to read with one request. */
interface SharedRead {
  readonly refs: DocumentReference[];
  /** The paths of `refs`. */
  readonly paths: Set<string>;
  readonly found: Promise<DocumentSnapshot[]>;
}

/** The methods that a batch and a transaction share. */
interface WriteTarget {
  create(ref: DocumentReference, data: DocumentData): unknown;
  set(ref: DocumentReference, data: DocumentData): unknown;
  update(ref: DocumentReference, data: DocumentData, guard: Precondition): unknown;
  delete(ref: DocumentReference, guard?: Precondition): unknown;
}

function addWrite(target: WriteTarget, write: DocumentWrite): void {
  const guard = 'at' in write && write.at ? { lastUpdateTime: write.at } : { exists: true };
  switch (write.kind) {
    case 'create':
      return void target.create(write.ref, write.data);
    case 'set':
      return void target.set(write.ref, write.data);
    case 'update':
      return void target.update(write.ref, write.data, guard);
    case 'delete':
      return void target.delete(write.ref, guard);
    case 'absent':
      return void target.delete(write.ref, { exists: false });
    case 'drop':
      return void target.delete(write.ref);
  }
}

/** A client of Firestore, shared by all stores that use it. */
interface Client {
  /** The running requests. */
  readonly pending: Set<Promise<unknown>>;
  isTerminated: boolean;
  knowsProject: boolean;
  /** Finds the project. */
  finding: Promise<unknown> | undefined;
  /** The read that calls of this tick join. */
  nextRead: SharedRead | undefined;
}

const clients = new WeakMap<Firestore, Client>();

/**
 * Makes the client's `terminate` wait for running requests, and new requests fail after it. A read that runs or begins when the client is
 * terminated would never end, and would reject where no caller can catch it.
 */
function clientOf(db: Firestore, timeoutMs: number): Client {
  const known = clients.get(db);
  if (known) return known;
  const client: Client = {
    pending: new Set(),
    isTerminated: false,
    knowsProject: false,
    finding: undefined,
    nextRead: undefined,
  };
  clients.set(db, client);
  const terminate = db.terminate.bind(db);
  db.terminate = async () => {
    client.isTerminated = true;
    await inTime(Promise.all(client.pending), timeoutMs).catch(ignore);
    return terminate();
  };
  return client;
}

/** @throws `UNAVAILABLE` when the answer takes too long; errors of the client as {@link ofClient} marks them. */
async function inTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(unavailable('Firestore does not answer. Try again later.')), timeoutMs);
  });
  try {
    return await Promise.race([answer, tooLate]);
  } catch (error) {
    throw ofClient(error);
  } finally {
    clearTimeout(timer);
  }
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
