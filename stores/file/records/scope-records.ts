import { relative } from 'node:path';
import { dataLoss } from '../../../src/errors.ts';
import type { Page, ScopeChange, ScopeId, ScopeRecord, Unreadable } from '../../../src/store/contract.ts';
import { pageOf, type PageRequest, type Position } from '../../../src/store/list/page.ts';
import { describeScope, runScopeChange, scopeOfKey } from '../../../src/store/records/record-scopes.ts';
import { attempt, closeQuietly, READ_APPEND } from '../disk/file-system.ts';
import { CallerFailure, unlessRefused } from '../disk/io-error.ts';
import { Pace } from '../disk/pace.ts';
import { readFrom } from '../disk/read-file.ts';
import { hashOf } from '../format/names.ts';
import {
  formatRecord,
  isEmptyRecord,
  openRecord,
  parseRecord,
  recordNameOf,
  type RecordFile,
  type SaveRef,
} from '../format/scope-file.ts';
import type { SnapshotHead } from '../format/snapshot-file.ts';
import { readOwnHead } from '../read/read-head.ts';
import type { TenantFolder } from '../tenant-folder.ts';

/** The new content of a record in a save. */
export interface RecordDraft {
  readonly key: string;
  /** The name of its file, without extension. */
  readonly name: string;
  readonly next: ScopeRecord;
}

/** How often a draft that can't be read is read again: it may just be being settled. */
const MOST_READS = 5;

/**
 * The records of users and apps of a tenant, by their `scopeKey`s. Their files are named by hashes of these.
 *
 * A save writes the new content of a record into a draft, a file next to the record's. The draft names the save by its `commit`, which is
 * also in the head of the snapshot's file. Moving the snapshot's file into its place commits the save, and all its drafts at the same
 * moment: a reader that finds a draft looks for the commit in the snapshot. Then the draft is settled: moved into the record's place, or
 * removed if its save was not made.
 *
 * - A draft is made and settled under the record's lock. The holder settles an existing draft before it makes another.
 * - A snapshot's file is written again, or removed, only after the drafts that its head names were settled.
 * - Locks are taken in one order, so that writers never deadlock: first the session's, then those of records, sorted by their keys.
 *
 * A reader takes no lock. It reads the draft, then the snapshot, then the record, so it also finds a draft that is settled in between.
 */
export class ScopeRecords {
  readonly #folder: TenantFolder;

  constructor(folder: TenantFolder) {
    this.#folder = folder;
  }

