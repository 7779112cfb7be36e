import { quote } from '../../src/errors.ts';
import { parseJson } from '../../src/json/value.ts';
import type { CutMemory } from '../chain/cut.ts';
import { Cleanup } from './cleanup.ts';
import { stampOf } from './file-system.ts';
import type { HeldLock } from './lock.ts';
import { nextTime, type LogEntry, type SaveEntry } from './log-entry.ts';
import { setMark } from './id-marks.ts';
import { isLost } from './lost-snapshots.ts';
import { hashOf, NO_SESSION, snapshotName, type SessionName } from './names.ts';
import { readWhole } from './read-file.ts';
import { readHeader } from './read-version.ts';
import { entriesOf, foreignEntry, scanned, type ScannedSnapshot, type TenantScan } from './scan.ts';
import { SessionIndex, type IndexNode } from './session-index.ts';
import { formatLog, SessionLog, type LogState } from './session-log.ts';
import { ScopeRecords } from './scope-records.ts';
import type { TenantFolder } from './tenant-folder.ts';

/**
 * One session of a tenant, or the snapshots that have none: what is known of it, brought up to date before each use.
 *
 * Its log says what is in it. Where there is none, because another writer filled the folder, or because it was lost, the snapshots' files
 * are scanned instead, and the first save writes a log.
 */
export class Session {
  readonly folder: TenantFolder;
  readonly name: SessionName;
  readonly log: SessionLog;
  /** The shards of a state, all found in the folder of shards while that had this stamp. */
  presentShards: { readonly memory: CutMemory; readonly stamp: string } | undefined;
  readonly #scan: TenantScan;
  /** What a scan found, while there is no log. */
  #scannedIndex: SessionIndex | undefined;
  #scannedId: string | null | undefined;
  /** Snapshots of another writer that the log does not know are in the index. */
  #hasGuests = false;
  #scannedFrom: readonly ScannedSnapshot[] | undefined;
  #pointerStamp = '';
  #missingLeaf: string | undefined;
  #lockName: string | undefined;

  constructor(
    folder: TenantFolder,
    name: SessionName,
    scan: TenantScan,
    onEntry: (session: Session, node: IndexNode, isFirst: boolean) => void,
  ) {
    this.folder = folder;
    this.name = name;
    this.#scan = scan;
    this.log = new SessionLog(folder, name, (node, isFirst) => onEntry(this, node, isFirst));
  }

  get index(): SessionIndex {
    return this.#scannedIndex ?? this.log.index;
  }

  /** `null`: these are the snapshots without a session; `undefined`: nothing is known of such a session. */
  get id(): string | null | undefined {
    return this.#scannedIndex ? this.#scannedId : this.log.sessionId;
  }

  /** For messages. */
  get title(): string {
    return typeof this.id === 'string' ? `Session ${quote(this.id)}` : 'The session';
  }

  /** A snapshot that another writer's pointer names as the session's latest, and that is not there. */
  get missingLeaf(): string | undefined {
    return this.#missingLeaf;
  }

  /** Whether it has a log of its own. */
  get hasLog(): boolean {
    return !this.#scannedIndex && this.log.sessionId !== undefined;
  }

  /** Changes whenever the index may have. */
  get position(): string {
    return this.log.position;
  }

  /** A name for a version's state that no other ever has. */
  keyOf(version: { readonly seq: number; readonly stateRev: number }): string {
    return `${this.folder.tenant}\n${this.name}\n${this.log.epoch}\n${version.seq}.${version.stateRev}`;
  }

