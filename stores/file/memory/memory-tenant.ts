import { join, relative } from 'node:path';
import { GenkitError } from 'genkit';
import { Sealer, type Encryption } from '../../../src/store/encryption/encryption.ts';
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
  MemoryJob,
  MemoryJobChange,
  MemoryNotes,
  MemoryScopeId,
  MemorySweep,
} from '../../../src/store/memory/contract.ts';
import type { Unreadable } from '../../../src/store/contract.ts';
import {
  assertMemoryJobHeld,
  assertMemoryRevision,
  changeMemoryJob,
  jobToClaim,
  leaseMemoryJob,
  reportUnreadableJob,
  unreadableOnly,
} from '../../../src/store/memory/jobs.ts';
import { describeMemoryScope, memoryScopeOfKey } from '../../../src/store/memory/scope.ts';
import { endMs } from '../../../src/store/memory/version.ts';
import { outcomeUnknown, unlessRefused } from '../disk/io-error.ts';
import type { HeldLock } from '../disk/lock-folder.ts';
import { fileNameOf, hashOf } from '../format/names.ts';
import { findJob, JobFiles, type JobFile } from './job-files.ts';
import { NO_TAIL, shortHashOf, type LogTail } from './log-format.ts';
import { MemoryLog, type SharedLogs } from './memory-log.ts';
import { NoteFiles } from './note-files.ts';

export interface SharedMemories extends SharedLogs {
  readonly encryption: Encryption | undefined;
  /** The unreadable jobs that were logged, by their `ref`. */
  readonly reported: Set<string>;
}

/** One scope: its folder and its files. */
interface Scope {
  readonly key: string;
  readonly path: string;
  readonly log: MemoryLog;
  readonly notes: NoteFiles;
}

interface OpenJobs {
  readonly files: readonly JobFile[];
  /** Jobs that may be done already: their scopes can't be read. */
  readonly unreadable: ReadonlyMap<JobFile, GenkitError>;
}

/** How often notes are read while they change, before the lock is taken. */
const MOST_TRIES = 8;

/** One tenant: a folder for each scope, and one of jobs. */
export class FileMemoryTenant implements MemoryTenant {
  readonly #shared: SharedMemories;
  readonly #tenant: string;
  /** The folder of the scopes. */
  readonly #scopes: string;
  readonly #jobs: JobFiles;

  constructor(shared: SharedMemories, tenant: string) {
    this.#shared = shared;
    this.#tenant = tenant;
    const home = join(shared.folder.path, fileNameOf(tenant));
    this.#scopes = join(home, '.memories');
    this.#jobs = new JobFiles(shared.folder, join(home, '.memory-jobs'), (key) => this.#sealer(key));
  }

  get(key: string, ids: readonly string[]): Promise<Memory[]> {
    return this.#read(key, async ({ log }) => (await log.load()).memories.get(ids));
  }

  query(key: string, request: QueryRequest): Promise<QueryAnswer> {
    return this.#read(key, async ({ log }) => (await log.load()).memories.query(request));
  }

  revision(key: string): Promise<number> {
    return this.#read(key, async ({ log }) => (await log.tail()).revision);
  }

  changes(key: string, since: number): Promise<MemoryChanges> {
    return this.#read(key, ({ log }) => log.changes(since));
  }

  revisions(key: string, id: string): Promise<Memory[]> {
    return this.#read(key, async ({ log }) => (await log.load()).memories.revisions(id));
  }

  bySource(key: string, sourceId: string): Promise<Memory[]> {
    return this.#read(key, async ({ log }) => (await log.load()).memories.bySource(sourceId));
  }

