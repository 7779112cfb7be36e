import {
  FieldPath,
  FieldValue,
  Timestamp,
  type DocumentData,
  type DocumentReference,
  type DocumentSnapshot,
} from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import type { ClaimRequest, JobsRequest, ListEntry } from '../../../src/store/memory/base-memory-store.ts';
import type { MemoryJob, MemoryJobChange, MemoryJobHold } from '../../../src/store/memory/contract.ts';
import {
  assertMemoryJobHeld,
  changeMemoryJob,
  jobReadError,
  leaseMemoryJob,
  memoryJobDueAt,
  reportUnreadableJob,
  unreadableOnly,
} from '../../../src/store/memory/jobs.ts';
import { describeMemoryScope, memoryScopeKey } from '../../../src/store/memory/scope.ts';
import { FORMAT } from '../format/foreign-layout.ts';
import { packTextNow } from '../format/packed-text.ts';
import { PAGE, type DocumentWrite } from '../database.ts';
import { isConflict } from '../failures.ts';
import { hashName, jobFields, keyIn, readJob } from './memory-documents.ts';
import type { MemoryDatabase } from './memory-database.ts';

/** The queue of a scope: its jobs that are not dead, in the order in which they were added. */
interface Queue {
  readonly jobs: readonly { readonly job: string; readonly ready: number }[];
  /** How many are dead. */
  readonly dead: number;
}

/** How many due queues a claim reads at once, in case other workers are faster with the first ones. */
const MOST_CANDIDATES = 5;
const MOST_ATTEMPTS = 30;
/** How long claims for any scope skip a scope whose first job can't be read, in ms. */
const UNREADABLE_JOB_MS = 900_000;

/**
 * The jobs of a tenant: a document for each job, and one for the queue of each scope, with the time when its first job is due. So a claim
 * reads the first results of one query and one job, however many jobs wait.
 */
export class JobQueues {
  readonly #data: MemoryDatabase;

  constructor(data: MemoryDatabase) {
    this.#data = data;
  }