  /** Runs `task` alone, of all processes, on a session that is up to date and has a log where it has snapshots. */
  async locked<T>(task: (lock: HeldLock) => Promise<T>): Promise<T> {
    this.#lockName ??= hashOf(this.folder.tenant, this.name);
    return this.folder.store.locks.run(this.#lockName, this.title, async (lock) => {
      try {
        await this.#refreshForWriting(lock);
        return await task(lock);
      } finally {
        this.log.close();
      }
    });
  }

  /** Brings what is known up to date for reading. Writes nothing. */
  async refresh(): Promise<void> {
    await this.#refresh(() => this.log.read());
  }

  async #refresh(read: () => LogState): Promise<void> {
    if (this.#hasGuests) this.#reset();
    const state = read();
    if (state === 'present') {
      this.#forgetScan();
      const { open } = this.log;
      if (open && (await this.isCommitted(open))) this.log.count(open);
    } else await this.#readScan(state === 'damaged' || this.#mayHaveSnapshots() ? await this.files() : []);
    await this.#meetGuests();
  }

  /** Whether the save that an open entry announces has been done: the snapshot's file has its revision. */
  async isCommitted(entry: SaveEntry): Promise<boolean> {
    const header = await readHeader(this.folder, snapshotName(entry.meta.snapshotId));
    if (typeof header === 'string') return false;
    return header.seq === entry.seq && header.rev === entry.rev && header.session === (this.id ?? null);
  }

  /** Takes a snapshot into the index that another writer added to the session; the next save takes it into the log. */
  welcome(guest: ScannedSnapshot): void {
    if (this.index.tree.has(guest.meta.snapshotId)) return;
    this.index.apply(foreignEntry(guest, this.index.guestSeq));
    this.#hasGuests = true;
  }

  /** Writes a log of these entries in the place of the one there is, if any, and reads it. `replaced`: it goes on with that one. */
  async writeLog(sessionId: string | null, entries: Iterable<LogEntry>, replaced?: SessionLog): Promise<void> {
    const { store } = this.folder;
    await store.replace(this.folder.log(this.name), formatLog({ sessionId, entries, replaced }));
    await store.flushFolder(this.folder.sessions);
    this.#reset();
    this.log.readForWriting();
  }

  /** Replaces a log that says much that no longer matters. */
  async compact(): Promise<void> {
    if (this.log.index.isWordy && !this.log.unconfirmed && !this.log.open) {
      // From now on the log does not say what was removed: none of that may come back.
      await this.folder.store.flushFolder(this.folder.path);
      await this.writeLog(this.log.sessionId ?? null, this.log.index.entries(), this.log);
    }
  }

  /** Whether there are snapshots though there is no log: a card or another writer's pointer says so, or the whole folder has no logs. */
  #mayHaveSnapshots(): boolean {
    const { folder } = this;
    const kind = folder.kind();
    if (kind !== 'own') return kind === 'foreign';
    const { fs } = folder.store;
    return fs.stat(folder.card(this.name)) !== undefined || fs.stat(folder.pointer(this.name)) !== undefined;
  }

  /** What its snapshots' files tell. */
  async files(): Promise<readonly ScannedSnapshot[]> {
    return (await this.#scan.sessions()).get(this.name) ?? [];
  }

  async #readScan(snapshots: readonly ScannedSnapshot[]): Promise<void> {
    if (snapshots === this.#scannedFrom) return;
    this.#forgetScan();
    if (snapshots.length === 0) return;
    const index = new SessionIndex();
    for (const entry of await entriesOf(this.folder, this.name, snapshots)) index.apply(entry);
    this.#scannedIndex = index;
    this.#scannedId = snapshots[0]!.session;
    this.#scannedFrom = snapshots;
  }

  #forgetScan(): void {
    this.#scannedIndex = undefined;
    this.#scannedFrom = undefined;
  }

  async #refreshForWriting(lock: HeldLock): Promise<void> {
    this.folder.assertNoLinks(this.name);
    await this.#refresh(() => this.log.readForWriting());
    if (this.#scannedIndex) {
      // The log that was lost would have told which.
      await new ScopeRecords(this.folder).sweep();
      lock.assertHeld();
      const entries = [...this.#scannedIndex.entries()];
      await this.writeLog(this.#scannedId ?? null, entries);
      for (const entry of entries) if (entry.op === 'save') setMark(this.folder, this.name, entry.meta.snapshotId);
    } else if (this.#hasGuests) {
      const guests = [...this.index.tree.nodes()].filter((node) => node.foreign !== undefined);
      this.#reset();
      this.log.readForWriting();
      for (const guest of guests) await this.adopt(guest);
    }
    await this.#settle();
    if (!this.log.deleted) return;
    await new Cleanup(this, { isRepeated: true }).finishDeletion();
    this.#reset();
    await this.#refresh(() => this.log.readForWriting());
  }

  /** For the holder of the lock: takes another writer's snapshot into the log, if it is not there. */
  async adopt({ meta, foreign }: IndexNode): Promise<void> {
    const { tree, guestSeq: seq, lastTime } = this.index;
    if (tree.has(meta.snapshotId)) return;
    const entry: SaveEntry = { op: 'save', seq, rev: 0, stateRev: 0, foreign, t: nextTime(lastTime), ok: true, meta };
    if (this.hasLog) await this.log.append(entry);
    else await this.writeLog(meta.sessionId ?? null, [entry]);
    setMark(this.folder, this.name, meta.snapshotId);
  }

  /** Ends what the writer before left undone. */
  async #settle(): Promise<void> {
    const { log } = this;
    const last = log.open ?? log.unconfirmed;
    if (last?.op === 'save') await new ScopeRecords(this.folder).settle(last.scopes ?? []);
    if (log.open) {
      // `refresh` found that it does not count, and nobody can make it count any more.
      const { snapshotId } = log.open.meta;
      await log.append({ op: 'void' });
      if (!(await isLost(this, snapshotId))) await new Cleanup(this, { isRepeated: true }).removeLeftover(snapshotId);
    } else if (log.unconfirmed && !log.deleted) {
      await new Cleanup(this, { isRepeated: true }).carryOut(log.aftermath);
      await log.append({ op: 'ok', t: log.index.lastTime });
    }
  }

  #reset(): void {
    this.log.reset();
    this.#forgetScan();
    this.#hasGuests = false;
    this.#pointerStamp = '';
    this.#missingLeaf = undefined;
  }

  /** Takes in what another writer added and the log does not know: the snapshot that its pointer names, and those before it. */
  async #meetGuests(): Promise<void> {
    const stamp = this.#readPointerStamp();
    if (stamp === this.#pointerStamp) return;
    this.#missingLeaf = undefined;
    const guests: ScannedSnapshot[] = [];
    let next = await this.#pointedAt();
    while (
      next !== undefined &&
      !this.index.tree.has(next) &&
      !guests.some((guest) => guest.meta.snapshotId === next)
    ) {
      const guest = await this.#readGuest(next);
      if (!guest && guests.length === 0) this.#missingLeaf = next;
      if (!guest || guest.own || (this.id !== undefined && guest.session !== this.id)) break;
      guests.push(guest);
      next = guest.meta.parentId;
    }
    for (const guest of guests.toReversed()) this.welcome(guest);
    this.#pointerStamp = stamp;
  }

  /** To be called after this store itself wrote the pointer. */
  passOverPointer(): void {
    this.#pointerStamp = this.#readPointerStamp();
    this.#missingLeaf = undefined;
  }

  get hasPointer(): boolean {
    return this.#pointerStamp !== '';
  }

  #readPointerStamp(): string {
    const { pointers, store } = this.folder;
    if (this.name === NO_SESSION || !store.hasFolder(pointers)) return '';
    const found = store.fs.stat(this.folder.pointer(this.name));
    return found ? stampOf(found) : '';
  }

  async #readGuest(snapshotId: string): Promise<ScannedSnapshot | undefined> {
    for (const name of this.folder.candidates(snapshotId)) {
      const parsed = await this.folder.readFile(name);
      const guest = parsed && scanned(name, parsed);
      if (guest?.meta.snapshotId === snapshotId) return guest;
    }
    return undefined;
  }

  /** The snapshot that a pointer of Genkit's own store names as the session's latest. */
  async #pointedAt(): Promise<string | undefined> {
    const content = await readWhole(this.folder.store.fs, this.folder.pointer(this.name));
    if (typeof content === 'string') return undefined;
    try {
      const pointer = parseJson(content.toString('utf8')) as { currentSnapshotId?: unknown };
      const { currentSnapshotId } = pointer;
      return typeof currentSnapshotId === 'string' && currentSnapshotId.trim() !== '' ? currentSnapshotId : undefined;
    } catch {
      return undefined;
    }
  }
}
