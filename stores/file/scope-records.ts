import { dataLoss } from '../../src/errors.ts';
import type { ScopeChange, ScopeId, ScopeRecord } from '../../src/store/contract.ts';
import { describeScope, runScopeChange, scopeKey } from '../../src/store/scopes.ts';
import { closeQuietly, READ_APPEND } from './file-system.ts';
import { MutatorFailure } from './io-error.ts';
import { hashOf, snapshotName } from './names.ts';
import { readWhole } from './read-file.ts';
import { readHeader } from './read-version.ts';
import { formatScope, parseScope, scopeNameOf, type SaveRef, type ScopeFile } from './scope-file.ts';
import { attempt } from './store-folder.ts';
import type { TenantFolder } from './tenant-folder.ts';

/** What a record becomes by a save. */
export interface ScopeDraft {
  readonly key: string;
  /** What its file is called. */
  readonly name: string;
  readonly next: ScopeRecord;
}

/** How often a draft that can't be read is looked at: one that was just settled is not there any more the next time. */
const MOST_LOOKS = 5;

/**
 * The records of a tenant.
 *
 * A save writes what a record becomes into a draft beside the record's file, which names the save by a mark that no other save has. The
 * save puts the mark into the snapshot's file, so that moving this into its place, by which the save counts, makes all its drafts count at
 * the same moment: who finds a draft looks for the mark. Then the draft is settled: it is moved into the record's place, or, when its save
 * does not count and never will, removed.
 *
 * - A draft is made, and settled, under the record's lock. The holder settles the draft it finds before it makes another.
 * - A snapshot's file loses its mark only after the drafts of that save were settled: the session's log names them, and who locks the
 *   session next settles them before anything else.
 * - Locks are taken in one order: the session's first, then those of records, by their keys. So nobody waits in a circle.
 *
 * Who reads takes no lock. It looks for a draft first, then at the snapshot, then at the record: whatever is settled in between is found.
 */
export class ScopeRecords {
  readonly #folder: TenantFolder;

  constructor(folder: TenantFolder) {
    this.#folder = folder;
  }

