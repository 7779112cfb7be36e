import { join } from 'node:path';
import { dataLoss, quote } from '../../src/errors.ts';
import { closeQuietly, codeOf } from './file-system.ts';
import type { HeldLock } from './lock.ts';
import { LruCache } from '../chain/lru-cache.ts';
import { hasMark, setMark } from './id-marks.ts';
import { hashOf, isSessionName, sessionNameOf, type SessionName } from './names.ts';
import { readHeader } from './read-version.ts';
import { entriesOf, scanned, TenantScan, type ScannedSnapshot } from './scan.ts';
import { Session } from './session.ts';
import { SessionIndex, type IndexNode } from './session-index.ts';
import { formatLog } from './session-log.ts';
import { attempt, type StoreFolder } from './store-folder.ts';
import { TenantFolder } from './tenant-folder.ts';

/** Snapshots whose metadata are kept in memory, of all tenants together; one session that has more is kept all the same. */
const MOST_SNAPSHOTS = 100_000;

/** The sessions that a store remembers, and which of them a snapshot was last found in. */
export class KnownSessions {
  readonly #sessions = new LruCache<Session>(MOST_SNAPSHOTS);
  readonly #homes = new LruCache<SessionName>(MOST_SNAPSHOTS);
  #tenants = 0;

  /** A number that no other tenant has, nor one of the same name after it. */
  nextTenant(): number {
    return this.#tenants++;
  }

  get(tenant: number, name: SessionName): Session | undefined {
    return this.#sessions.get(`${tenant} ${name}`);
  }

  /** To be called again when the session has grown. */
  keep(tenant: number, session: Session): void {
    this.#sessions.set(`${tenant} ${session.name}`, session, Math.min(session.index.tree.size + 1, MOST_SNAPSHOTS));
  }

  homeOf(tenant: number, snapshotId: string): SessionName | undefined {
    return this.#homes.get(`${tenant} ${snapshotId}`);
  }

  noteHome(tenant: number, snapshotId: string, name: SessionName | undefined): void {
    if (name === undefined) this.#homes.delete(`${tenant} ${snapshotId}`);
    else this.#homes.set(`${tenant} ${snapshotId}`, name, 1);
  }

  clear(): void {
    this.#sessions.clear();
    this.#homes.clear();
  }
}

/** One tenant: its sessions, and which of them a snapshot is in. */
export class Tenant {
  readonly folder: TenantFolder;
  /** Told of each snapshot that is found to have been written, by whomever. */
  onEntry: ((session: Session, node: IndexNode, isFirst: boolean) => void) | undefined;
  readonly #scan: TenantScan;
  readonly #known: KnownSessions;
  readonly #number: number;

  constructor(store: StoreFolder, tenant: string, known: KnownSessions) {
    this.#known = known;
    this.#number = known.nextTenant();
    this.folder = new TenantFolder(store, tenant);
    this.#scan = new TenantScan(this.folder);
  }

  /** The session of a name, brought up to date; it may have no snapshots, and there may be no such session. */
  async session(name: SessionName): Promise<Session> {
    const session = this.#sessionOf(name);
    await session.refresh();
    this.#known.keep(this.#number, session);
    return session;
  }

  /**
   * The session that a snapshot is in, or was when last heard of.
   *
   * @throws `DATA_LOSS` when what has the name of its file is no snapshot.
   */
  async locate(snapshotId: string): Promise<Session | undefined> {
    const home = await this.homeOf(snapshotId);
    if (home) return home;
    const found = await this.#findSession(snapshotId);
    // A file that its session does not know may be in the place of another session's.
    const isFound = found?.index.tree.has(snapshotId) === true;
    const lost = !isFound && hasMark(this.folder, snapshotId) ? await this.#searchLogs(snapshotId) : undefined;
    const session = lost ?? found;
    if (session) this.noteHome(snapshotId, session);
    return session;
  }

  /** The session that a snapshot is in, if that is remembered; else it may be in one all the same. */
  async homeOf(snapshotId: string): Promise<Session | undefined> {
    const name = this.#known.homeOf(this.#number, snapshotId);
    const session = name === undefined ? undefined : await this.session(name);
    if (session?.index.tree.has(snapshotId)) return session;
    this.#known.noteHome(this.#number, snapshotId, undefined);
    return undefined;
  }

  /** For writing: the session of an id, not brought up to date. */
  sessionFor(sessionId: string | null): Session {
    return this.#sessionOf(sessionNameOf(sessionId));
  }

