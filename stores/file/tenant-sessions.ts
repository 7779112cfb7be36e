import { join } from 'node:path';
import type { Encryption } from '../../src/store/encryption/encryption.ts';
import { LruCache } from '../../src/store/parts/lru-cache.ts';
import type { KnownState } from '../chain/known-state.ts';
import { stampOf } from './disk/file-system.ts';
import { isRefused, isSystemError, type Call } from './disk/io-error.ts';
import { readBeginning } from './disk/read-file.ts';
import type { StoreFolder } from './disk/store-folder.ts';
import { fileNameOf, hashOf, isFileName } from './format/names.ts';
import { formatHeader, formatLine, sessionOfHeader, type LogLine } from './format/save-log.ts';
import { scanTenant, type ScannedSession } from './read/scan-tenant.ts';
import { finish } from './remove/remove-snapshots.ts';
import { newNonce, FileSession } from './file-session.ts';
import { LOG, TenantFolder } from './tenant-folder.ts';
import type { TenantWatch } from './watch/tenant-watch.ts';

/** Characters of JSON text of the states that are kept in memory. */
const MOST_CHARACTERS = 64 * 1024 * 1024;
/** The memory that a state takes besides its text, in characters. */
const WEIGHT_OF_STATE = 1024;

/** The most snapshots in the indexes in memory, for all tenants together. A single larger session is kept as well. */
const MOST_SNAPSHOTS = 100_000;

/** A session without snapshots takes as much memory as this many snapshots. */
const WEIGHT_OF_SESSION = 4;

/** Tenants whose scans are kept. */
const MOST_SCANS = 1000;

/** The content of a tenant's snapshot files, valid while their folder has this stamp. */
interface Scan {
  readonly stamp: string;
  readonly result: Promise<Map<string, ScannedSession>>;
}

/** The store's caches. */
export class Caches {
  /** By version. A version never changes, so a cached state need not be revalidated. */
  readonly states = new LruCache<KnownState>(MOST_CHARACTERS);
  /** By the path of their folders. */
  readonly sessions = new LruCache<FileSession>(MOST_SNAPSHOTS);
  /** The ids of the sessions in which snapshots were last found, by the paths of the snapshots' files. */
  readonly sessionIds = new LruCache<string>(MOST_SNAPSHOTS);
  /** By the path of the tenants' folders. */
  readonly scans = new LruCache<Scan>(MOST_SCANS);

  keepState(version: string, known: KnownState): void {
    this.states.set(version, known, known.length + WEIGHT_OF_STATE);
  }

  clear(): void {
    for (const cache of [this.states, this.sessions, this.sessionIds, this.scans]) cache.clear();
  }
}

/** Shared by all tenants of a store. */
export interface Shared {
  readonly folder: StoreFolder;
  readonly caches: Caches;
  /** The watches of the tenants that have listeners, by the tenants' names. */
  readonly watches: Map<string, TenantWatch>;
  readonly pollIntervalMs: number;
  readonly checkpointInterval: number;
  readonly maxPersistedChainLength: number | undefined;
  readonly rejectBranching: boolean;
  readonly encryption: Encryption | undefined;
  /** Runs a call, as {@link StoreFolder.run} does, in a directory without a foreign layout. */
  run<T>(call: Call, work: () => Promise<T>): Promise<T>;
}

/** A scan is not reused if its folder had changed less than this many ms before: the next change may result in the same stamp. */
const STABLE_MS = 100;

/** One tenant: its folder, its sessions, and the sessions of its snapshots. */
export class TenantSessions {
  readonly folder: TenantFolder;
  readonly shared: Shared;

  constructor(shared: Shared, name: string) {
    this.shared = shared;
    this.folder = new TenantFolder(shared.folder, name, shared.encryption);
  }

  /** For a check, which reads everything from the disk. */
  withEmptyCaches(): TenantSessions {
    return new TenantSessions({ ...this.shared, caches: new Caches() }, this.folder.tenant);
  }

