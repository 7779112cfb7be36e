import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { dataLoss, quote } from '../../../src/errors.ts';
import type { SessionRecord } from '../../../src/store/contract.ts';
import {
  assertMayWrite,
  byKindAndKey,
  ORPHAN_RECORD_MS,
  type RecordRead,
  type RecordWrite,
} from '../../../src/store/records/session-records.ts';
import { attempt } from '../disk/file-system.ts';
import { outcomeUnknown, unlessRefused } from '../disk/io-error.ts';
import { Pace } from '../disk/pace.ts';
import type { StoreFolder } from '../disk/store-folder.ts';
import { readFrom } from '../disk/read-file.ts';
import {
  formatSessionRecord,
  openSessionRecord,
  parseSessionRecord,
  recordName,
  recordPrefix,
  type SessionRecordFile,
} from '../format/session-record-file.ts';
import { newNonce, type FileSession } from '../file-session.ts';
import type { TenantSessions } from '../tenant-sessions.ts';

/**
 * The records of one session: a file for each, in a separate folder that saves don't touch. They are written under the session's lock,
 * each by a rename. Reading takes no lock.
 */
export class SessionRecords {
  readonly #session: FileSession;
  readonly #path: string;

  constructor(session: FileSession) {
    this.#session = session;
    this.#path = session.tenant.folder.records(session.id);
  }

