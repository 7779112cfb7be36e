import type { MemoryDraft, Memory, MemoryOperation, MemoryScopeId } from '../../../../src/store/memory/contract.ts';

/** A memory after each of its puts, and the scope's revision and the position in the commit in which its content last changed. */
interface Entry {
  readonly versions: Memory[];
  put: [revision: number, place: number];
  content: [revision: number, place: number];
}

interface Scope {
  revision: number;
  reset: number;
  isWritten: boolean;
  readonly memories: Map<string, Entry>;
  readonly notes: Map<string, unknown>;
}

const CONTENT = ['text', 'data', 'schemaId', 'topics', 'kind', 'validFrom', 'validTo', 'supersededBy', 'expiresAt'];

/** The contract of memories and notes in its simplest form: no expectations, no vectors, no jobs. */
export class ReferenceStore {
  readonly #scopes = new Map<string, Scope>();

  commit(id: MemoryScopeId, operations: readonly MemoryOperation[], now: number): number {
    const scope = this.#of(id);
    scope.isWritten = true;
    const removed = operations.filter((one) => one.op === 'remove' && scope.memories.delete(one.id));
    if (operations.some((one) => one.op !== 'note' || !one.kind.startsWith('index'))) scope.revision++;
    if (removed.length > 0) {
      scope.reset = scope.revision;
      for (const name of scope.notes.keys()) if (name.startsWith('["index')) scope.notes.delete(name);
    }
    let place = 0;
    for (const one of operations) {
      if (one.op === 'put') this.#put(id, scope, one.memory, [scope.revision, place++], new Date(now).toISOString());
      if (one.op !== 'note') continue;
      const name = JSON.stringify([one.kind, one.key]);
      if (one.value === undefined) scope.notes.delete(name);
      else scope.notes.set(name, structuredClone(one.value));
    }
    return scope.revision;
  }

  erase(id: MemoryScopeId): { memories: number; revisions: number; notes: number; jobs: number } {
    const scope = this.#of(id);
    const versions = [...scope.memories.values()].reduce((sum, entry) => sum + entry.versions.length, 0);
    const { size } = scope.memories;
    const counts = { memories: size, revisions: versions - size, notes: scope.notes.size, jobs: 0 };
    scope.memories.clear();
    scope.notes.clear();
    // A scope that was never written does not change.
    if (scope.isWritten) scope.reset = ++scope.revision;
    return counts;
  }

  /** Returns all data that reads of a scope return, for these values of `since` and `asOf`. */
  view(id: MemoryScopeId, since: number, asOf: number): unknown {
    const scope = this.#of(id);
    const all = [...scope.memories.values()];
    const byPlace = (x: readonly number[], y: readonly number[]): number => x[0]! - y[0]! || x[1]! - y[1]!;
    const isReset = since < scope.reset || since > scope.revision;
    const changed = all
      .filter((entry) => isReset || entry.content[0] > since)
      .toSorted((x, y) => byPlace(x.content, y.content));
    const past = all.flatMap(({ versions }) => versions.findLast((one) => Date.parse(one.updatedAt) <= asOf) ?? []);
    const holds = (memory: Memory, time: number): boolean => !(Date.parse(memory.validTo ?? '') <= time);
    const now = all.toSorted((x, y) => byPlace(y.put, x.put)).map(({ versions }) => versions.at(-1)!);
    return {
      revision: scope.revision,
      query: now.filter((memory) => holds(memory, Date.now())),
      all: now,
      changes: { revision: scope.revision, isReset, changed: changed.map(({ versions }) => versions.at(-1)!) },
      past: past
        .filter((memory) => holds(memory, asOf))
        .map((memory) => `${memory.id} ${memory.revision}`)
        .toSorted(),
      revisions: all.map(({ versions }) => versions).toSorted((x, y) => (x[0]!.id < y[0]!.id ? -1 : 1)),
      notes: [...scope.notes].map(([name, value]) => `${name} ${JSON.stringify(value)}`).toSorted(),
    };
  }

  #put(id: MemoryScopeId, { memories }: Scope, draft: MemoryDraft, at: [number, number], updatedAt: string): void {
    const entry = memories.get(draft.id) ?? { versions: [], put: at, content: at };
    const last = entry.versions.at(-1);
    const { revision = 0, createdAt = updatedAt } = last ?? {};
    entry.versions.push(structuredClone({ ...draft, scope: id, revision: revision + 1, createdAt, updatedAt }));
    entry.put = at;
    if (CONTENT.some((name) => JSON.stringify(last?.[name]) !== JSON.stringify(draft[name]))) entry.content = at;
    memories.set(draft.id, entry);
  }

  #of(id: MemoryScopeId): Scope {
    const key = JSON.stringify(id);
    const scope = this.#scopes.get(key) ?? {
      revision: 0,
      reset: 0,
      isWritten: false,
      memories: new Map(),
      notes: new Map(),
    };
    this.#scopes.set(key, scope);
    return scope;
  }
}
