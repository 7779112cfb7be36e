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
import type { Vocabulary } from './lexical/languages.ts';
import { LexicalIndex } from './lexical/lexical-index.ts';

/** The number of memories that are indexed before other work of the process can run. */
const CHUNK = 200;
/** The most memories that one `get` of a store reads. */
const GET_LIMIT = 100;
/** Estimated bytes of an index without memories. */
const BYTES_AN_INDEX = 6_000;
/** Estimated bytes of a memory in the index besides its text. */
const BYTES_A_MEMORY = 1_500;
const BYTES_A_CHARACTER = 12;

/** If a read has taken longer than this, later searches begin another read instead of waiting. */
const MAX_LOADING_MS = 30_000;

/** The index of one scope of one tenant, in this process. */
export class ScopeIndex {
  readonly #store: MemoryStore;
  readonly #scope: MemoryScopeId;
  readonly #vocabulary: Vocabulary;
  readonly #now: () => number;
  #index: LexicalIndex | undefined;
  #revision = 0;
  /** The revision at which each memory was read, by id. Members other than its content, such as its confidence, may have changed since. */
  #readAt = new Map<string, number>();
  /** Memories that changed after the shards were written, by id. Includes memories that are no longer valid. */
  #unsaved = new Map<string, Memory>();
  #shards = IndexShards.none;
  #characters = 0;
  #loading: { readonly since: number; readonly done: Promise<void> } | undefined;
  /** Resolves after the last change of the index: changes run one after the other, and never wait for the store. */
  #applied: Promise<unknown> = Promise.resolve();
  #saved: Promise<unknown> = Promise.resolve();

  constructor(store: MemoryStore, scope: MemoryScopeId, vocabulary: Vocabulary, now: () => number) {
    this.#store = store;
    this.#scope = scope;
    this.#vocabulary = vocabulary;
    this.#now = now;
  }

  /** `undefined` before the index was read, and while it is built again after a removal. */
  get index(): LexicalIndex | undefined {
    return this.#index;
  }

  /** The scope's revision that the index contains. */
  get revision(): number {
    return this.#revision;
  }

  /** Estimated bytes of the index. */
  get weight(): number {
    return BYTES_AN_INDEX + (this.#index?.size ?? 0) * BYTES_A_MEMORY + this.#characters * BYTES_A_CHARACTER;
  }

  /** Returns the up-to-date index: reads the changes since the last update; in a new process, reads the shards first. */
  async update(options: MemoryStoreOptions): Promise<LexicalIndex> {
    if (!this.#index) await this.#load(options);
    const since = this.#revision;
    // Not shared between callers, because each must see all commits before its call.
    const changes = await this.#store.changes(this.#scope, { ...options, since });
    const isNews = changes.isReset || changes.revision !== this.#revision;
    const index = this.#index && !isNews ? this.#index : await this.#apply(() => this.#take(changes, since));
    // Another call may have dropped the index in the meantime, because it must be built again.
    return index ?? this.update(options);
  }

  /** Whether the index contains a memory as of the index's revision. */
  isCurrent({ id }: Memory): boolean {
    return this.#readAt.get(id) === this.#revision;
  }

  /** Returns these memories as they are in the store now, without removed ones. Reads only memories that may have changed. */
  async revalidate(memories: readonly Memory[], options: MemoryStoreOptions): Promise<Memory[]> {
    const [index, revision] = [this.#index, this.#revision];
    const unsure = new Set(memories.filter((memory) => !this.isCurrent(memory)).map(({ id }) => id));
    const read = new Map<string, Memory>();
    for (let i = 0; i < unsure.size; i += GET_LIMIT) {
      const page = await this.#store.get(this.#scope, [...unsure].slice(i, i + GET_LIMIT), options);
      for (const memory of page) read.set(memory.id, memory);
    }
    for (const memory of read.values()) {
      // `changes` will bring a changed text to the index.
      if (index !== this.#index || index?.get(memory.id)?.text !== memory.text) continue;
      index.refresh(memory);
      this.#readAt.set(memory.id, revision);
    }
    return memories.flatMap((memory) => (unsure.has(memory.id) ? (read.get(memory.id) ?? []) : memory));
  }

  /** Stores shards, after earlier calls, if at least `least` memories have changed. Returns whether it did. */
  save(options: MemoryStoreOptions, least: number): Promise<boolean> {
    const saved = this.#saved.then(() => this.#save(options, least));
    this.#saved = saved.catch(() => {});
    return saved;
  }

  async #save(options: MemoryStoreOptions, least: number): Promise<boolean> {
    await this.update(options);
    if (this.#unsaved.size < least) return false;
    if (!(await this.#shards.isStored(this.#store, this.#scope, options))) {
      // Another process has written the shards, or a removal has dropped them.
      this.#drop();
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

  /** Applies the changes since a revision, and returns the index. */
  async #take({ revision, changed, isReset }: MemoryChanges, since: number): Promise<LexicalIndex | undefined> {
    // Another call has applied these changes in the meantime.
    if (this.#index && since !== this.#revision && revision <= this.#revision) return this.#index;
    if (isReset) {
      // Removed memories must not be found while the others are indexed.
      this.#drop();
      await this.#fill(
        changed.map((memory) => ({ memory, readAt: revision })),
        revision,
      );
      for (const memory of changed) this.#unsaved.set(memory.id, memory);
      return this.#index;
    }
    if (!this.#index || revision < this.#revision) return this.#index;
    for (const [i, memory] of changed.entries()) {
      this.#put(this.#index, { memory, readAt: revision });
      this.#unsaved.set(memory.id, memory);
      if (i % CHUNK === CHUNK - 1) await setImmediate();
    }
    this.#revision = revision;
    return this.#index;
  }

  #drop(): void {
    this.#index = undefined;
    this.#revision = 0;
    this.#shards = IndexShards.none;
    this.#unsaved.clear();
  }

  async #fill(entries: readonly IndexEntry[], revision: number): Promise<void> {
    const index = new LexicalIndex(this.#vocabulary);
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

  #apply<T>(change: () => Promise<T>): Promise<T> {
    const applied = this.#applied.then(change);
    this.#applied = applied.catch(() => {});
    return applied;
  }
}
