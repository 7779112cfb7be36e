import { join } from 'node:path';
import type { Encryption } from '../../src/store/encryption/encryption.ts';
import type { LruCache } from '../../src/store/parts/lru-cache.ts';
import { stampOf } from './disk/file-system.ts';
import { isRefused, isSystemError } from './disk/io-error.ts';
import { readBeginning } from './disk/read-file.ts';
import type { StoreFolder } from './disk/store-folder.ts';
import { fileNameOf, hashOf, isFileName } from './format/names.ts';
import { formatHeader, formatLine, sessionOfHeader, type LogLine } from './format/save-log.ts';
import type { SnapshotHead } from './format/snapshot-file.ts';
import type { KnownState } from '../chain/written-state.ts';
import type { StateCache } from './read/read-snapshot.ts';
import { scanTenant, type ScannedSession } from './read/scan-tenant.ts';
import { newNonce, FileSession, type SessionHome } from './file-session.ts';
import { LOG, TenantFolder } from './tenant-folder.ts';

/** What all tenants of a store have in common. */
export interface Shared {
  readonly folder: StoreFolder;
  readonly states: StateCache;
  /** By the path of their folders. */
  readonly sessions: LruCache<FileSession>;
  /** The ids of the sessions that snapshots were last found in, by the paths of their files. */
  readonly homes: LruCache<string>;
  readonly checkpointInterval: number;
  readonly maxPersistedChainLength: number | undefined;
  readonly rejectBranching: boolean;
  readonly encryption: Encryption | undefined;
}

/** How many snapshots the indexes in memory may have, of all tenants together. One larger session is kept, too. */
export const MOST_SNAPSHOTS = 100_000;

/** A session without snapshots takes as much memory as so many snapshots. */
export const WEIGHT_OF_SESSION = 4;

/** A scan is not used again if its folder had changed less than so many ms before: the next change may give the same stamp. */
const SETTLED_MS = 100;

/** One tenant: its folder, its sessions, and which of them a snapshot is in. */
export class TenantSessions implements SessionHome {
  readonly folder: TenantFolder;
  readonly shared: Shared;
  readonly finish: SessionHome['finish'];
  /** Called after each committed write. */
  onSaved: ((head: SnapshotHead, known: KnownState | undefined) => void) | undefined;
  /** Nothing was saved for it when that was last looked at. */
  isNew = false;
  #scan: { readonly stamp: string; readonly result: Promise<Map<string, ScannedSession>> } | undefined;

  constructor(shared: Shared, name: string, finish: (session: FileSession, line: LogLine) => Promise<void>) {
    this.shared = shared;
    this.folder = new TenantFolder(shared.folder, name, shared.encryption);
    this.finish = finish;
  }

  /** Answers the session as it is remembered; `refresh` brings it up to date. */
  session(sessionId: string): FileSession {
    const path = this.folder.session(sessionId);
    const known = this.shared.sessions.get(path);
    if (known) return known;
    const session = new FileSession(this, sessionId);
    this.keep(session);
    return session;
  }

  /** Keeps a session in memory; call it when the session was used. A large one takes the room of many. */
  keep(session: FileSession): void {
    const weight = session.index.tree.size + WEIGHT_OF_SESSION;
    this.shared.sessions.set(session.path, session, Math.min(weight, MOST_SNAPSHOTS));
  }

  /** To be called when the session was removed. */
  forget(session: FileSession): void {
    this.shared.sessions.delete(session.path);
  }

  homeOf(snapshotId: string): FileSession | undefined {
    const id = this.shared.homes.get(this.folder.snapshot(snapshotId));
    return id === undefined ? undefined : this.session(id);
  }

  noteHome(snapshotId: string, { id }: FileSession): void {
    this.shared.homes.set(this.folder.snapshot(snapshotId), id, 1);
  }

  forgetHome(snapshotId: string): void {
    this.shared.homes.delete(this.folder.snapshot(snapshotId));
  }

  /** What the tenant's sessions are called in the file system. */
  async sessionNames(): Promise<string[]> {
    const kind = this.folder.kind();
    if (kind === 'lost') return [...(await this.scan()).keys()].map(fileNameOf);
    return this.folder.store.namesIn(this.folder.sessions).filter(isFileName);
  }

  /** Whether the session of a name has a folder, or all of them have lost theirs; a link is none. */
  hasSession(name: string): boolean {
    const { folder } = this;
    return folder.store.fs.stat(join(folder.sessions, name))?.isDirectory() ?? folder.kind() === 'lost';
  }

  /** The session of a name; `undefined`: neither its log nor a snapshot tells its id. */
  async sessionOfName(name: string): Promise<FileSession | undefined> {
    const id = this.#idInLog(name) ?? [...(await this.scan()).keys()].find((one) => fileNameOf(one) === name);
    return id === undefined ? undefined : this.session(id);
  }

  async scan(): Promise<Map<string, ScannedSession>> {
    const stats = this.folder.store.fs.stat(this.folder.path);
    if (!stats) return new Map();
    const stamp = stampOf(stats);
    if (this.#scan?.stamp === stamp) return this.#scan.result;
    const result = scanTenant(this.folder);
    const isSettled = Math.abs(Date.now() - stats.mtimeMs) > SETTLED_MS;
    this.#scan = isSettled ? { stamp, result } : undefined;
    return result;
  }

  /**
   * To be called before the tenant is looked into.
   *
   * @returns Whether there is anything.
   * @throws `FAILED_PRECONDITION` when its folder is of another layout.
   */
  async open(): Promise<boolean> {
    const kind = this.folder.kind();
    if (kind === 'lost') await this.scan();
    return kind !== 'none';
  }

  /** To be called before something is changed: writes the logs of all sessions when their folder is not there. */
  async prepare(): Promise<void> {
    this.folder.store.prepare();
    const kind = this.folder.kind();
    this.isNew = kind === 'none';
    if (kind !== 'lost') return;
    const { locks } = this.folder.store;
    await locks.run(hashOf(this.folder.tenant, 'logs'), 'The tenant', () => this.#restoreLogs());
  }

  async #restoreLogs(): Promise<void> {
    if (this.folder.kind() !== 'lost') return;
    const { store } = this.folder;
    const path = store.newTemporaryFolder();
    for (const [session, { incarnation, lines }] of await this.scan()) {
      const header = formatHeader({ session, incarnation, log: newNonce() });
      const folder = join(path, fileNameOf(session));
      store.makeFolder(folder);
      await store.replace(join(folder, LOG), Buffer.from(header + lines.map(formatLine).join('')));
      await store.flushFolder(folder);
    }
    await store.flushFolder(path);
    try {
      await store.changeFolder(this.folder.path, () => store.fs.rename(path, this.folder.sessions));
    } catch (error) {
      // Another process may have made the folder in the meantime; then there is no error.
      if (this.folder.kind() === 'lost') throw error;
      store.removeFolderQuietly(path);
    }
  }

  #idInLog(name: string): string | undefined {
    if (!this.hasSession(name)) return undefined;
    try {
      const content = readBeginning(this.folder.store.fs, this.folder.log(name), 8192);
      if (typeof content === 'string') return undefined;
      const session = sessionOfHeader(content.bytes.subarray(0, content.bytes.indexOf(10) + 1));
      return session !== undefined && fileNameOf(session) === name ? session : undefined;
    } catch (error) {
      if (isSystemError(error) && !isRefused(error)) throw error;
      return undefined;
    }
  }
}
