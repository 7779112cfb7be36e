import { randomUUID } from 'node:crypto';
import { cutByBytes } from '../../json/size.ts';
import { jsonEqual, type Json } from '../../json/value.ts';
import type {
  Memory,
  MemoryOperation,
  MemoryScopeId,
  MemoryStore,
  MemoryStoreOptions,
} from '../../store/memory/contract.ts';

/** The kind of the index notes. It is a derived kind, so the removal of a memory drops the notes. */
export const INDEX_KIND = 'index-search';
const HEAD = 'head';
const FORMAT = 1;
/** A note may take 512 KiB, a commit 2 MiB. */
const MAX_SHARD_BYTES = 480 * 1024;
const SHARDS_A_COMMIT = 3;
/** If a larger share of all entries is outdated by later entries, all shards are written again. */
const MAX_REPLACED = 0.5;

interface Head {
  readonly format: number;
  /** The scope's revision that the shards contain. */
  readonly revision: number;
  /** The tags of the shards, in their order. */
  readonly tags: readonly string[];
}

/** A memory as read at the revision `readAt`. Members other than its content, such as its confidence, may have changed since. */
export interface IndexEntry {
  readonly memory: Memory;
  readonly readAt: number;
}

interface Shard {
  /** Differs for each write, so that shards of two writers are never joined. */
  readonly tag: string;
  readonly entries: readonly IndexEntry[];
}

/** The stored index of a scope. A memory may be in several shards; its last entry counts. */
export class IndexShards {
  static readonly none: IndexShards = new IndexShards(0, [], undefined);

  readonly revision: number;
  readonly #tags: readonly string[];
  /** The last shard, which may have room for more entries. */
  readonly #last: Shard | undefined;
  /** The number of entries in all shards. */
  readonly #entries: number;

  private constructor(revision: number, tags: readonly string[], last: Shard | undefined, entries = 0) {
    this.revision = revision;
    this.#tags = tags;
    this.#last = last;
    this.#entries = entries;
  }

  /** Reads the stored shards, and their entries, oldest first. Returns none if the shards are not all from one writer. */
  static async read(
    store: MemoryStore,
    scope: MemoryScopeId,
    options: MemoryStoreOptions,
  ): Promise<{ shards: IndexShards; entries: IndexEntry[] }> {
    const { notes } = await store.notes(scope, INDEX_KIND, options);
    const values = new Map(notes.map(({ key, value }) => [key, value]));
    const head = values.get(HEAD) as Head | undefined;
    if (head?.format !== FORMAT) return { shards: IndexShards.none, entries: [] };
    const found = head.tags.map((_, i) => values.get(`${i}`) as Shard | undefined);
    const isWhole = found.every((shard, i) => shard?.tag === head.tags[i]);
    if (!isWhole) return { shards: IndexShards.none, entries: [] };
    const entries = (found as Shard[]).flatMap((shard) => shard.entries);
    return { shards: new IndexShards(head.revision, head.tags, found.at(-1), entries.length), entries };
  }

  /** Whether the store still has these shards. */
  async isStored(store: MemoryStore, scope: MemoryScopeId, options: MemoryStoreOptions): Promise<boolean> {
    const { notes } = await store.notes(scope, INDEX_KIND, { ...options, keys: [HEAD] });
    const head = notes[0]?.value as Head | undefined;
    return jsonEqual(head?.tags ?? [], this.#tags);
  }

  /**
   * Stores the changed entries, or `all` entries if the shards must be written again. Returns the stored shards.
   *
   * @throws `ABORTED` if the scope has another revision: a memory that was removed since must not come back with a shard.
   */
  async write(
    store: MemoryStore,
    scope: MemoryScopeId,
    content: { revision: number; changed: readonly IndexEntry[]; all: readonly IndexEntry[] },
    options: MemoryStoreOptions,
  ): Promise<IndexShards> {
    const { revision, changed, all } = content;
    const count = this.#entries + changed.length;
    const isRenewed = this.#last === undefined || count - all.length > MAX_REPLACED * count;
    const kept = isRenewed ? [] : this.#tags.slice(0, -1);
    const written = cut(isRenewed ? all : [...this.#last.entries, ...changed]);
    const tags = [...kept, ...written.map(({ tag }) => tag)];
    const commitOptions = { ...options, expectedRevision: revision };
    for (let i = 0; i < written.length; i += SHARDS_A_COMMIT) {
      const notes = written.slice(i, i + SHARDS_A_COMMIT).map((shard, j) => note(`${kept.length + i + j}`, shard));
      await store.commit(scope, notes, commitOptions);
    }
    // A commit takes 100 operations. Shards that are not dropped here are never read, because the head does not name them.
    const dropped = this.#tags.slice(tags.length).map((_, i) => note(`${tags.length + i}`, undefined));
    await store.commit(scope, [note(HEAD, { format: FORMAT, revision, tags }), ...dropped.slice(0, 99)], commitOptions);
    return new IndexShards(revision, tags, written.at(-1), isRenewed ? all.length : count);
  }
}

function note(key: string, value: Head | Shard | undefined): MemoryOperation {
  return { op: 'note', kind: INDEX_KIND, key, value: value as Json | undefined };
}

function cut(entries: readonly IndexEntry[]): Shard[] {
  return cutByBytes(entries, MAX_SHARD_BYTES).map((part) => ({ tag: randomUUID(), entries: part }));
}