  notes(key: string, kind: string, keys: readonly string[] | undefined): Promise<MemoryNotes> {
    return this.#read(key, async (scope) => {
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const tail = await scope.log.tail();
        const notes = await scope.notes.read(kind, keys, tail);
        if (notes && (await scope.log.tail()).commit === tail.commit) return { revision: tail.revision, notes };
      }
      return this.#locked(scope, async () => {
        const tail = await scope.log.tail();
        return { revision: tail.revision, notes: (await scope.notes.read(kind, keys, tail))! };
      });
    });
  }

  commit(key: string, request: CommitRequest): Promise<MemoryCommitResult> {
    const scope = this.#scope(key);
    const commit = () => this.#locked(scope, (lock) => this.#commit(scope, request, lock));
    return this.#change('Committing memories', () => (request.job ? this.#withJobs(commit) : commit()));
  }

  addJob(job: MemoryJob, maxJobs: number): Promise<'added' | 'known' | 'full'> {
    return this.#changeJobs('Adding a memory job', async (files) => {
      if (findJob(files, job.id)) return 'known';
      if (files.filter((file) => file.dueAt < Infinity).length >= maxJobs) return 'full';
      await this.#jobs.add(job, (files.at(-1)?.number ?? 0) + 1);
      return 'added';
    });
  }

  claimJob({ scope, ...claim }: ClaimRequest): Promise<MemoryJob | undefined> {
    return this.#changeJobs('Claiming a memory job', async (files, unreadable) => {
      for (let rest = files; ;) {
        const file = jobToClaim(rest, scope && shortHashOf(scope), claim.now);
        if (!file) return undefined;
        const read = await this.#jobs.read(file, scope).catch(unreadableOnly);
        const found = read instanceof GenkitError ? read : (unreadable.get(file) ?? read);
        if (!(found instanceof GenkitError)) {
          const job = leaseMemoryJob(found, claim);
          await this.#jobs.replace(file, job);
          return job;
        }
        if (scope !== undefined) throw found;
        this.#reportOnce(file, found);
        rest = rest.filter((one) => one.scope !== file.scope);
      }
    });
  }

  changeJob(id: string, change: MemoryJobChange, now: number): Promise<void> {
    return this.#changeJobs('Changing a memory job', async (files) => {
      const file = findJob(files, id);
      const next = changeMemoryJob(file && (await this.#jobs.read(file)), id, change, now);
      if (next) await this.#jobs.replace(file!, next);
      else await this.#jobs.remove([file!]);
    });
  }

  listJobs({ state, scope, limit, after = '0' }: JobsRequest): Promise<ListEntry<MemoryJob>[]> {
    const wanted = scope && shortHashOf(scope);
    const read = async (files: readonly JobFile[]) => {
      const entries: ListEntry<MemoryJob>[] = [];
      for (const file of files) {
        if (entries.length === limit) break;
        if (file.number <= Number(after) || (wanted ?? file.scope) !== file.scope) continue;
        if (state !== undefined && (state === 'dead') !== (file.dueAt === Infinity)) continue;
        const job = await this.#jobs.read(file, scope).catch(unreadableOnly);
        if (job instanceof GenkitError) {
          if (scope !== undefined) throw job;
        } else if ((state ?? job.state) === job.state) entries.push({ item: job, place: `${file.number}` });
      }
      return entries;
    };
    return this.#shared.folder.run({ what: 'Listing memory jobs' }, () => this.#readJobs(read));
  }

  listScopes({ limit, after = '' }: ListRequest, unreadable: Unreadable[]): Promise<ListEntry<MemoryScopeId>[]> {
    return this.#shared.folder.run({ what: 'Listing scopes' }, async () => {
      const { folder } = this.#shared;
      const withJobs = await this.#scopesWithJobs();
      const names = [...new Set([...this.#scopeNames(), ...withJobs.keys()])].filter((name) => name > after).toSorted();
      const entries: ListEntry<MemoryScopeId>[] = [];
      for (const name of names) {
        if (entries.length === limit) break;
        const path = join(this.#scopes, name);
        const key = withJobs.get(name) ?? (await unlessRefused(MemoryLog.scopeOf(folder, path)));
        if (typeof key === 'string') entries.push({ item: memoryScopeOfKey(key), place: name });
        else if (key === undefined) unreadable.push({ place: relative(folder.path, path) });
      }
      return entries;
    });
  }

  sweep(now: number): Promise<MemorySweep> {
    return this.#change('Sweeping memories', async () => {
      const { folder } = this.#shared;
      let removed = 0;
      for (const name of this.#scopeNames()) {
        const key = await unlessRefused(MemoryLog.scopeOf(folder, join(this.#scopes, name)));
        if (typeof key === 'string') removed += await this.#sweepScope(this.#scope(key), now);
      }
      return { removed };
    });
  }

  erase(key: string): Promise<MemoryErasure> {
    const scope = this.#scope(key);
    return this.#change('Erasing memories', () =>
      this.#withJobs(() =>
        this.#locked(scope, async (lock) => {
          const jobs = this.#jobs.list().filter((file) => file.scope === shortHashOf(key));
          await this.#jobs.remove(jobs);
          // Memories that can't be read, because they are damaged or their key is missing, are erased as well.
          const found = await scope.log.tail().catch(unreadableOnly);
          const isThere = this.#shared.folder.hasFolder(scope.path);
          // Without the log, numbers later than those of the notes and of all readers.
          const [commit, revision] = [Date.now(), Date.now()];
          const isKnown = !(found instanceof GenkitError) && (found.commit > 0 || !isThere);
          const tail = isKnown ? found : { ...NO_TAIL, commit, revision };
          const notes = scope.notes.count(tail);
          const reading = scope.log.load().then(({ memories }) => memories.counts);
          const counts = await reading.catch(() => ({ memories: 0, revisions: 0 }));
          const next = erasedAfter(tail);
          if (isThere) {
            await scope.log.rewrite(next, [], lock);
            await this.#finish(scope, next);
          }
          await this.#sealer(key).forget();
          // The log names the scope until its key is gone, so that an interrupted erasure is found and repeated.
          if (isThere) await scope.log.rewrite({ ...next, isErased: true }, [], lock);
          return { ...counts, notes, jobs: jobs.length };
        }),
      ),
    );
  }

  async #commit(scope: Scope, request: CommitRequest, lock: HeldLock): Promise<MemoryCommitResult> {
    const { operations, expectedRevision, job, now } = request;
    const { puts, removes, notes, raisesRevision } = operations;
    const before = await scope.log.tail();
    assertMemoryRevision(scope.key, before.revision, expectedRevision);
    const held = job && findJob((await this.#openJobs()).files, job.id);
    if (job) assertMemoryJobHeld(held && (await this.#jobs.read(held)), job, scope.key);
    const done = held && !job?.keep ? [held] : [];
    if (puts.length + removes.length + notes.length === 0) {
      await this.#jobs.remove(done);
      return { revision: before.revision };
    }
    const grown = this.#shared.folder.makeFolder(scope.path);
    scope.notes.discard(before);
    const commit = before.commit + 1;
    const isRead = puts.length + removes.length > 0;
    const memories = isRead ? (await scope.log.load()).memories : undefined;
    const planned = memories?.plan(operations, now) ?? {
      revision: before.revision + Number(raisesRevision),
      versions: [],
      removed: [],
    };
    await scope.notes.write(notes, commit);
    const isRemoval = planned.removed.length > 0;
    const gone = new Set(planned.removed);
    const left = isRemoval ? memories!.versions().filter(({ memory }) => !gone.has(memory.id)) : [];
    const ends = [...left, ...planned.versions].map(({ memory }) => endMs(memory.expiresAt));
    const expires = Math.min(isRemoval ? Infinity : (before.expires ?? Infinity), ...ends);
    const next: LogTail = {
      commit,
      revision: planned.revision,
      reset: isRemoval ? planned.revision : before.reset,
      derived: isRemoval ? commit : before.derived,
      cleared: before.cleared,
      block: 0,
      idle: planned.versions.length === 0 ? before.idle + 1 : before.idle,
      expires: expires < Infinity ? expires : undefined,
      job: done[0]?.ref ?? before.job,
    };
    if (isRemoval) await scope.log.rewrite(next, [...left, ...planned.versions], lock);
    else await scope.log.append(before, next, planned.versions, lock);
    for (const path of grown) await this.#shared.folder.flushFolder(path);
    await this.#finish(scope, next, done);
    return { revision: next.revision };
  }

  /** The work after a commit point. */
  async #finish(scope: Scope, tail: LogTail, done: readonly JobFile[] = []): Promise<void> {
    try {
      await this.#shared.folder.flushFolder(scope.path);
      await scope.notes.tidy(tail);
      await this.#jobs.remove(done);
    } catch (error) {
      throw outcomeUnknown('Committing memories', error);
    }
  }

  #sweepScope(scope: Scope, now: number): Promise<number> {
    return this.#locked(scope, async (lock) => {
      const tail = await scope.log.tail();
      if ((tail.expires ?? Infinity) > now) {
        scope.notes.discard(tail);
        await scope.notes.tidy(tail);
        return 0;
      }
      const removes = (await scope.log.load()).memories.expired(now);
      const operations = { puts: [], removes, notes: [], raisesRevision: true };
      await this.#commit(scope, { operations, expectedRevision: undefined, job: undefined, now }, lock);
      return removes.length;
    });
  }

  /** The open jobs. Removes jobs whose commits were made by processes that died before they removed them. */
  async #openJobs(): Promise<OpenJobs> {
    const files = this.#jobs.list();
    const done: JobFile[] = [];
    const unreadable = new Map<JobFile, GenkitError>();
    const seen = new Set<string>();
    for (const file of files) {
      if (seen.has(file.scope) || file.dueAt === Infinity) continue;
      seen.add(file.scope);
      // A job that was never claimed can't be done.
      if (file.change === 0) continue;
      const isDone = await this.#isDone(file).catch(unreadableOnly);
      if (isDone instanceof GenkitError) unreadable.set(file, isDone);
      else if (isDone) done.push(file);
    }
    await this.#jobs.remove(done);
    return { files: done.length === 0 ? files : files.filter((file) => !done.includes(file)), unreadable };
  }

  async #isDone(file: JobFile): Promise<boolean> {
    const { job } = await this.#scope(await this.#jobs.scopeOf(file)).log.tail();
    return job === file.ref;
  }

  #reportOnce({ ref }: JobFile, error: GenkitError): void {
    const { reported } = this.#shared;
    if (reported.has(ref)) return;
    reported.add(ref);
    reportUnreadableJob(error);
  }

  /** The scopes that have jobs, by the names of their folders. */
  #scopesWithJobs(): Promise<Map<string, string>> {
    return this.#readJobs(async (files) => {
      const keys = new Map<string, string>();
      for (const file of files) {
        if (!keys.has(file.scope)) keys.set(file.scope, await this.#jobs.scopeOf(file));
      }
      return keys;
    });
  }

  /** The names of the folders of scopes. */
  #scopeNames(): string[] {
    const { folder } = this.#shared;
    const names = folder.hasFolder(this.#scopes) ? folder.namesIn(this.#scopes) : [];
    return names.filter((name) => /^[0-9a-f]{32}$/.test(name));
  }

  #scope(key: string): Scope {
    const path = join(this.#scopes, shortHashOf(key));
    const sealer = this.#sealer(key);
    return {
      key,
      path,
      log: new MemoryLog(this.#shared, path, key, sealer),
      notes: new NoteFiles(this.#shared.folder, path, sealer),
    };
  }

  #sealer(key: string): Sealer {
    return new Sealer(this.#shared.encryption, { tenant: this.#tenant, kind: 'memory', id: key }, () =>
      this.#scope(key).log.reopen(),
    );
  }

  #read<T>(key: string, call: (scope: Scope) => Promise<T>): Promise<T> {
    const { folder } = this.#shared;
    return folder.run({ what: 'Reading memories' }, () => {
      // Refuses a link in the folder's place.
      folder.hasFolder(this.#scopes);
      return call(this.#scope(key));
    });
  }

  #change<T>(what: string, call: () => Promise<T>): Promise<T> {
    const { folder } = this.#shared;
    return folder.run({ what }, () => {
      folder.prepare();
      folder.hasFolder(this.#scopes);
      folder.hasFolder(this.#jobs.path);
      return call();
    });
  }

  /** Reads the jobs. Without a folder of jobs there are none, and no lock is made. */
  async #readJobs<T>(call: (files: readonly JobFile[]) => Promise<T>): Promise<T> {
    if (!this.#shared.folder.hasFolder(this.#jobs.path)) return call([]);
    return this.#withJobs(async () => call((await this.#openJobs()).files));
  }

  #changeJobs<T>(
    what: string,
    call: (files: readonly JobFile[], unreadable: OpenJobs['unreadable']) => Promise<T>,
  ): Promise<T> {
    const change = async () => {
      const { files, unreadable } = await this.#openJobs();
      return call(files, unreadable);
    };
    return this.#change(what, () => this.#withJobs(change));
  }

  #locked<T>({ key }: Scope, call: (lock: HeldLock) => Promise<T>): Promise<T> {
    const what = `The memory of ${describeMemoryScope(key)}`;
    return this.#shared.folder.locks.run(hashOf('memory', this.#tenant, key), what, call);
  }

  /** Runs a call under the lock of the tenant's jobs. Take it before the lock of a scope, never after. */
  #withJobs<T>(call: () => Promise<T>): Promise<T> {
    return this.#shared.folder.locks.run(hashOf('memory jobs', this.#tenant), 'The queue of memory jobs', call);
  }
}

function erasedAfter(tail: LogTail): LogTail {
  const [commit, revision] = [tail.commit + 1, tail.revision + 1];
  return { ...NO_TAIL, commit, revision, reset: revision, derived: commit, cleared: commit };
}
