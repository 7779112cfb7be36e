import {
  FieldPath,
  FieldValue,
  type DocumentReference,
  type DocumentSnapshot,
  type Query,
} from '@google-cloud/firestore';
import type {
  ClaimRequest,
  CommitRequest,
  JobsRequest,
  ListEntry,
  ListRequest,
  MemoryTenant,
  QueryAnswer,
} from '../../../src/store/memory/base-memory-store.ts';
import type { QueryRequest } from '../../../src/store/memory/checks.ts';
import type {
  Memory,
  MemoryChanges,
  MemoryCommitResult,
  MemoryErasure,
  MemoryHit,
  MemoryJob,
  MemoryJobChange,
  MemoryNotes,
  MemoryScopeId,
  MemorySweep,
} from '../../../src/store/memory/contract.ts';
import { memoryScopeOfKey } from '../../../src/store/memory/scope.ts';
import {
  fits,
  firstOf,
  queryMemoryVersions,
  memorySequenceOf,
  memoryVersionAt,
  type MemoryVersion,
} from '../../../src/store/memory/version.ts';
import { PAGE } from '../database.ts';
import { JobQueues } from './job-queues.ts';
import { MemoryDatabase, type SharedMemories } from './memory-database.ts';
import {
  hashName,
  headFields,
  isKept,
  memoryNameOf,
  NO_HEAD,
  noteName,
  noteRange,
  readHead,
  readNote,
  readVersion,
  type ScopeHead,
} from './memory-documents.ts';
import { ScopeCommits } from './scope-commit.ts';

/** The most results of a query by vector. */
const MOST_NEAR = 1000;
const SIMILARITY = 'similarity';
/** For vectors of length 1 the dot product is the cosine, and is faster. */
const NEAREST = { vectorField: 'vector', distanceMeasure: 'DOT_PRODUCT', distanceResultField: SIMILARITY } as const;
/** The fields of a memory, without its vector, which takes ten times as many bytes as all others. */
const WITHOUT_VECTOR = ['v', 'memory', 'revision', 'sequence', 'content'];

/** One tenant. Each method is a span of Genkit's tracing, and converts errors of Firestore. */
export class FirestoreMemoryTenant implements MemoryTenant {
  readonly #data: MemoryDatabase;
  readonly #jobs: JobQueues;

  constructor(shared: SharedMemories, tenant: string) {
    this.#data = new MemoryDatabase(tenant, shared);
    this.#jobs = new JobQueues(this.#data);
  }

  get(key: string, ids: readonly string[]): Promise<Memory[]> {
    return this.#call('get', 'Reading memories', async () => {
      const refs = ids.map((id) => this.#data.memories(key).doc(hashName(id)));
      // The head comes last: an erasure between two requests is seen.
      const documents = await this.#data.database.getAll([...refs, this.#data.head(key)]);
      const head = readHead(documents.pop()!);
      const kept = documents.filter((document) => isKept(document, head));
      return memoriesOf(await this.#versions(key, kept));
    });
  }

