import { setImmediate } from 'node:timers/promises';
import type {
  Memory,
  MemoryChanges,
  MemoryScopeId,
  MemoryStore,
  MemoryStoreOptions,
} from '../../store/memory/contract.ts';
import { holdsAt } from '../../store/memory/version.ts';
import { IndexShards, type IndexEntry } from './index-shards.ts';
import type { Stems } from './languages.ts';
import { LexicalIndex } from './lexical-index.ts';

/** So many memories are indexed before other work of the process has its turn. */
const CHUNK = 200;
/** So many memories `get` reads at once. */
const GET_LIMIT = 100;
/** What a memory takes in the index besides its text, about. */
const BYTES_A_MEMORY = 1_500;
const BYTES_A_CHARACTER = 12;

/** A read that takes longer is not waited for by later searches: they read anew. */
const MAX_LOADING_MS = 30_000;

/** The index of one scope of one tenant, in this process. */
export class ScopeIndex {
  readonly #store: MemoryStore;
  readonly #scope: MemoryScopeId;
  readonly #stems: Stems;
  readonly #now: () => number;
  #index: LexicalIndex | undefined;
  #revision = 0;
  /** By id, the revision in which a memory was as it is here. Since then its confidence may have changed, which is no content. */
  #readAt = new Map<string, number>();
  /** What changed after the shards were written, by id, the invalidated included. */
  #unsaved = new Map<string, Memory>();
  #shards = IndexShards.none;
  #characters = 0;
  #loading: { readonly since: number; readonly done: Promise<void> } | undefined;
  /** Changes of the index are made one after the other. They never wait for the store. */
  #applied: Promise<unknown> = Promise.resolve();

  constructor(store: MemoryStore, scope: MemoryScopeId, stems: Stems, now: () => number) {
    this.#store = store;
    this.#scope = scope;
    this.#stems = stems;
    this.#now = now;
  }

  /** `undefined` while there is none: before it was read, and while it is made anew because memories were removed. */
  get index(): LexicalIndex | undefined {
    return this.#index;
  }

  /** The scope's revision that it has. */
  get revision(): number {
    return this.#revision;
  }

  /** Bytes that it takes, about. */
  get weight(): number {
    return (this.#index?.size ?? 0) * BYTES_A_MEMORY + this.#characters * BYTES_A_CHARACTER;
  }

  /** Takes over what the store has. Reads what is new; in a new process the shards, and what is newer than they are. */
  async update(options: MemoryStoreOptions): Promise<void> {
    if (!this.#index) await this.#load(options);
    // Not shared between callers: each sees what was committed before it asked.
    const changes = await this.#store.changes(this.#scope, { ...options, since: this.#revision });
    await this.#apply(() => this.#take(changes));
  }

  /** These memories as they are in the store now. Reads only those that may have changed. */
  async exact(memories: readonly Memory[], options: MemoryStoreOptions): Promise<Memory[]> {
    const [index, revision] = [this.#index, this.#revision];
    const unsure = new Set(memories.filter(({ id }) => this.#readAt.get(id) !== revision).map(({ id }) => id));
    const read = new Map<string, Memory>();
    for (let i = 0; i < unsure.size; i += GET_LIMIT) {
      const page = await this.#store.get(this.#scope, [...unsure].slice(i, i + GET_LIMIT), options);
      for (const memory of page) read.set(memory.id, memory);
    }
    for (const memory of read.values()) {
      // Of one whose text has changed the index is told by `changes`.
      if (index !== this.#index || index?.get(memory.id)?.text !== memory.text) continue;
      index.refresh(memory);
      this.#readAt.set(memory.id, revision);
    }
    return memories.flatMap((memory) => (unsure.has(memory.id) ? (read.get(memory.id) ?? []) : memory));
  }

  /** Stores shards. Answers whether there was anything to store. */
  async save(options: MemoryStoreOptions): Promise<boolean> {
    await this.update(options);
    if (!(await this.#shards.isStored(this.#store, this.#scope, options))) {
      // Another process has written them, or a removal has dropped them.
      this.#forget();
      await this.update(options);
    }
    const [index, changed] = [this.#index, [...this.#unsaved.values()]];
    if (!index || changed.length === 0) return false;
    const entryOf = (memory: Memory): IndexEntry => ({ memory, readAt: this.#readAt.get(memory.id) ?? 0 });
    const all = index.memories().map(entryOf);
    const content = { revision: this.#revision, changed: changed.map(entryOf), all };
    this.#shards = await this.#shards.write(this.#store, this.#scope, content, options);
    for (const memory of changed) if (this.#unsaved.get(memory.id) === memory) this.#unsaved.delete(memory.id);
    return true;
  }

  #load(options: MemoryStoreOptions): Promise<void> {
    if (this.#loading && this.#now() - this.#loading.since < MAX_LOADING_MS) return this.#loading.done;
    const loading = { since: this.#now(), done: this.#readShards(options) };
    this.#loading = loading;
    const end = (): void => {
      if (this.#loading === loading) this.#loading = undefined;
    };
    loading.done.then(end, end);
    return loading.done;
  }

  async #readShards(options: MemoryStoreOptions): Promise<void> {
    const { shards, entries } = await IndexShards.read(this.#store, this.#scope, options);
    await this.#apply(async () => {
      if (this.#index) return;
      await this.#fill(entries, shards.revision);
      this.#shards = shards;
      this.#unsaved.clear();
    });
  }

  async #take({ revision, changed, isReset }: MemoryChanges): Promise<void> {
    if (isReset) {
      // What was removed must not be found while the rest is indexed.
      this.#forget();
      await this.#fill(
        changed.map((memory) => ({ memory, readAt: revision })),
        revision,
      );
      for (const memory of changed) this.#unsaved.set(memory.id, memory);
      return;
    }
    if (!this.#index || revision < this.#revision) return;
    for (const [i, memory] of changed.entries()) {
      this.#put(this.#index, { memory, readAt: revision });
      this.#unsaved.set(memory.id, memory);
      if (i % CHUNK === CHUNK - 1) await setImmediate();
    }
    this.#revision = revision;
  }

  #forget(): void {
    this.#index = undefined;
    this.#revision = 0;
    this.#shards = IndexShards.none;
    this.#unsaved.clear();
  }

  async #fill(entries: readonly IndexEntry[], revision: number): Promise<void> {
    const index = new LexicalIndex(this.#stems);
    this.#readAt.clear();
    this.#characters = 0;
    for (const [i, entry] of entries.entries()) {
      this.#put(index, entry);
      if (i % CHUNK === CHUNK - 1) await setImmediate();
    }
    this.#index = index;
    this.#revision = revision;
  }

  #put(index: LexicalIndex, { memory, readAt }: IndexEntry): void {
    const holds = holdsAt(memory, this.#now());
    this.#characters += (holds ? memory.text.length : 0) - (index.get(memory.id)?.text.length ?? 0);
    this.#readAt.set(memory.id, readAt);
    if (holds) index.put(memory);
    else index.remove(memory.id);
  }

  #apply(change: () => Promise<void>): Promise<void> {
    const applied = this.#applied.then(change);
    this.#applied = applied.catch(() => {});
    return applied;
  }
}