  /**
   * The record as it is; empty when there is none.
   *
   * @throws `DATA_LOSS` when its file, or its draft's, is damaged.
   */
  async read(id: ScopeId): Promise<ScopeRecord> {
    const name = scopeNameOf(scopeKey(id));
    if (!this.#folder.hasScopes()) return {};
    let draft = await this.#draft(name, id);
    for (let look = 1; draft === 'damaged' && look < MOST_LOOKS; look++) draft = await this.#draft(name, id);
    if (draft === 'damaged') throw unreadable(id);
    return draft && (await this.#isMade(draft.save)) ? draft.record : this.#settled(name, id);
  }

  /** Removes the record, whatever is in its place. Answers whether there was one. */
  async remove(id: ScopeId): Promise<boolean> {
    const { store } = this.#folder;
    const key = scopeKey(id);
    if (!this.#folder.hasScopes()) return false;
    return this.#locked([[key, id]], async () => {
      const name = scopeNameOf(key);
      await this.settleHeld(name);
      const paths = [this.#folder.scopeRecord(name), this.#folder.scopeDraft(name)];
      const isThere = paths.some((path) => store.fs.stat(path) !== undefined);
      for (const path of paths) store.remove(path);
      await store.flushFolder(this.#folder.scopes);
      return isThere;
    });
  }

  /**
   * Runs the changes, and then `commit` with those that change something, while nobody else can change these records. For the holder of
   * the session's lock.
   */
  async changing<T>(
    changes: ReadonlyMap<string, ScopeChange>,
    commit: (drafts: readonly ScopeDraft[]) => Promise<T>,
  ): Promise<T> {
    const ids = [...changes].map(([key, { id }]) => [key, id] as const);
    return this.#locked(
      ids.toSorted(([a], [b]) => (a < b ? -1 : 1)),
      async () => {
        const drafts: ScopeDraft[] = [];
        for (const [key, change] of changes) {
          const name = scopeNameOf(key);
          const next = run(change, await this.#current(name, change.id));
          if (next) drafts.push({ key, name, next });
        }
        return commit(drafts);
      },
    );
  }

  /** Writes drafts, which do not count before the snapshot's file has the mark. Only inside {@link changing}. */
  async stage(drafts: readonly ScopeDraft[], save: SaveRef): Promise<void> {
    if (drafts.length === 0) return;
    const { store } = this.#folder;
    const changed = new Set([this.#folder.scopes, ...store.makeFolder(this.#folder.scopes)]);
    for (const { key, name, next } of drafts) {
      await store.replace(this.#folder.scopeDraft(name), formatScope(key, next, save));
    }
    for (const path of changed) await store.flushFolder(path);
  }

  /** Takes back the drafts of a save that was not made. */
  withdraw(drafts: readonly ScopeDraft[]): void {
    for (const { name } of drafts) attempt(() => this.#folder.store.remove(this.#folder.scopeDraft(name)));
  }

  /** Settles drafts that a save has left. For the holder of the session's lock, or of none. */
  async settle(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await this.#folder.store.locks.run(this.#lockName(name), 'A record', () => this.settleHeld(name));
    }
  }

  /** Settles all drafts that there are. */
  async sweep(): Promise<void> {
    if (!this.#folder.hasScopes()) return;
    const { fs } = this.#folder.store;
    const names = fs.readdir(this.#folder.scopes).map((name) => /^([0-9a-f]{64})\.draft$/.exec(name)?.[1]);
    await this.settle(names.filter((name) => name !== undefined));
  }

  /** For the holder of the record's lock. What can't be read stays: who asks for the record is told. */
  async settleHeld(name: string): Promise<void> {
    const { store } = this.#folder;
    if (!this.#folder.hasScopes()) return;
    const [from, to] = [this.#folder.scopeDraft(name), this.#folder.scopeRecord(name)];
    const draft = await this.#draft(name);
    if (draft === 'damaged') return;
    if (draft && (await this.#isMade(draft.save))) store.fs.rename(from, to);
    else if (draft) store.remove(from);
    // Also when somebody else has moved it: perhaps that did not get as far as this.
    await store.flushFolder(this.#folder.scopes);
    const settled = await this.#load(to, name);
    if (typeof settled !== 'object') return;
    if (Object.keys(settled.record).length === 0) store.remove(to);
    // Nothing of the session may outlive it here, not even an id.
    else if (settled.cutAt !== undefined) this.#cut(to, settled.cutAt);
  }

  /** For the holder of the record's lock. */
  async #current(name: string, id: ScopeId): Promise<ScopeRecord> {
    if (!this.#folder.hasScopes()) return {};
    const draft = await this.#draft(name, id);
    if (draft === 'damaged') throw unreadable(id);
    if (draft) await this.settleHeld(name);
    return this.#settled(name, id);
  }

  async #settled(name: string, id: ScopeId): Promise<ScopeRecord> {
    const found = await this.#load(this.#folder.scopeRecord(name), name, id);
    if (found === 'damaged') throw unreadable(id);
    return found?.record ?? {};
  }

  /** The draft of a record; `damaged`: what is there is none, or was settled just now. */
  async #draft(name: string, id?: ScopeId): Promise<(ScopeFile & { save: SaveRef }) | 'damaged' | undefined> {
    const path = this.#folder.scopeDraft(name);
    // Nearly always there is none, and a failed call costs much more than a look.
    const draft = this.#folder.store.fs.stat(path) && (await this.#load(path, name, id));
    if (draft === undefined || draft === 'damaged') return draft;
    const { save } = draft;
    return save ? { ...draft, save } : 'damaged';
  }

  async #load(path: string, name: string, id?: ScopeId): Promise<ScopeFile | 'damaged' | undefined> {
    const content = await readWhole(this.#folder.store.fs, path);
    if (content === 'missing') return undefined;
    const what = id ? `The state of ${describeScope(id)}` : 'A record of a user or an app';
    return content === 'no-file' ? 'damaged' : (parseScope(content, name, what) ?? 'damaged');
  }

  /** Whether the save counts. */
  async #isMade({ snapshotId, mark }: SaveRef): Promise<boolean> {
    const header = await readHeader(this.#folder, snapshotName(snapshotId));
    return typeof header !== 'string' && header.mark === mark;
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

  async #locked<T>(ids: readonly (readonly [key: string, id: ScopeId])[], task: () => Promise<T>): Promise<T> {
    const [first, ...rest] = ids;
    if (!first) return task();
    const [key, id] = first;
    const { locks } = this.#folder.store;
    const name = this.#lockName(scopeNameOf(key));
    return locks.run(name, `The state of ${describeScope(id)}`, () => this.#locked(rest, task));
  }

  #lockName(name: string): string {
    return hashOf(this.#folder.tenant, name, 'scope');
  }
}

function run(change: ScopeChange, current: ScopeRecord): ScopeRecord | undefined {
  try {
    return runScopeChange(change, current);
  } catch (error) {
    throw new MutatorFailure(error);
  }
}

function unreadable(id: ScopeId): Error {
  return dataLoss(
    `The state of ${describeScope(id)} can't be read: its file is damaged. Restore it from a backup, or remove it with deleteScope.`,
  );
}
