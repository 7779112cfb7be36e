import { join, relative } from 'node:path';
import { GenkitError } from 'genkit';
import type { Found, StoreCheck } from '../../../src/store/parts/store-check.ts';
import { isRefused } from '../disk/io-error.ts';
import { Pace } from '../disk/pace.ts';
import { snapshotName } from '../format/names.ts';
import { readHead } from '../read/read-head.ts';
import { readSnapshot } from '../read/read-snapshot.ts';
import { isShard } from '../read/shards.ts';
import { reconcile, removeEmptySession } from '../remove/remove-snapshots.ts';
import { findUnneeded, removeUnneeded } from '../remove/unneeded.ts';
import { ScopeRecords } from '../records/scope-records.ts';
import { removeIfEmpty, sessionOfRecords, SessionRecords } from '../records/session-records.ts';
import type { FileSession } from '../file-session.ts';
import type { TenantSessions } from '../tenant-sessions.ts';

/** Reads everything of a tenant once, and reports damage, orphans and expired runs. */
export class TenantCheck {
  readonly #tenant: TenantSessions;
  readonly #check: StoreCheck;
  readonly #pace = new Pace();
  /** Names of the files of snapshots in logs. */
  readonly #known = new Set<string>();
  /** Sessions whose other files have not been checked yet. */
  readonly #sessionIds: string[] = [];
  /** Sessions with snapshots that can't be read, or that the log has lost: any file of such a session may be needed. */
  readonly #incomplete = new Set<string>();
  /** A snapshot file can't be read. It may belong to any session and need any of its files. */
  #hasUnknownFiles = false;

  /** @param tenant Has empty caches, so that everything is read from the disk. */
  constructor(tenant: TenantSessions, check: StoreCheck) {
    this.#tenant = tenant;
    this.#check = check;
  }