  /**
   * Whether the session has records.
   *
   * @throws `FAILED_PRECONDITION` when something else is in the place of their folder.
   */
  exist(): boolean {
    const { folder } = this.#session.tenant;
    return folder.hasRecords() && folder.store.hasFolder(this.#path);
  }

  /** @throws `DATA_LOSS` when the file of one of the records is damaged. */
  async read({ kind, keys }: RecordRead): Promise<SessionRecord[]> {
    if (!this.exist()) return [];
    await this.#session.refresh();
    if (this.#session.isBeingDeleted) return [];
    const names = keys?.map((key) => recordName(kind!, key)) ?? this.#names(kind);
    const found: SessionRecord[] = [];
    for (const name of names) {
      const record = await this.#load(name);
      if (record === 'damaged') throw this.#unreadable();
      if (record) found.push(await this.#open(record));
    }
    return found.toSorted(byKindAndKey);
  }

  /** @returns The new revision; `null`: the record was removed. */
  write(request: RecordWrite): Promise<string | null> {
    const { sessionId, kind, key, value } = request;
    const { store, sessions } = this.#session.tenant.folder;
    return this.#session.withLock(async (lock) => {
      const name = recordName(kind, key);
      const current = this.exist() ? await this.#load(name) : undefined;
      const isDamaged = current === 'damaged';
      if (isDamaged && request.expectedRevision !== undefined) throw this.#unreadable();
      const { tree } = this.#session.index;
      assertMayWrite(request, isDamaged ? undefined : current?.revision, () => tree.has(request.ifSnapshot!));
      if (value === undefined) {
        lock.assertHeld();
        if (current) await this.#remove([name]);
        return null;
      }
      const revision = newNonce();
      // A tenant that has data but no folder of sessions counts as `lost`.
      const changed = new Set([this.#path, ...store.makeFolder(this.#path), ...store.makeFolder(sessions)]);
      const cipher = await this.#session.sealer.cipher();
      const bytes = await formatSessionRecord(sessionId, { kind, key, revision, value }, cipher);
      await store.replace(join(this.#path, name), bytes, () => lock.assertHeld());
      try {
        for (const path of changed) await store.flushFolder(path);
      } catch (error) {
        throw outcomeUnknown(`Writing a record of session ${quote(sessionId)}`, error);
      }
      return revision;
    });
  }

  /** The number of records, readable or not. */
  count(): number {
    return this.exist() ? this.#names().length : 0;
  }

  /** For the holder of the session's lock. */
  async removeAll(): Promise<void> {
    if (this.exist()) await this.#remove(this.#names());
  }

  /** Reads all records. Returns their number, and the files of damaged ones. */
  async check(): Promise<{ readonly count: number; readonly damaged: readonly string[] }> {
    const names = this.exist() ? this.#names() : [];
    const damaged: string[] = [];
    for (const name of names) {
      const record = await this.#load(name);
      try {
        if (record === 'damaged') damaged.push(name);
        else if (record) await this.#open(record);
      } catch (error) {
        if (!(error instanceof GenkitError) || error.status !== 'DATA_LOSS') throw error;
        damaged.push(name);
      }
    }
    return { count: names.length, damaged };
  }

  /**
   * Removes records that were written long ago, if the session does not exist.
   *
   * @param isLongAgo Whether a time of a write, in ms, is long ago.
   */
  async removeOrphans(
    isLongAgo = (writtenMs: number): boolean => Date.now() - writtenMs > ORPHAN_RECORD_MS,
  ): Promise<void> {
    await this.#session.withLock(async () => {
      const { store } = this.#session.tenant.folder;
      if (this.#session.incarnation !== '' || !this.exist()) return;
      const isOld = (name: string): boolean => {
        const writtenAt = store.fs.stat(join(this.#path, name))?.mtimeMs;
        return writtenAt !== undefined && isLongAgo(writtenAt);
      };
      await this.#remove(this.#names().filter(isOld));
    });
  }

  /** The names of the files, of all kinds or of one. */
  #names(kind?: string): string[] {
    const prefix = kind === undefined ? '' : recordPrefix(kind);
    return this.#session.tenant.folder.store.namesIn(this.#path).filter((name) => name.startsWith(prefix));
  }

  async #load(name: string): Promise<SessionRecordFile | 'damaged' | undefined> {
    const content = await readFrom(this.#session.tenant.folder.store.fs, join(this.#path, name));
    if (content === 'missing') return undefined;
    const record = content === 'no-file' ? undefined : parseSessionRecord(content.bytes, name);
    return record?.sessionId === this.#session.id ? record : 'damaged';
  }

  #open(record: SessionRecordFile): Promise<SessionRecord> {
    return openSessionRecord(record, this.#session.sealer, () => this.#unreadable());
  }

  /** Removes files, and the folder if it is then empty. */
  async #remove(names: readonly string[]): Promise<void> {
    const { store, allRecords } = this.#session.tenant.folder;
    for (const name of names) store.remove(join(this.#path, name));
    const isEmpty = this.#names().length === 0;
    if (isEmpty) store.fs.rmdir(this.#path);
    await store.flushFolder(isEmpty ? allRecords : this.#path);
  }

  #unreadable(): Error {
    return dataLoss(
      `A record of session ${quote(this.#session.id)} can't be read: its file is damaged. ` +
        'Write the record again without expectedRevision, or remove it.',
    );
  }
}

/** Removes the empty folder of a failed write. Call it when no write can be running. */
export function removeIfEmpty({ fs }: StoreFolder, path: string): void {
  if (fs.stat(path)?.isDirectory() && fs.readdir(path).length === 0) attempt(() => fs.rmdir(path));
}

/** Removes the records of sessions that were never begun. */
export async function removeOrphanRecords(tenant: TenantSessions): Promise<void> {
  const { store, allRecords } = tenant.folder;
  if (!tenant.folder.hasRecords()) return;
  const pace = new Pace();
  for (const folder of store.namesIn(allRecords)) {
    await pace.rest();
    const writtenAt = store.fs.stat(join(allRecords, folder))?.mtimeMs ?? Infinity;
    if (Date.now() - writtenAt > ORPHAN_RECORD_MS) removeIfEmpty(store, join(allRecords, folder));
    // A session that exists keeps its records.
    if (!store.fs.stat(join(tenant.folder.sessions, folder))) await unlessRefused(removeOrphansIn(tenant, folder));
  }
}

async function removeOrphansIn(tenant: TenantSessions, name: string): Promise<void> {
  const sessionId = await sessionOfRecords(tenant, join(tenant.folder.allRecords, name));
  if (sessionId !== undefined) await new SessionRecords(tenant.session(sessionId)).removeOrphans();
}

/** The session of the records in a folder; `undefined` if none of them can be read. */
export async function sessionOfRecords({ folder }: TenantSessions, path: string): Promise<string | undefined> {
  if (!folder.store.fs.stat(path)?.isDirectory()) return undefined;
  for (const name of folder.store.namesIn(path)) {
    const content = await readFrom(folder.store.fs, join(path, name));
    const sessionId = typeof content === 'object' ? parseSessionRecord(content.bytes, name)?.sessionId : undefined;
    if (sessionId !== undefined && folder.records(sessionId) === path) return sessionId;
  }
  return undefined;
}