  add(job: MemoryJob, maxJobs: number): Promise<'added' | 'known' | 'full'> {
    const { database, jobs } = this.#data;
    const key = memoryScopeKey(job.scope);
    return this.#data.untilMade('Adding a memory job', `jobs ${key}`, async () => {
      const ref = jobs.doc(hashName(job.id));
      const [known, queueDocument] = await database.getAll([ref, this.#queueRef(key)]);
      if (known!.exists) return 'known';
      if ((await database.count(jobs.where('ready', '>=', 0))) >= maxJobs) return 'full';
      const queue = readQueue(queueDocument!);
      const next = { ...queue, jobs: [...queue.jobs, { job: ref.id, ready: memoryJobDueAt(job) }] };
      const data = { ...(await jobFields(job, this.#data.sealer(key))), added: FieldValue.serverTimestamp() };
      await database.commit([{ kind: 'create', ref, data }, this.#write(key, queueDocument!, next)]);
      return 'added';
    });
  }

  async claim({ scope, ...claim }: ClaimRequest): Promise<MemoryJob | undefined> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const due = await this.#due(scope, claim.now);
      if (due.length === 0) return undefined;
      for (const document of due) {
        const job = await this.#lease(document, claim, scope === undefined);
        if (job) return job;
      }
    }
    return undefined;
  }

  async change(id: string, change: MemoryJobChange, now: number): Promise<void> {
    const { database, jobs } = this.#data;
    const ref = jobs.doc(hashName(id));
    return this.#data.untilMade('Changing a memory job', `job ${id}`, async () => {
      const document = await database.get(ref);
      if (!document.exists) return void changeMemoryJob(undefined, id, change, now);
      const key = keyIn(document);
      const next = changeMemoryJob(await this.#read(document), id, change, now);
      const queueDocument = await database.get(this.#queueRef(key));
      await database.commit(await this.#changes(key, document, queueDocument, next));
    });
  }

  /** The documents that a commit on behalf of a job has to read: its own, and its scope's queue. */
  refs(key: string, { id }: MemoryJobHold): DocumentReference[] {
    return [this.#data.jobs.doc(hashName(id)), this.#queueRef(key)];
  }

  /**
   * The writes by which a commit on behalf of a job removes the job, or fails if the job changes before it.
   *
   * @param documents Those of {@link refs}.
   * @throws `ABORTED` when the worker does not hold it.
   */
  async writesFor(
    key: string,
    hold: MemoryJobHold,
    [job, queue]: readonly DocumentSnapshot[],
  ): Promise<DocumentWrite[]> {
    assertMemoryJobHeld(job!.exists ? await this.#read(job!) : undefined, hold, key);
    if (!hold.keep) return this.#changes(key, job!, queue!, undefined);
    const { ref, updateTime: at } = job!;
    return [{ kind: 'update', ref, data: { ready: job!.get('ready') as number }, at: at! }];
  }

  async list({ state, scope, limit, after: position }: JobsRequest): Promise<ListEntry<MemoryJob>[]> {
    const after = position === undefined ? undefined : (JSON.parse(position) as Position);
    const entries: ListEntry<MemoryJob>[] = [];
    const found = scope === undefined ? this.#pages(limit, after) : [await this.#ofScope(scope, after)];
    for await (const documents of found) {
      for (const document of documents) {
        const job = await this.#read(document).catch(unreadableOnly);
        if (job instanceof GenkitError) {
          if (scope !== undefined) throw job;
          continue;
        }
        if ((state ?? job.state) !== job.state) continue;
        entries.push({ item: job, place: JSON.stringify(positionOf(document)) });
        if (entries.length === limit) return entries;
      }
    }
    return entries;
  }

  #pages(size: number, after: Position | undefined): AsyncIterable<DocumentSnapshot[]> {
    const { database, jobs } = this.#data;
    const query = jobs.orderBy('added').orderBy(FieldPath.documentId());
    const rest = after ? query.startAfter(new Timestamp(after[0], after[1]), after[2]) : query;
    return database.pages(rest, Math.min(PAGE, size));
  }

  /** The documents of a scope's jobs. They are few, and sorted here, so that no index of the scope and the time is needed. */
  async #ofScope(scope: string, after: Position = [0, 0, '']): Promise<DocumentSnapshot[]> {
    const { database, jobs } = this.#data;
    const documents = await database.query(jobs.where('scope', '==', hashName(scope)));
    return documents
      .filter((document) => compare(positionOf(document), after) > 0)
      .toSorted((x, y) => compare(positionOf(x), positionOf(y)));
  }

  /** The keys of the scopes whose queues come after one, with the names of the scopes' documents. */
  async scopesAfter(name: string, limit: number): Promise<[name: string, key: string][]> {
    const query = this.#data.queues.orderBy(FieldPath.documentId()).limit(limit);
    const found = await this.#data.database.query(name === '' ? query : query.startAfter(name));
    return found.map((document) => [document.id, keyIn(document)]);
  }

  /** Removes the jobs of a scope, also those that others add meanwhile. Returns how many. */
  async erase(key: string): Promise<number> {
    const { database, jobs } = this.#data;
    for (let removed = 0; ;) {
      const queue = await database.get(this.#queueRef(key));
      const found = await database.query(jobs.where('scope', '==', hashName(key)).select().limit(PAGE));
      if (!queue.exists && found.length === 0) return removed;
      const deletes = found.map(({ ref }): DocumentWrite => ({ kind: 'delete', ref }));
      // The queue goes with the last jobs, if it is unchanged: without it, a job that was added meanwhile would never be claimed.
      if (queue.exists && found.length < PAGE) deletes.push({ kind: 'delete', ref: queue.ref, at: queue.updateTime! });
      if (await this.#isMade(deletes)) removed += found.length;
    }
  }

  async #due(scope: string | undefined, now: number): Promise<DocumentSnapshot[]> {
    const { database, queues } = this.#data;
    if (scope === undefined) {
      return database.query(queues.where('ready', '<=', now).orderBy('ready').limit(MOST_CANDIDATES));
    }
    const document = await database.get(this.#queueRef(scope));
    return (readQueue(document).jobs[0]?.ready ?? Infinity) <= now ? [document] : [];
  }

  /**
   * Leases the first job of a queue; `undefined` if another worker was faster, or the job is gone.
   *
   * @param skipsUnreadable Whether a job that can't be read is left for later.
   */
  async #lease(
    queueDocument: DocumentSnapshot,
    claim: Omit<ClaimRequest, 'scope'>,
    skipsUnreadable: boolean,
  ): Promise<MemoryJob | undefined> {
    const { database, jobs } = this.#data;
    const [first] = readQueue(queueDocument).jobs;
    const document = await database.get(jobs.doc(first!.job));
    if (!document.exists) return this.#dropMissing(queueDocument);
    const found = await this.#read(document).catch(unreadableOnly);
    if (found instanceof GenkitError) {
      if (!skipsUnreadable) throw found;
      // Changes only the time by which queues are found: claims of this scope, and changes of its queue, see the job again at once.
      const write: DocumentWrite = {
        kind: 'update',
        ref: queueDocument.ref,
        data: { ready: claim.now + UNREADABLE_JOB_MS },
        at: queueDocument.updateTime!,
      };
      if (await this.#isMade([write])) reportUnreadableJob(found);
      return undefined;
    }
    const job = leaseMemoryJob(found, claim);
    const isMade = await this.#isMade(await this.#changes(keyIn(document), document, queueDocument, job));
    return isMade ? job : undefined;
  }

  /** Removes missing jobs from a queue, which an interrupted erasure has left. */
  async #dropMissing(queueDocument: DocumentSnapshot): Promise<undefined> {
    const queue = readQueue(queueDocument);
    const refs = queue.jobs.map(({ job }) => this.#data.jobs.doc(job));
    const documents = await this.#data.database.getAll(refs, ['ready']);
    const jobs = queue.jobs.filter((_, i) => documents[i]!.exists);
    await this.#isMade([this.#write(keyIn(queueDocument), queueDocument, { ...queue, jobs })]);
  }

  /** Commits, unless others changed the documents meanwhile. */
  async #isMade(writes: readonly DocumentWrite[]): Promise<boolean> {
    try {
      await this.#data.database.commit(writes);
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  /** The writes that change a job, and its queue. */
  async #changes(
    key: string,
    document: DocumentSnapshot,
    queueDocument: DocumentSnapshot,
    next: MemoryJob | undefined,
  ): Promise<DocumentWrite[]> {
    const queue = readQueue(queueDocument);
    const at = document.updateTime!;
    const wasDead = document.get('ready') === undefined;
    const isDead = next?.state === 'dead';
    const jobs = queue.jobs.filter(({ job }) => job !== document.id);
    if (next && !isDead) {
      const place = queue.jobs.findIndex(({ job }) => job === document.id);
      jobs.splice(place < 0 ? jobs.length : place, 0, { job: document.id, ready: memoryJobDueAt(next) });
    }
    const dead = queue.dead - Number(wasDead) + Number(isDead);
    const write = this.#write(key, queueDocument, { jobs, dead });
    if (!next) return [{ kind: 'delete', ref: document.ref, at }, write];
    const data = await jobFields(next, this.#data.sealer(key));
    return [{ kind: 'update', ref: document.ref, data: { ready: FieldValue.delete(), ...data }, at }, write];
  }

  #write(key: string, document: DocumentSnapshot, { jobs, dead }: Queue): DocumentWrite {
    const { ref, updateTime: at } = document;
    if (jobs.length === 0 && dead <= 0) return at ? { kind: 'delete', ref, at } : { kind: 'absent', ref };
    const data: DocumentData = { v: FORMAT, key: packTextNow(key), jobs, dead, ready: jobs[0]?.ready ?? null };
    return at ? { kind: 'update', ref, data, at } : { kind: 'create', ref, data };
  }

  async #read(document: DocumentSnapshot): Promise<MemoryJob> {
    try {
      return await readJob(document, (key) => this.#data.sealer(key));
    } catch (error) {
      throw jobReadError(error, `of ${describeMemoryScope(keyIn(document))}`);
    }
  }

  #queueRef(key: string): DocumentReference {
    return this.#data.queues.doc(hashName(key));
  }
}

function readQueue(document: DocumentSnapshot): Queue {
  return {
    jobs: (document.get('jobs') as Queue['jobs'] | undefined) ?? [],
    dead: (document.get('dead') as number | undefined) ?? 0,
  };
}

/** When a job was added, in seconds and nanoseconds, and the name of its document. */
type Position = readonly [number, number, string];

function compare(x: Position, y: Position): number {
  return x[0] - y[0] || x[1] - y[1] || (x[2] < y[2] ? -1 : Number(x[2] > y[2]));
}

function positionOf(document: DocumentSnapshot): Position {
  const { seconds, nanoseconds } = document.get('added') as Timestamp;
  return [seconds, nanoseconds, document.id];
}
