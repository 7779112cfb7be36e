import type { DocumentSnapshot } from '@google-cloud/firestore';
import type { CommitRequest } from '../../../src/store/memory/base-memory-store.ts';
import type { MemoryCommitResult } from '../../../src/store/memory/contract.ts';
import { assertMemoryRevision } from '../../../src/store/memory/jobs.ts';
import { memoryScopeOfKey } from '../../../src/store/memory/scope.ts';
import { nextMemoryVersion, memorySequenceOf, type MemoryVersion } from '../../../src/store/memory/version.ts';
import { PAGE, type DocumentWrite } from '../database.ts';
import type { JobQueues } from './job-queues.ts';
import type { MemoryDatabase } from './memory-database.ts';
import {
  hashName,
  headFields,
  isKept,
  noteFields,
  noteName,
  readHead,
  readVersion,
  revisionName,
  versionFields,
  type ScopeHead,
} from './memory-documents.ts';

/** A head as it was read, and the memories that a commit touches. */
interface Read {
  readonly document: DocumentSnapshot;
  readonly head: ScopeHead;
  readonly memories: readonly DocumentSnapshot[];
  readonly job: readonly DocumentSnapshot[];
}

interface Change {
  readonly removed: readonly DocumentSnapshot[];
  readonly writes: DocumentWrite[];
  readonly revision: number;
  readonly expires: number | null;
}

/**
 * Commits to one scope. One request reads the head, the affected memories and the job; another one writes everything. Every commit writes
 * the head, provided that it has not changed since it was read; so of two concurrent commits one fails and is made again.
 */
export class ScopeCommits {
  readonly #data: MemoryDatabase;
  readonly #jobs: JobQueues;
  readonly #key: string;

  constructor(data: MemoryDatabase, jobs: JobQueues, key: string) {
    this.#data = data;
    this.#jobs = jobs;
    this.#key = key;
  }

  make(request: CommitRequest): Promise<MemoryCommitResult> {
    return this.#data.untilMade('Committing memories', this.#key, () => this.#attempt(request));
  }

  /** Removes the memories that have expired. Returns how many. */
  sweep(now: number): Promise<number> {
    return this.#data.untilMade('Sweeping memories', this.#key, async () => {
      const { database } = this.#data;
      const memories = this.#data.memories(this.#key);
      const documents = await database.query(memories.where('expires', '<=', now).orderBy('expires').limit(PAGE));
      const [next] = await database.query(memories.where('expires', '>', now).orderBy('expires').limit(1));
      const read = await this.#read([], undefined);
      if (read.head.key === undefined) return 0;
      const removed = documents.filter((document) => isKept(document, read.head));
      const expires = documents.length === PAGE ? now : ((next?.get('expires') as number | undefined) ?? null);
      const revision = read.head.revision + Number(removed.length > 0);
      await this.#write(read, { removed, writes: [], revision, expires });
      return removed.length;
    });
  }

  async #attempt({ operations, expectedRevision, job, now }: CommitRequest): Promise<MemoryCommitResult> {
    const { puts, removes, notes, raisesRevision } = operations;
    const removedNames = new Set(removes.map((id) => hashName(id)));
    const names = new Set([...puts.map(({ memory }) => hashName(memory.id)), ...removedNames]);
    const read = await this.#read([...names], job);
    const { head } = read;
    assertMemoryRevision(this.#key, head.revision, expectedRevision);
    const writes = job ? await this.#jobs.writesFor(this.#key, job, read.job) : [];
    if (names.size + notes.length === 0) {
      if (writes.length > 0) await this.#data.database.commit(writes);
      return { revision: head.revision };
    }
    const revision = head.revision + Number(raisesRevision);
    const reader = { scope: memoryScopeOfKey(this.#key), sealer: this.#data.sealer(this.#key) };
    let expires = head.expires;
    for (const [i, put] of puts.entries()) {
      const document = read.memories[i]!;
      const hasVersions = isKept(document, head) && !removedNames.has(document.id);
      const current: MemoryVersion | undefined = hasVersions ? await readVersion(document, reader) : undefined;
      const version = nextMemoryVersion(put, current, {
        scope: reader.scope,
        sequence: memorySequenceOf(revision) + i,
        now,
      });
      if (current) {
        const ref = this.#data.revisions(this.#key).doc(revisionName(document.id, current.memory.revision));
        writes.push({ kind: 'set', ref, data: document.data()! });
      }
      writes.push({ kind: 'set', ref: document.ref, data: await versionFields(version, document.id, reader.sealer) });
      const { expiresAt } = version.memory;
      if (expiresAt !== undefined) expires = Math.min(expires ?? Infinity, Date.parse(expiresAt));
    }
    for (const note of notes) {
      const ref = this.#data.notes(this.#key).doc(noteName(note));
      if (note.value === undefined) writes.push({ kind: 'drop', ref });
      else writes.push({ kind: 'set', ref, data: await noteFields(note, head.commit + 1, reader.sealer) });
    }
    const removed = read.memories.filter((document) => removedNames.has(document.id) && isKept(document, head));
    await this.#write(read, { removed, writes, revision, expires });
    return { revision };
  }

  async #read(names: readonly string[], job: CommitRequest['job']): Promise<Read> {
    const ofJob = job ? this.#jobs.refs(this.#key, job) : [];
    const memories = names.map((name) => this.#data.memories(this.#key).doc(name));
    const [document, ...rest] = await this.#data.database.getAll([this.#data.head(this.#key), ...ofJob, ...memories]);
    return {
      document: document!,
      head: readHead(document!),
      job: rest.slice(0, ofJob.length),
      memories: rest.slice(ofJob.length),
    };
  }

  async #write({ document, head }: Read, { removed, writes, revision, expires }: Change): Promise<void> {
    const { database } = this.#data;
    const isReset = removed.length > 0;
    const written = new Set(writes.map(({ ref }) => ref.path));
    if (isReset) {
      const derived = await database.query(this.#data.notes(this.#key).where('isDerived', '==', true).select());
      for (const { ref } of derived) if (!written.has(ref.path)) writes.push({ kind: 'drop', ref });
    }
    for (const memory of removed) {
      if (!written.has(memory.ref.path)) writes.push({ kind: 'drop', ref: memory.ref });
      for (let n = 1; n < (memory.get('revision') as number); n++) {
        writes.push({ kind: 'drop', ref: this.#data.revisions(this.#key).doc(revisionName(memory.id, n)) });
      }
    }
    const reset = isReset ? revision : head.reset;
    const data = headFields({ ...head, key: this.#key, commit: head.commit + 1, revision, reset, expires });
    const { ref, updateTime: at } = document;
    await database.commit([at ? { kind: 'update', ref, data, at } : { kind: 'create', ref, data }, ...writes]);
  }
}
