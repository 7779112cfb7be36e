import type { QueryAnswer } from './base-memory-store.ts';
import type { CommitOperations, QueryRequest } from './checks.ts';
import type { Memory, MemoryChanges, MemoryScopeId } from './contract.ts';
import {
  inOrderOfChange,
  isExpired,
  nextMemoryVersion,
  queryMemoryVersions,
  memorySequenceOf,
  memoryVersionAt,
  type MemoryVersion,
} from './version.ts';

/** The changes that a commit makes to the memories of a scope. */
export interface MemoriesCommit {
  /** The scope's revision after the commit. */
  readonly revision: number;
  readonly versions: readonly MemoryVersion[];
  /** The ids of the removed memories that existed. */
  readonly removed: readonly string[];
}

/** The memories of one scope, in this process. */
export class ScopeMemories {
  readonly #scope: MemoryScopeId;
  /** The versions of each memory, oldest first. */
  readonly #memories = new Map<string, readonly MemoryVersion[]>();
  #revision = 0;
  /** The revision in which memories were last removed. */
  #resetRevision = 0;

  constructor(scope: MemoryScopeId) {
    this.#scope = scope;
  }

  get revision(): number {
    return this.#revision;
  }

  /** The number of memories, and of their earlier versions. */
  get counts(): { readonly memories: number; readonly revisions: number } {
    const memories = this.#memories.size;
    return { memories, revisions: this.versions().length - memories };
  }

  /** Adds the versions of a stored commit. `reset` is the revision in which memories were last removed. */
  restore(versions: readonly MemoryVersion[], { revision, reset }: { revision: number; reset: number }): void {
    this.apply({ revision, versions, removed: [] });
    this.#resetRevision = reset;
  }

  /** Plans the changes of a commit. */
  plan({ puts, removes, raisesRevision }: CommitOperations, now: number): MemoriesCommit {
    const revision = this.#revision + Number(raisesRevision);
    const versions = puts.map((put, i) => {
      const { id } = put.memory;
      const current = removes.includes(id) ? undefined : this.#current(id);
      return nextMemoryVersion(put, current, { scope: this.#scope, sequence: memorySequenceOf(revision) + i, now });
    });
    return { revision, versions, removed: removes.filter((id) => this.#memories.has(id)) };
  }

  apply({ revision, versions, removed }: MemoriesCommit): void {
    this.#revision = revision;
    for (const id of removed) this.#memories.delete(id);
    for (const version of versions) {
      const { id } = version.memory;
      this.#memories.set(id, [...(this.#memories.get(id) ?? []), version]);
    }
    if (removed.length > 0) this.#resetRevision = revision;
  }

  /** Removes all memories. */
  clear(): void {
    this.#memories.clear();
    this.#resetRevision = ++this.#revision;
  }

  /** All versions of all memories, in their order. */
  versions(): MemoryVersion[] {
    return [...this.#memories.values()].flat().toSorted((x, y) => x.sequence - y.sequence);
  }

  get(ids: readonly string[]): Memory[] {
    return ids.flatMap((id) => this.#current(id)?.memory ?? []);
  }

  revisions(id: string): Memory[] {
    return (this.#memories.get(id) ?? []).map(({ memory }) => memory);
  }

  bySource(sourceId: string): Memory[] {
    const isOf = ({ memory }: MemoryVersion) => memory.sources.some(({ id }) => id === sourceId);
    const found = [...this.#memories.values()].filter((versions) => versions.some(isOf));
    return found.map((versions) => versions.at(-1)!.memory);
  }

  expired(now: number): string[] {
    return [...this.#memories].filter(([, versions]) => isExpired(versions.at(-1)!.memory, now)).map(([id]) => id);
  }

  changes(since: number): MemoryChanges {
    if (since === this.#revision) return { revision: since, changed: [], isReset: false };
    const isReset = since < this.#resetRevision || since > this.#revision;
    const first = memorySequenceOf(isReset ? 0 : since + 1);
    const changed: MemoryVersion[] = [];
    for (const versions of this.#memories.values()) {
      const current = versions.at(-1)!;
      if (current.contentSequence >= first) changed.push(current);
    }
    return { revision: this.#revision, changed: inOrderOfChange(changed), isReset };
  }

  query(request: QueryRequest): QueryAnswer {
    return queryMemoryVersions(this.#at(request.asOf), request);
  }

  #at(time: number | undefined): MemoryVersion[] {
    const all = [...this.#memories.values()];
    return all.flatMap((versions) => (time === undefined ? versions.at(-1)! : (memoryVersionAt(versions, time) ?? [])));
  }

  #current(id: string): MemoryVersion | undefined {
    return this.#memories.get(id)?.at(-1);
  }
}
