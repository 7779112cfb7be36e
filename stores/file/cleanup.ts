import { join } from 'node:path';
import { codeOf } from './file-system.ts';
import { removeMark } from './id-marks.ts';
import { sessionNameOf, snapshotName } from './names.ts';
import { readHeader, readLive, readVersion } from './read-version.ts';
import type { Session } from './session.ts';
import type { Aftermath, SessionIndex, StoredVersion } from './session-index.ts';

/**
 * Removes what a session's log says is not needed any more. Only for the holder of the session's lock, and after the log says so: then a
 * crash in between leaves files that nobody looks at, and the next holder removes them.
 */
export class Cleanup {
  readonly #session: Session;
  readonly #isRepeated: boolean;

  /** @param options.isRepeated Somebody began this before, and the ids may belong to other sessions by now. */
  constructor(session: Session, options: { isRepeated: boolean } = { isRepeated: false }) {
    this.#session = session;
    this.#isRepeated = options.isRepeated;
  }

  /** Carries out what an entry of the log makes of the files. */
  async carryOut(aftermath: Aftermath): Promise<void> {
    await this.removeFiles(aftermath);
    if (aftermath.dropped.some((version) => version.lifted)) await this.sweep();
  }

  /** Does so without a look at the shards. */
  async removeFiles(aftermath: Aftermath): Promise<void> {
    const { folder, name } = this.#session;
    const { store } = folder;
    // Before the file, by which it can be told that the mark is not another session's by now.
    for (const { snapshotId } of aftermath.removed) await this.#removeMark(snapshotId);
    for (const fileName of aftermath.replaced) store.remove(join(folder.path, fileName));
    for (const version of aftermath.pieces) await this.#makePiece(version);
    for (const version of aftermath.dropped) {
      if (!version.live) store.remove(folder.piece(name, version));
      else if (await this.#isOurs(version.snapshotId)) store.remove(folder.snapshot(version.snapshotId));
    }
    for (const { foreign } of aftermath.removed) {
      if (foreign !== undefined) store.remove(join(folder.path, foreign));
    }
  }

  /** Removes shards and pieces that nothing needs. Answers how many shards that were. */
  async sweep(): Promise<number> {
    const { folder, name, index } = this.#session;
    const spare = await this.#spare(index);
    for (const entry of spare) folder.store.remove(folder.shard(name, entry));
    return spare.filter(isShard).length;
  }

  /** How many shards nothing would need if the session were as `index` says. */
  async spareShards(index: SessionIndex): Promise<number> {
    return (await this.#spare(index)).filter(isShard).length;
  }

  async #spare(index: SessionIndex): Promise<string[]> {
    const { folder, name } = this.#session;
    const needed = new Set<string>();
    for (const version of index.versions()) {
      needed.add(`${version.seq}.${version.stateRev}.json`);
      if (!version.lifted) continue;
      const file = await readVersion(this.#session, version);
      // What can't be read may need anything.
      if (file?.written.kind !== 'whole') return [];
      for (const lift of file.written.lifts) for (const shard of lift.shards) needed.add(shard);
    }
    return this.#namesIn(folder.shards(name)).filter((entry) => !needed.has(entry));
  }

  /** Removes all that is left of a session whose log says that it was deleted, and then the log. Answers the number of shards. */
  async finishDeletion(): Promise<number> {
    const { folder, name, log, id } = this.#session;
    const { store } = folder;
    const guestPointer = typeof id === 'string' ? folder.guestPointer(id) : undefined;
    await this.removeFiles(log.aftermath);
    const entries = this.#namesIn(folder.shards(name));
    for (const entry of entries) store.remove(folder.shard(name, entry));
    if (entries.length > 0) store.fs.rmdir(folder.shards(name));
    store.remove(folder.pointer(name));
    if (guestPointer !== undefined) store.remove(guestPointer);
    await store.flushFolder(folder.path);
    store.remove(folder.card(name));
    store.remove(folder.log(name));
    await store.flushFolder(folder.sessions);
    return entries.filter(isShard).length;
  }

  /** Takes away what a crash left of a snapshot that the session does not have, so that its id is free. What others start from is kept. */
  async removeLeftover(snapshotId: string): Promise<void> {
    const { folder, name, index } = this.#session;
    const header = await readHeader(folder, snapshotName(snapshotId));
    if (typeof header === 'string' || sessionNameOf(header.session) !== name || index.tree.has(snapshotId)) return;
    removeMark(folder, snapshotId);
    const version = index.version(header);
    if (version?.snapshotId === snapshotId) await this.#makePiece(version);
    else folder.store.remove(folder.snapshot(snapshotId));
  }

  /** Moves the file of a removed snapshot to where those look for it that start from it. */
  async #makePiece(version: StoredVersion): Promise<void> {
    const { folder, name } = this.#session;
    const { store } = folder;
    if (!(await this.#isOurs(version.snapshotId))) return;
    const from = folder.snapshot(version.snapshotId);
    const to = folder.piece(name, version);
    // Where the log was cut short before the snapshot was rewritten, the piece is there, and the file is of another version.
    if (store.fs.stat(to) && !(await readLive(this.#session, version))) {
      store.remove(from);
      return;
    }
    try {
      store.fs.rename(from, to);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      store.makeFolder(folder.shards(name));
      if (store.fs.stat(from)) store.fs.rename(from, to);
    }
    // Both may be links to one file, after a rewrite that was cut short: then the rename has left them both.
    store.remove(from);
  }

  async #removeMark(snapshotId: string): Promise<void> {
    const { folder } = this.#session;
    // Where the file is gone already the mark is another session's, which took the id since.
    if (!this.#isRepeated || (await this.#isOurs(snapshotId))) removeMark(folder, snapshotId);
  }

  /** Whether the file under the snapshot's name is of this session: always so the first time. */
  async #isOurs(snapshotId: string): Promise<boolean> {
    if (!this.#isRepeated) return true;
    const header = await readHeader(this.#session.folder, snapshotName(snapshotId));
    return typeof header !== 'string' && sessionNameOf(header.session) === this.#session.name;
  }

  #namesIn(path: string): string[] {
    try {
      return this.#session.folder.store.fs.readdir(path);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }
}

/** Nothing else in a session's folder of shards has such a name. */
function isShard(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}