  async run(): Promise<void> {
    if (!(await this.#tenant.open())) return;
    for (const name of await this.#tenant.sessionNames()) await this.#checkFolder(name);
    await this.#checkFiles();
    for (const sessionId of this.#sessionIds) {
      const session = this.#tenant.session(sessionId);
      await this.#checkUnneeded(session).catch((error: unknown) => this.#reportError(error, { sessionId }));
    }
    await this.#checkRecords();
    await this.#checkScopes();
  }

  async #checkFolder(name: string): Promise<void> {
    const { store, sessions } = this.#tenant.folder;
    const path = join(sessions, name);
    try {
      const session = await this.#tenant.sessionOfName(name);
      if (session) return await this.#checkSession(session);
      if (!store.hasFolder(path)) return;
      const problem = 'a folder of a session that no log and no snapshot names';
      await this.#reportOrphan(path, { problem }, () => store.removeFolderQuietly(path));
    } catch (error) {
      this.#reportError(error, { place: this.#placeOf(path) });
    }
  }

  #reportError(error: unknown, found: Omit<Found, 'kind' | 'problem'>): void {
    if (error instanceof GenkitError || !isRefused(error)) return this.#check.reportError(error, found);
    const advice = 'Give the process access to it.';
    this.#check.report({ ...found, kind: 'unreadable', problem: 'the process may not open it', advice });
  }

  async #checkSession(session: FileSession): Promise<void> {
    const { id: sessionId, path } = session;
    await session.refresh();
    if (session.index.tree.size === 0) return this.#checkEmpty(session);
    this.#check.count('sessions');
    if (session.isRebuilt) {
      this.#check.report({
        kind: 'damaged',
        sessionId,
        place: this.#placeOf(path),
        problem: 'the log of the session is missing or damaged; the session is read from its snapshots',
        advice: 'No data is lost: the next save to the session, or prune, writes the log again.',
      });
    }
    for (const { snapshotId } of session.index.tree.nodes()) {
      await this.#pace.rest();
      this.#known.add(snapshotName(snapshotId));
      this.#check.count('snapshots');
      const place = this.#placeOf(this.#tenant.folder.snapshot(snapshotId));
      try {
        const loaded = await readSnapshot(this.#tenant, session, snapshotId);
        if (loaded) this.#check.reportRun(loaded.head.meta, { sessionId, place });
      } catch (error) {
        this.#incomplete.add(sessionId);
        this.#reportError(error, { sessionId, snapshotId, place });
      }
    }
    this.#sessionIds.push(sessionId);
  }

  /** Checks a session without snapshots: the rest of a failed first save, or of an interrupted deletion. */
  async #checkEmpty(session: FileSession): Promise<void> {
    const { id: sessionId, path } = session;
    if (!this.#tenant.folder.store.fs.stat(path)) return;
    const problem = 'the rest of an interrupted save or deletion, in a session without snapshots';
    await this.#reportOrphan(path, { sessionId, problem }, () => removeEmptySession(session));
  }

  async #checkUnneeded(session: FileSession): Promise<void> {
    const { id: sessionId, path } = session;
    if (this.#incomplete.has(sessionId)) return;
    await session.refresh();
    for (const name of await findUnneeded(session)) {
      const problem = isShard(name)
        ? 'a shard that no state needs'
        : 'the state of a removed snapshot that no other snapshot needs';
      await this.#reportOrphan(join(path, name), { sessionId, problem }, async () => {
        if (!this.#hasUnknownFiles) await removeUnneeded(session, name);
      });
    }
  }

  /** Checks files in the places of snapshots that no log has. */
  async #checkFiles(): Promise<void> {
    const { folder } = this.#tenant;
    for (const name of folder.store.namesIn(folder.path)) {
      if (!name.endsWith('.json') || this.#known.has(name)) continue;
      await this.#pace.rest();
      const place = this.#placeOf(join(folder.path, name));
      try {
        await this.#checkFile(join(folder.path, name), name, place);
      } catch (error) {
        this.#hasUnknownFiles = true;
        this.#reportError(error, { place });
      }
    }
  }

  async #checkFile(path: string, name: string, place: string): Promise<void> {
    const { folder } = this.#tenant;
    const found = readHead(folder.store.fs, path);
    if (found === 'missing') return;
    if (typeof found === 'string' || snapshotName(found.head.meta.snapshotId) !== name) {
      this.#hasUnknownFiles = true;
      const problem = 'a file in the place of a snapshot that is damaged, or that another program wrote';
      const advice = 'Restore it from a backup, or remove the file.';
      return this.#check.report({ kind: 'damaged', place, problem, advice });
    }
    const { session: sessionId, meta } = found.head;
    const { snapshotId } = meta;
    if (sessionId === null) {
      this.#check.count('snapshots');
      try {
        const loaded = await readSnapshot(this.#tenant, 'no-session', snapshotId);
        if (loaded) this.#check.reportRun(loaded.head.meta, { place });
      } catch (error) {
        this.#reportError(error, { snapshotId, place });
      }
      return;
    }
    const session = this.#tenant.session(sessionId);
    await session.refresh();
    if (session.index.tree.has(snapshotId)) return;
    if (session.hasLost(found.head)) {
      this.#incomplete.add(sessionId);
      const problem = 'the log of its session has lost the snapshot; it can be read only by its id';
      const advice = 'prune writes the log again from the snapshots.';
      return this.#check.report({ kind: 'damaged', sessionId, snapshotId, place, problem, advice });
    }
    const problem = 'the file of a snapshot that was removed, or of a deleted session';
    await this.#reportOrphan(path, { sessionId, snapshotId, problem }, () => reconcile(session, snapshotId));
  }

  async #checkRecords(): Promise<void> {
    const { store, allRecords, sessions } = this.#tenant.folder;
    if (!this.#tenant.folder.hasRecords()) return;
    for (const name of store.namesIn(allRecords)) {
      await this.#pace.rest();
      const folder = join(allRecords, name);
      const place = this.#placeOf(folder);
      try {
        if (store.hasFolder(folder) && store.namesIn(folder).length === 0) {
          const problem = 'an empty folder of session records, after a failed write';
          await this.#reportOrphan(folder, { problem }, () => removeIfEmpty(store, folder));
          continue;
        }
        const sessionId = await sessionOfRecords(this.#tenant, folder);
        if (sessionId === undefined) {
          this.#check.report({ kind: 'damaged', place, problem: 'session records, none of which can be read' });
          continue;
        }
        const records = new SessionRecords(this.#tenant.session(sessionId));
        const { count, damaged } = await records.check();
        this.#check.count('records', count);
        for (const file of damaged) {
          const problem = 'a session record whose file is damaged';
          const advice = 'Write the record again without expectedRevision, or remove it.';
          this.#check.report({ kind: 'damaged', sessionId, place: join(place, file), problem, advice });
        }
        if (store.fs.stat(join(sessions, name))) continue;
        const problem = 'records of a session that has no snapshot';
        await this.#reportOrphan(folder, { sessionId, problem }, () =>
          records.removeOrphans((writtenMs) => this.#check.mayRepair(writtenMs)),
        );
      } catch (error) {
        this.#reportError(error, { place });
      }
    }
  }

  async #checkScopes(): Promise<void> {
    const { folder } = this.#tenant;
    if (!folder.hasScopes()) return;
    for (const name of folder.store.namesIn(folder.scopes)) {
      const [, hash, ending] = /^([0-9a-f]{64})\.(json|draft)$/.exec(name) ?? [];
      if (hash === undefined) continue;
      await this.#pace.rest();
      const path = join(folder.scopes, name);
      try {
        await (ending === 'draft' ? this.#checkDraft(hash, path) : this.#checkScope(hash, path));
      } catch (error) {
        this.#reportError(error, { place: this.#placeOf(path) });
      }
    }
  }

  async #checkDraft(hash: string, path: string): Promise<void> {
    const { folder } = this.#tenant;
    const records = new ScopeRecords(folder);
    if ((await records.draft(hash)) === 'damaged') {
      const problem = 'a damaged draft of a record of a user or an app';
      return this.#check.report({ kind: 'damaged', place: this.#placeOf(path), problem });
    }
    const problem = 'a draft of a record of a user or an app, after an interrupted save';
    await this.#reportOrphan(path, { problem }, () => records.sweep());
  }

  async #checkScope(hash: string, path: string): Promise<void> {
    const { folder } = this.#tenant;
    const records = new ScopeRecords(folder);
    this.#check.count('scopes');
    const key = await records.keyOf(hash);
    if (key !== undefined) await records.read(key);
    else if (folder.store.fs.stat(path)) {
      const problem = 'a record of a user or an app whose file is damaged';
      this.#check.report({ kind: 'damaged', place: this.#placeOf(path), problem });
    }
  }

  /** Reports a file or a folder that nothing needs. With `repair`, and if it is older than the grace, `remove` removes it first. */
  async #reportOrphan(path: string, found: Omit<Found, 'kind' | 'place'>, remove: () => unknown): Promise<void> {
    const isOld = this.#check.mayRepair(this.#writtenAt(path));
    if (isOld) await remove();
    const isRepaired = isOld && !this.#tenant.folder.store.fs.stat(path);
    this.#check.report({ ...found, kind: 'orphan', place: this.#placeOf(path) }, isRepaired);
  }

  #placeOf(path: string): string {
    return relative(this.#tenant.folder.store.path, path);
  }

  /** The time of the last write of a file, in ms; now if it does not exist. */
  #writtenAt(path: string): number {
    return this.#tenant.folder.store.fs.stat(path)?.mtimeMs ?? Date.now();
  }
}
