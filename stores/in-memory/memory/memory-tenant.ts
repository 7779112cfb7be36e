import type { Json } from '../../../src/json/value.ts';
import type {
  ClaimRequest,
  CommitRequest,
  JobsRequest,
  ListEntry,
  ListRequest,
  MemoryTenant,
  QueryAnswer,
} from '../../../src/store/memory/base-memory-store.ts';
import { isDerivedKind, type NoteOperation, type QueryRequest } from '../../../src/store/memory/checks.ts';
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
import { assertMemoryRevision } from '../../../src/store/memory/jobs.ts';
import { memoryScopeOfKey } from '../../../src/store/memory/scope.ts';
import { ScopeMemories } from '../../../src/store/memory/scope-memories.ts';
import { JobQueue } from './job-queue.ts';

interface Scope {
  readonly memories: ScopeMemories;
  /** The notes of each kind, by key. */
  readonly notes: Map<string, Map<string, Json>>;
  /** The scope was erased; only its revision is left. */
  isErased: boolean;
}

/** One tenant. A read and its write are synchronous, so they are atomic for all other callers in the process. */
export class InMemoryMemoryTenant implements MemoryTenant {
  readonly #scopes = new Map<string, Scope>();
  readonly #jobs = new JobQueue();

  get(scope: string, ids: readonly string[]): Memory[] {
    return this.#read(scope).memories.get(ids);
  }

  query(scope: string, request: QueryRequest): QueryAnswer {
    return this.#read(scope).memories.query(request);
  }

  revision(scope: string): number {
    return this.#read(scope).memories.revision;
  }

  changes(scope: string, since: number): MemoryChanges {
    return this.#read(scope).memories.changes(since);
  }

  revisions(scope: string, id: string): Memory[] {
    return this.#read(scope).memories.revisions(id);
  }

  bySource(scope: string, sourceId: string): Memory[] {
    return this.#read(scope).memories.bySource(sourceId);
  }

  commit(key: string, { operations, expectedRevision, job, now }: CommitRequest): MemoryCommitResult {
    const scope = this.#read(key);
    const { memories, notes } = scope;
    assertMemoryRevision(key, memories.revision, expectedRevision);
    if (job) this.#jobs.assertHeld(job, key);
    const commit = memories.plan(operations, now);
    memories.apply(commit);
    const outdated = commit.removed.length > 0 ? [...notes.keys()].filter(isDerivedKind) : [];
    for (const kind of outdated) notes.delete(kind);
    for (const note of operations.notes) writeNote(notes, note);
    if (job && !job.keep) this.#jobs.remove(job.id);
    if (operations.raisesRevision || operations.notes.length > 0) {
      this.#scopes.set(key, scope);
      scope.isErased = false;
    }
    return { revision: memories.revision };
  }

  notes(key: string, kind: string, keys: readonly string[] | undefined): MemoryNotes {
    const { memories, notes } = this.#read(key);
    const ofKind = notes.get(kind) ?? new Map<string, Json>();
    const wanted = (keys ?? [...ofKind.keys()]).filter((one) => ofKind.has(one));
    return { revision: memories.revision, notes: wanted.map((one) => ({ kind, key: one, value: ofKind.get(one)! })) };
  }

  addJob(job: MemoryJob, maxJobs: number): 'added' | 'known' | 'full' {
    return this.#jobs.add(job, maxJobs);
  }

  claimJob(request: ClaimRequest): MemoryJob | undefined {
    return this.#jobs.claim(request);
  }

  changeJob(id: string, change: MemoryJobChange, now: number): void {
    this.#jobs.change(id, change, now);
  }

  listJobs(request: JobsRequest): ListEntry<MemoryJob>[] {
    return this.#jobs.list(request);
  }

  listScopes({ limit, after = '' }: ListRequest): ListEntry<MemoryScopeId>[] {
    const written = [...this.#scopes].filter(([, { isErased }]) => !isErased).map(([key]) => key);
    const keys = [...new Set([...written, ...this.#jobs.scopes()])].filter((key) => key > after).toSorted();
    return keys.slice(0, limit).map((key) => ({ item: memoryScopeOfKey(key), place: key }));
  }

  sweep(now: number): MemorySweep {
    let removed = 0;
    for (const [key, { memories }] of this.#scopes) {
      const removes = memories.expired(now);
      if (removes.length === 0) continue;
      const operations = { puts: [], removes, notes: [], raisesRevision: true };
      this.commit(key, { operations, expectedRevision: undefined, job: undefined, now });
      removed += removes.length;
    }
    return { removed };
  }

  erase(key: string): MemoryErasure {
    const jobs = this.#jobs.removeScope(key);
    const scope = this.#scopes.get(key);
    if (!scope) return { memories: 0, revisions: 0, notes: 0, jobs };
    const { counts } = scope.memories;
    const notes = [...scope.notes.values()].reduce((sum, ofKind) => sum + ofKind.size, 0);
    scope.memories.clear();
    scope.notes.clear();
    scope.isErased = true;
    return { ...counts, notes, jobs };
  }

  /** The scope; a scope that was never written is not kept. */
  #read(key: string): Scope {
    const known = this.#scopes.get(key);
    return known ?? { memories: new ScopeMemories(memoryScopeOfKey(key)), notes: new Map(), isErased: false };
  }
}

function writeNote(notes: Scope['notes'], { kind, key, value }: NoteOperation): void {
  const ofKind = notes.get(kind) ?? new Map<string, Json>();
  if (value === undefined) ofKind.delete(key);
  else ofKind.set(key, value);
  notes.set(kind, ofKind);
}