  /**
   * The current record; empty if it does not exist.
   *
   * @throws `DATA_LOSS` when its file, or its draft's, is damaged.
   */
  async read(key: string): Promise<ScopeRecord> {
    if (!this.#folder.hasScopes()) return {};
    const name = recordNameOf(key);
    let draft = await this.draft(name, key);
    for (let reads = 1; draft === 'damaged' && reads < MOST_READS; reads++) draft = await this.draft(name, key);
    if (draft === 'damaged') throw unreadable(key);
    return draft && this.#isMade(draft.save) ? this.#open(draft) : this.#settled(key);
  }

  /** The names of the records that are not empty. */
  async list({ limit, after: [after] = [''] }: PageRequest<Position<['string']>>): Promise<Page<ScopeId>> {
    const names = this.#folder.hasScopes() ? this.#folder.store.namesIn(this.#folder.scopes) : [];
    const records = new Set(names.map((name) => /^([0-9a-f]{64})\.(?:json|draft)$/.exec(name)?.[1] ?? ''));
    const found: { name: string; id: ScopeId }[] = [];
    const unreadable: Unreadable[] = [];
    const pace = new Pace();
    for (const name of [...records].toSorted()) {
      if (name <= after || found.length > limit) continue;
      await pace.rest();
      const key = await unlessRefused(this.keyOf(name));
      if (key !== undefined) found.push({ name, id: scopeOfKey(key) });
      else if (this.#folder.store.fs.stat(this.#folder.record(name))) {
        unreadable.push({ place: relative(this.#folder.store.path, this.#folder.record(name)) });
      }
    }
    const page = pageOf(found, limit, ({ name, id }) => ({ position: [name], item: id }));
    return unreadable.length > 0 ? { ...page, unreadable } : page;
  }

  /** Removes the record, even a damaged one. Returns whether it existed. */
  async remove(key: string): Promise<boolean> {
    const { store } = this.#folder;
    if (!this.#folder.hasScopes()) return false;
    const name = recordNameOf(key);
    return this.#withLocks([key], async () => {
      await this.#settle(name);
      const paths = [this.#folder.record(name), this.#folder.draft(name)];
      const isThere = paths.some((path) => store.fs.stat(path) !== undefined);
      // The key first: after an interruption the record is still listed, so the deletion can be repeated.
      await this.#folder.sealer('scope', key).forget();
      for (const path of paths) store.remove(path);
      await store.flushFolder(this.#folder.scopes);
      return isThere;
    });
  }

  /**
   * Runs the changes, and then `commit` with the resulting drafts, under the locks of these records. Call it under the session's lock.
   */
  async changing<T>(
    changes: ReadonlyMap<string, ScopeChange>,
    commit: (drafts: readonly RecordDraft[]) => Promise<T>,
  ): Promise<T> {
    return this.#withLocks([...changes.keys()].toSorted(), async () => {
      const drafts: RecordDraft[] = [];
      for (const [key, change] of changes) {
        const next = run(change, await this.#current(key));
        if (next) drafts.push({ key, name: recordNameOf(key), next });
      }
      return commit(drafts);
    });
  }

  /** Writes drafts, which are not valid before the snapshot's file has the commit. Only inside {@link changing}. */
  async stage(drafts: readonly RecordDraft[], save: SaveRef): Promise<void> {
    if (drafts.length === 0) return;
    const { store } = this.#folder;
    const changed = new Set([this.#folder.scopes, ...store.makeFolder(this.#folder.scopes)]);
    for (const { key, name, next } of drafts) {
      const cipher = await this.#folder.sealer('scope', key, () => this.read(key)).cipher();
      await store.replace(this.#folder.draft(name), await formatRecord(key, next, { save, cipher }));
    }
    for (const path of changed) await store.flushFolder(path);
  }

  /** Removes the drafts of a save that was not made. Only inside {@link changing}. */
  removeDrafts(drafts: readonly RecordDraft[]): void {
    for (const { name } of drafts) attempt(() => this.#folder.store.remove(this.#folder.draft(name)));
  }

  /** Settles the drafts of a save that was made. Only inside {@link changing}. */
  async settleDrafts(drafts: readonly RecordDraft[]): Promise<void> {
    for (const { name } of drafts) await this.#settle(name);
  }

  /** Settles the drafts that a snapshot's head names. For the holder of the session's lock. */
  async settle({ records }: SnapshotHead): Promise<void> {
    if (records) await this.#settleAll(records.names);
  }

  /** Settles all drafts. */
  async sweep(): Promise<void> {
    if (!this.#folder.hasScopes()) return;
    const names = this.#folder.store
      .namesIn(this.#folder.scopes)
      .map((name) => /^([0-9a-f]{64})\.draft$/.exec(name)?.[1]);
    for (const name of names) if (name !== undefined) await unlessRefused(this.#settleAll([name]));
  }

  async #settleAll(names: readonly string[]): Promise<void> {
    const { store } = this.#folder;
    for (const name of names) {
      if (this.#folder.hasScopes() && store.fs.stat(this.#folder.draft(name))) {
        await store.locks.run(this.#lockName(name), 'A record', () => this.#settle(name));
      }
    }
  }

  /** Call it under the record's lock. A draft that can't be read stays, and reading the record fails. */
  async #settle(name: string): Promise<void> {
    const { store } = this.#folder;
    if (!this.#folder.hasScopes()) return;
    const [from, to] = [this.#folder.draft(name), this.#folder.record(name)];
    const draft = await this.draft(name);
    if (draft === 'damaged') return;
    if (draft && this.#isMade(draft.save)) store.fs.rename(from, to);
    else if (draft) store.remove(from);
    // Even if another process has moved the draft: it may have died before its flush.
    await store.flushFolder(this.#folder.scopes);
    const settled = await this.#load(to, name);
    if (typeof settled !== 'object') return;
    if (isEmptyRecord(settled)) store.remove(to);
    // Cuts off the name of the save: the record must not keep an id of a session that is deleted later.
    else if (settled.cutAt !== undefined) this.#cut(to, settled.cutAt);
  }

  /** For the holder of the record's lock. */
  async #current(key: string): Promise<ScopeRecord> {
    if (!this.#folder.hasScopes()) return {};
    const name = recordNameOf(key);
    const draft = await this.draft(name, key);
    if (draft === 'damaged') throw unreadable(key);
    if (draft) await this.#settle(name);
    return this.#settled(key);
  }

  /** The record without its draft. */
  async #settled(key: string): Promise<ScopeRecord> {
    const name = recordNameOf(key);
    const found = await this.#load(this.#folder.record(name), name, key);
    if (found === 'damaged') throw unreadable(key);
    return found ? this.#open(found) : {};
  }

  #open(file: RecordFile): Promise<ScopeRecord> {
    return openRecord(file, this.#folder.sealer('scope', file.key), () => unreadable(file.key));
  }

  /** The key of a record by the name of its file; `undefined` for an empty or a damaged record. */
  async keyOf(name: string): Promise<string | undefined> {
    const draft = await this.draft(name);
    const found =
      typeof draft === 'object' && this.#isMade(draft.save) ? draft : await this.#load(this.#folder.record(name), name);
    return typeof found === 'object' && !isEmptyRecord(found) ? found.key : undefined;
  }

  /** The draft of a record; `damaged` if the file can't be read as a draft, or was just settled. */
  async draft(name: string, key?: string): Promise<(RecordFile & { save: SaveRef }) | 'damaged' | undefined> {
    const draft = await this.#load(this.#folder.draft(name), name, key);
    if (typeof draft !== 'object') return draft;
    const { save } = draft;
    return save ? { ...draft, save } : 'damaged';
  }

  async #load(path: string, name: string, key?: string): Promise<RecordFile | 'damaged' | undefined> {
    const content = await readFrom(this.#folder.store.fs, path);
    if (content === 'missing') return undefined;
    const what = key ? `The state of ${describeScope(key)}` : 'A record of a user or an app';
    return content === 'no-file' ? 'damaged' : (parseRecord(content.bytes, name, what) ?? 'damaged');
  }

  /** Whether the save was committed. */
  #isMade({ snapshotId, commit }: SaveRef): boolean {
    return readOwnHead(this.#folder.store.fs, this.#folder.snapshot(snapshotId))?.records?.commit === commit;
  }

  #cut(path: string, length: number): void {
    const { fs } = this.#folder.store;
    const fd = fs.open(path, READ_APPEND);
    try {
      fs.truncate(fd, length);
    } finally {
      closeQuietly(fs, fd);
    }
  }

  async #withLocks<T>([key, ...rest]: readonly string[], task: () => Promise<T>): Promise<T> {
    if (key === undefined) return task();
    const { locks } = this.#folder.store;
    const name = this.#lockName(recordNameOf(key));
    return locks.run(name, `The state of ${describeScope(key)}`, () => this.#withLocks(rest, task));
  }

  #lockName(name: string): string {
    return hashOf(this.#folder.tenant, name, 'record');
  }
}

function run(change: ScopeChange, current: ScopeRecord): ScopeRecord | undefined {
  try {
    return runScopeChange(change, current);
  } catch (error) {
    throw new CallerFailure(error);
  }
}

function unreadable(key: string): Error {
  return dataLoss(
    `The state of ${describeScope(key)} can't be read: its file is damaged. Restore it from a backup, or remove it with deleteScope.`,
  );
}