  /** The names of all sessions that there are, and perhaps some more. */
  async sessionNames(): Promise<SessionName[]> {
    const kind = this.folder.kind();
    if (kind === 'none') return [];
    if (kind === 'foreign') return [...(await this.#scan.sessions()).keys()];
    const names = new Set(this.#namesIn(this.folder.sessions, '.jsonl'));
    const pointers = this.folder.store.hasFolder(this.folder.pointers)
      ? this.#namesIn(this.folder.pointers, '.json')
      : [];
    const strangers = [...this.#namesIn(this.folder.sessions, '.id'), ...pointers];
    for (const name of strangers) names.add(name);
    return [...names];
  }

  /** Before the first save: makes the folders, and takes in what another writer left. */
  async prepare(): Promise<void> {
    const { folder } = this;
    if (folder.kind() === 'own') return;
    const { store } = folder;
    await store.locks.run(hashOf(folder.tenant), 'The tenant', async (lock) => {
      const changed = store.makeFolder(folder.path);
      changed.push(...store.makeFolder(folder.ids));
      if (folder.kind() !== 'own') {
        const found = await this.#scan.sessions();
        if (found.size === 0) changed.push(...store.makeFolder(folder.sessions));
        else {
          await this.#writeLogs(found, lock);
          changed.push(folder.path);
          for (const [name, snapshots] of found)
            for (const { meta } of snapshots) setMark(folder, name, meta.snapshotId);
        }
      }
      for (const path of new Set(changed)) await store.flushFolder(path);
    });
  }

  /** Remembers where a snapshot is, so that it need not be looked for. */
  noteHome(snapshotId: string, session: Session): void {
    this.#known.noteHome(this.#number, snapshotId, session.name);
    this.#known.keep(this.#number, session);
  }

  #sessionOf(name: SessionName): Session {
    const known = this.#known.get(this.#number, name);
    if (known) return known;
    const session = new Session(this.folder, name, this.#scan, (from, node, isFirst) =>
      this.onEntry?.(from, node, isFirst),
    );
    this.#known.keep(this.#number, session);
    return session;
  }

  /** Writes the logs of what another writer left into a folder of their own, so that they come into being all at once. */
  async #writeLogs(found: ReadonlyMap<SessionName, readonly ScannedSnapshot[]>, lock: HeldLock): Promise<void> {
    const { store } = this.folder;
    const logs = store.newTemporary();
    try {
      store.makeFolder(logs);
      for (const [name, snapshots] of found) {
        const index = new SessionIndex();
        for (const entry of await entriesOf(this.folder, name, snapshots)) index.apply(entry);
        const log = formatLog({ sessionId: snapshots[0]!.session, entries: index.entries() });
        const fd = store.writeNew(join(logs, `${name}.jsonl`), log);
        try {
          await store.flush(fd);
        } finally {
          closeQuietly(store.fs, fd);
        }
      }
      await store.flushFolder(logs);
      lock.assertHeld();
      store.fs.rename(logs, this.folder.sessions);
    } catch (error) {
      attempt(() => store.removeTemporary(logs));
      throw error;
    }
  }

  async #findSession(snapshotId: string): Promise<Session | undefined> {
    for (const name of this.folder.candidates(snapshotId)) {
      const header = await readHeader(this.folder, name);
      if (header === 'missing') continue;
      if (header !== 'foreign') return this.session(sessionNameOf(header.session));
      const parsed = await this.folder.readFile(name);
      if (parsed?.kind === 'broken') {
        throw dataLoss(
          `Snapshot ${quote(snapshotId)} can't be read: its file is damaged. Restore it from a backup, or remove it.`,
        );
      }
      const found = parsed && scanned(name, parsed);
      if (found?.meta.snapshotId !== snapshotId) continue;
      const session = await this.session(sessionNameOf(found.session));
      if (!found.own) session.welcome(found);
      return session;
    }
    return undefined;
  }

  /** The file is not there, but was once: it was lost, or it was removed and the mark is still there. The logs know. */
  async #searchLogs(snapshotId: string): Promise<Session | undefined> {
    for (const name of await this.sessionNames()) {
      const session = await this.session(name);
      if (session.index.tree.has(snapshotId)) return session;
    }
    return undefined;
  }

  #namesIn(path: string, ending: string): string[] {
    try {
      const names = this.folder.store.fs.readdir(path).filter((name) => name.endsWith(ending));
      return names.map((name) => name.slice(0, -ending.length)).filter(isSessionName);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }
}