  /** The session as it is cached; `refresh` updates it. */
  session(sessionId: string): FileSession {
    const path = this.folder.session(sessionId);
    const known = this.shared.caches.sessions.get(path);
    if (known) return known;
    const session = new FileSession(this, sessionId);
    this.keep(session);
    return session;
  }

  /** Keeps a session in memory; call it when the session was used. */
  keep(session: FileSession): void {
    const weight = session.index.tree.size + WEIGHT_OF_SESSION;
    this.shared.caches.sessions.set(session.path, session, Math.min(weight, MOST_SNAPSHOTS));
  }

  /** Call it when the session was removed. */
  forget(session: FileSession): void {
    this.shared.caches.sessions.delete(session.path);
  }

  /** {@link finish} for {@link FileSession}, which can't import it. */
  finish(session: FileSession, line: LogLine): Promise<void> {
    return finish(session, line);
  }

  sessionOfSnapshot(snapshotId: string): FileSession | undefined {
    const id = this.shared.caches.sessionIds.get(this.folder.snapshot(snapshotId));
    return id === undefined ? undefined : this.session(id);
  }

  rememberSnapshot(snapshotId: string, { id }: FileSession): void {
    this.shared.caches.sessionIds.set(this.folder.snapshot(snapshotId), id, 1);
  }

  forgetSnapshot(snapshotId: string): void {
    this.shared.caches.sessionIds.delete(this.folder.snapshot(snapshotId));
  }

  /** The names of the tenant's sessions in the file system. */
  async sessionNames(): Promise<string[]> {
    const kind = this.folder.kind();
    if (kind === 'lost') return [...(await this.scan()).keys()].map(fileNameOf);
    return this.folder.store.namesIn(this.folder.sessions).filter(isFileName);
  }

  /** Whether the session with this name has a folder, or the folder of all sessions is lost. A link does not count. */
  hasSession(name: string): boolean {
    const { folder } = this;
    return folder.store.fs.stat(join(folder.sessions, name))?.isDirectory() ?? folder.kind() === 'lost';
  }

  /** The session with this name; `undefined` if neither its log nor a snapshot has its id. */
  async sessionOfName(name: string): Promise<FileSession | undefined> {
    const id = this.#idInLog(name) ?? [...(await this.scan()).keys()].find((one) => fileNameOf(one) === name);
    return id === undefined ? undefined : this.session(id);
  }

  /** The content of the tenant's snapshot files, by session. */
  async scan(): Promise<Map<string, ScannedSession>> {
    const { path, store } = this.folder;
    const { scans } = this.shared.caches;
    const stats = store.fs.stat(path);
    if (!stats) return new Map();
    const stamp = stampOf(stats);
    const known = scans.get(path);
    if (known?.stamp === stamp) return known.result;
    const scan = { stamp, result: scanTenant(this.folder) };
    const isStable = Math.abs(Date.now() - stats.mtimeMs) > STABLE_MS;
    if (isStable) scans.set(path, scan, 1);
    try {
      return await scan.result;
    } catch (error) {
      if (scans.get(path) === scan) scans.delete(path);
      throw error;
    }
  }

  /**
   * Call it before reading the tenant.
   *
   * @returns Whether the tenant has data.
   * @throws `FAILED_PRECONDITION` when its folder has a foreign layout.
   */
  async open(): Promise<boolean> {
    const kind = this.folder.kind();
    if (kind === 'lost') await this.scan();
    return kind !== 'none';
  }

  /**
   * Call it before a change. Writes the logs of all sessions if their folder is lost.
   *
   * @returns Whether the tenant has no data yet.
   */
  async prepare(): Promise<boolean> {
    this.folder.store.prepare();
    const kind = this.folder.kind();
    if (kind === 'lost') {
      const { locks } = this.folder.store;
      await locks.run(hashOf(this.folder.tenant, 'logs'), 'The tenant', () => this.#restoreLogs());
    }
    return kind === 'none';
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
      // Not an error if another process has created the folder in the meantime.
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