  query(key: string, request: QueryRequest): Promise<QueryAnswer> {
    return this.#call('query', 'Querying memories', () => {
      if (request.asOf !== undefined) return this.#queryPast(key, request, request.asOf);
      return request.vector ? this.#queryNear(key, request, request.vector) : this.#queryLast(key, request);
    });
  }

  revision(key: string): Promise<number> {
    return this.#call('revision', 'Reading a revision of memories', async () => (await this.#readHead(key)).revision);
  }

  changes(key: string, since: number): Promise<MemoryChanges> {
    return this.#call('changes', 'Reading changes of memories', async () => {
      // Read before the memories: changes that come in between are returned again next time.
      const { revision, reset, floorRevision } = await this.#readHead(key);
      if (since === revision) return { revision, changed: [], isReset: false };
      const isReset = since < reset || since > revision;
      const first = memorySequenceOf(isReset ? floorRevision : since + 1);
      const changed = this.#data.memories(key).where('content', '>=', first).orderBy('content');
      const documents = await this.#data.database.all(changed.select(...WITHOUT_VECTOR));
      return { revision, changed: memoriesOf(await this.#versions(key, documents)), isReset };
    });
  }

  commit(key: string, request: CommitRequest): Promise<MemoryCommitResult> {
    return this.#call('commit', 'Committing memories', () => this.#commits(key).make(request));
  }

  revisions(key: string, id: string): Promise<Memory[]> {
    return this.#call('revisions', 'Reading the revisions of a memory', async () => {
      const refs = [this.#data.memories(key).doc(hashName(id)), this.#data.head(key)];
      const [current, document] = await this.#data.database.getAll(refs);
      const head = readHead(document!);
      return isKept(current!, head) ? memoriesOf(await this.#history(key, current!, head)) : [];
    });
  }

  bySource(key: string, sourceId: string): Promise<Memory[]> {
    return this.#call('bySource', 'Reading the memories of a source', async () => {
      const { database } = this.#data;
      const hash = hashName(sourceId);
      const reading = this.#readHead(key);
      const memories = this.#data.memories(key).where('sources', 'array-contains', hash);
      const revisions = this.#data.revisions(key).where('sources', 'array-contains', hash).select('sequence');
      const [now, before, head] = await Promise.all([
        keptOf(reading, database.all(memories)),
        keptOf(reading, database.query(revisions)),
        reading,
      ]);
      const found = new Set(now.map(({ id }) => id));
      const names = new Set(before.map(({ id }) => memoryNameOf(id)));
      const more = [...names].filter((name) => !found.has(name)).map((name) => this.#data.memories(key).doc(name));
      const documents = await database.getAll(more);
      return memoriesOf(await this.#versions(key, [...now, ...documents.filter((one) => isKept(one, head))]));
    });
  }

  notes(key: string, kind: string, keys: readonly string[] | undefined): Promise<MemoryNotes> {
    return this.#call('notes', 'Reading notes', async () => {
      const { database } = this.#data;
      const notes = this.#data.notes(key);
      const [start, end] = noteRange(kind);
      const refs = keys?.map((one) => notes.doc(noteName({ kind, key: one })));
      const range = notes.orderBy(FieldPath.documentId()).startAt(start).endBefore(end);
      const [head, ...documents] = refs
        ? await database.getAll([this.#data.head(key), ...refs])
        : await database.readTogether(this.#data.head(key), range);
      const { revision, floor } = readHead(head!);
      const sealer = this.#data.sealer(key);
      const there = documents.filter((document) => document.exists && (document.get('commit') as number) > floor);
      const found = await Promise.all(there.map((document) => readNote(document, sealer)));
      return { revision, notes: found };
    });
  }

  addJob(job: MemoryJob, maxJobs: number): Promise<'added' | 'known' | 'full'> {
    return this.#call('addJob', 'Adding a memory job', () => this.#jobs.add(job, maxJobs));
  }

  claimJob(request: ClaimRequest): Promise<MemoryJob | undefined> {
    return this.#call('claimJob', 'Claiming a memory job', () => this.#jobs.claim(request));
  }

  changeJob(id: string, change: MemoryJobChange, now: number): Promise<void> {
    return this.#call('changeJob', 'Changing a memory job', () => this.#jobs.change(id, change, now));
  }

  listJobs(request: JobsRequest): Promise<ListEntry<MemoryJob>[]> {
    return this.#call('listJobs', 'Listing memory jobs', () => this.#jobs.list(request));
  }

  listScopes({ limit, after = '' }: ListRequest): Promise<ListEntry<MemoryScopeId>[]> {
    return this.#call('listScopes', 'Listing scopes', async () => {
      const { database, scopes } = this.#data;
      const written = scopes.where('isWritten', '==', true).orderBy(FieldPath.documentId()).limit(limit);
      const [heads, withJobs] = await Promise.all([
        database.query(after === '' ? written : written.startAfter(after)),
        this.#jobs.scopesAfter(after, limit),
      ]);
      const keys = new Map([...heads.map((head): [string, string] => [head.id, readHead(head).key!]), ...withJobs]);
      const names = [...keys.keys()].toSorted().slice(0, limit);
      return names.map((name) => ({ item: memoryScopeOfKey(keys.get(name)!), place: name }));
    });
  }

  sweep(now: number): Promise<MemorySweep> {
    return this.#call('sweep', 'Sweeping memories', async () => {
      const { database, scopes } = this.#data;
      const [due, erasing] = await Promise.all([
        database.all(scopes.where('expires', '<=', now).orderBy('expires')),
        database.query(scopes.where('isErasing', '==', true)),
      ]);
      for (const document of erasing) await this.#removeErased(document.ref, readHead(document));
      let removed = 0;
      for (const document of due) removed += await this.#commits(readHead(document).key!).sweep(now);
      return { removed };
    });
  }

  erase(key: string): Promise<MemoryErasure> {
    return this.#call('erase', 'Erasing memories', async () => {
      const jobs = await this.#jobs.erase(key);
      const { database } = this.#data;
      const ref = this.#data.head(key);
      // First while the head still names the scope: if this fails, the scope can be found and erased again. Again at the end, for data written meanwhile.
      await this.#data.sealer(key).forget();
      const erased = await this.#data.untilMade('Erasing memories', key, async () => {
        const document = await database.get(ref);
        if (!document.exists) return undefined;
        const head = erasedHead(readHead(document));
        const data = { ...headFields(head), key: FieldValue.delete(), isWritten: FieldValue.delete() };
        await database.commit([{ kind: 'update', ref, data, at: document.updateTime! }]);
        return head;
      });
      const counts = erased ? await this.#removeErased(ref, erased) : { memories: 0, revisions: 0, notes: 0 };
      await this.#data.sealer(key).forget();
      return { ...counts, jobs };
    });
  }

  /** Removes the documents that a scope had before its last erasure. */
  async #removeErased(ref: DocumentReference, head: ScopeHead): Promise<Omit<MemoryErasure, 'jobs'>> {
    const { database } = this.#data;
    const { floor, floorRevision } = head;
    const below = async (name: string, field: string, limit: number) => {
      const query = ref.collection(name).orderBy(FieldPath.documentId()).select(field);
      return (await database.all(query)).filter((one) => (one.get(field) as number) < limit);
    };
    const [memories, revisions, notes] = await Promise.all([
      below('memories', 'sequence', memorySequenceOf(floorRevision)),
      below('revisions', 'sequence', memorySequenceOf(floorRevision)),
      below('notes', 'commit', floor + 1),
    ]);
    await database.removeUnchanged([...memories, ...revisions, ...notes]);
    await this.#data.untilMade('Erasing memories', ref.id, async () => {
      const document = await database.get(ref);
      if (readHead(document).floor !== floor) return;
      await database.commit([{ kind: 'update', ref, data: { isErasing: false }, at: document.updateTime! }]);
    });
    return { memories: memories.length, revisions: revisions.length, notes: notes.length };
  }

  async #queryLast(key: string, request: QueryRequest): Promise<QueryAnswer> {
    const { k, before } = request;
    const limit = Math.min(PAGE, k + 1);
    const head = this.#readHead(key);
    const found: MemoryVersion[] = [];
    let query: Query = this.#data
      .memories(key)
      .orderBy('sequence', 'desc')
      .select(...WITHOUT_VECTOR)
      .limit(limit);
    if (before !== undefined) query = query.startAfter(before);
    for (;;) {
      const documents = await keptOf(head, this.#data.database.query(query));
      for (const version of await this.#versions(key, documents)) if (fits(version, request)) found.push(version);
      // All documents after an erased one are erased, too.
      if (found.length > k || documents.length < limit) return firstOf(found, k);
      query = query.startAfter(documents.at(-1)!);
    }
  }

  async #queryNear(key: string, request: QueryRequest, vector: Float32Array): Promise<QueryAnswer> {
    const { k, filter } = request;
    const all = this.#data.memories(key).select(...WITHOUT_VECTOR, SIMILARITY);
    const memories = filter.includeInvalid ? all : all.where('isActive', '==', true);
    const head = this.#readHead(key);
    for (let limit = k; ;) {
      const query = memories.findNearest({ ...NEAREST, queryVector: Array.from(vector), limit });
      const reading = this.#data.database.query(query);
      const documents = await keptOf(head, reading);
      const versions = await this.#versions(key, documents);
      const items = versions.flatMap((version, i): MemoryHit[] => {
        if (!fits(version, request)) return [];
        const similarity = Math.max(-1, Math.min(1, documents[i]!.get(SIMILARITY) as number));
        return [{ memory: version.memory, similarity }];
      });
      const isAll = (await reading).length < limit;
      if (items.length >= k || isAll || limit === MOST_NEAR) return { items: items.slice(0, k) };
      // Twice as many as needed if later results match as often. If none matched: as many as possible.
      limit = Math.min(MOST_NEAR, Math.ceil((2 * limit * k) / items.length));
    }
  }

  async #queryPast(key: string, request: QueryRequest, asOf: number): Promise<QueryAnswer> {
    const reading = this.#readHead(key);
    const all = this.#data.database.all(this.#data.memories(key).orderBy('sequence', 'desc'));
    const documents = await keptOf(reading, all);
    const head = await reading;
    const versions = await this.#versions(key, documents);
    const then = await Promise.all(
      versions.map(async (version, i) => {
        if (Date.parse(version.memory.createdAt) > asOf) return undefined;
        if (Date.parse(version.memory.updatedAt) <= asOf) return version;
        return memoryVersionAt(await this.#history(key, documents[i]!, head), asOf);
      }),
    );
    const found = then.filter((version) => version !== undefined);
    return queryMemoryVersions(found, request);
  }

  /** All versions of a memory, up to the one that was read. */
  async #history(key: string, current: DocumentSnapshot, head: ScopeHead): Promise<MemoryVersion[]> {
    const byName = this.#data.revisions(key).orderBy(FieldPath.documentId());
    const revisions = await this.#data.database.all(byName.startAt(`${current.id}-`).endBefore(`${current.id}.`));
    const isBefore = (one: DocumentSnapshot) => (one.get('revision') as number) < (current.get('revision') as number);
    return this.#versions(key, [...revisions.filter((one) => isKept(one, head) && isBefore(one)), current]);
  }

  async #readHead(key: string): Promise<ScopeHead> {
    return readHead(await this.#data.database.get(this.#data.head(key)));
  }

  #versions(key: string, documents: readonly DocumentSnapshot[]): Promise<MemoryVersion[]> {
    const reader = { scope: memoryScopeOfKey(key), sealer: this.#data.sealer(key) };
    return Promise.all(documents.map((document) => readVersion(document, reader)));
  }

  #commits(key: string): ScopeCommits {
    return new ScopeCommits(this.#data, this.#jobs, key);
  }

  #call<T>(method: string, what: string, work: () => Promise<T>): Promise<T> {
    return this.#data.database.call(method, what, work);
  }
}

/** The documents that are not erased. Takes promises, so that the head is read at the same time. */
async function keptOf<T extends DocumentSnapshot>(head: Promise<ScopeHead>, documents: Promise<T[]>): Promise<T[]> {
  const [known, found] = await Promise.all([head, documents]);
  return found.filter((document) => isKept(document, known));
}

function memoriesOf(versions: readonly MemoryVersion[]): Memory[] {
  return versions.map(({ memory }) => memory);
}

/** Marks everything in a scope as erased; the documents are removed later. Without a key, it does not name the scope. */
function erasedHead(head: ScopeHead): ScopeHead {
  const [commit, revision] = [head.commit + 1, head.revision + 1];
  return { ...NO_HEAD, commit, revision, reset: revision, floor: commit, floorRevision: revision, isErasing: true };
}
