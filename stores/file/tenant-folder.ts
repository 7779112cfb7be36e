import { basename, join } from 'node:path';
import { fileNameOf, isPlainName, snapshotName, type SessionName } from './names.ts';
import { readWhole } from './read-file.ts';
import { parseSnapshot, type ParsedFile, type Version } from './snapshot-file.ts';
import type { StoreFolder } from './store-folder.ts';

/** The folder of one tenant: where everything is. */
export class TenantFolder {
  readonly store: StoreFolder;
  readonly tenant: string;
  #path: string | undefined;

  constructor(store: StoreFolder, tenant: string) {
    this.store = store;
    this.tenant = tenant;
  }

  get path(): string {
    return (this.#path ??= this.#find()) ?? join(this.store.path, fileNameOf(this.tenant));
  }

  get sessions(): string {
    return join(this.path, '.sessions');
  }

  get ids(): string {
    return join(this.path, '.ids');
  }

  get pointers(): string {
    return join(this.path, '.pointers');
  }

  get allShards(): string {
    return join(this.path, '.shards');
  }

  get scopes(): string {
    return join(this.path, '.scopes');
  }

  snapshot(snapshotId: string): string {
    return join(this.path, snapshotName(snapshotId));
  }

  /** The names that a snapshot's file may have: the store's own, and the raw one that Genkit's store gives it. */
  candidates(snapshotId: string): string[] {
    const own = snapshotName(snapshotId);
    const raw = `${snapshotId}.json`;
    return raw !== own && isPlainName(snapshotId) ? [own, raw] : [own];
  }

  log(session: SessionName): string {
    return join(this.sessions, `${session}.jsonl`);
  }

  /** Says that there is a session of this name; see `setMark`. */
  card(session: SessionName): string {
    return join(this.sessions, `${session}.id`);
  }

  /** Says that there is a snapshot of this id; see `setMark`. */
  mark(snapshotId: string): string {
    return join(this.ids, fileNameOf(snapshotId));
  }

  shards(session: SessionName): string {
    return join(this.allShards, session);
  }

  shard(session: SessionName, name: string): string {
    return join(this.shards(session), name);
  }

  piece(session: SessionName, { seq, stateRev }: Version): string {
    return join(this.shards(session), `${seq}.${stateRev}.json`);
  }

  pointer(session: SessionName): string {
    return join(this.pointers, `${session}.json`);
  }

  /** Where Genkit's own store has the pointer of a session that it names otherwise; only a file of that very name is taken for it. */
  guestPointer(sessionId: string): string | undefined {
    const { fs } = this.store;
    const name = `${sessionId}.json`;
    const isOther = isPlainName(sessionId) && fileNameOf(sessionId) !== sessionId;
    if (!isOther || !this.store.hasFolder(this.pointers)) return undefined;
    const path = join(this.pointers, name);
    // Where case is ignored, the pointer of another session answers to this name.
    return fs.stat(path) && fs.readdir(this.pointers).includes(name) ? path : undefined;
  }

  /** A record that sessions have in common; see `ScopeRecords`. */
  scopeRecord(name: string): string {
    return join(this.scopes, `${name}.json`);
  }

  scopeDraft(name: string): string {
    return join(this.scopes, `${name}.draft`);
  }

  /** A snapshot's file, by its name; `undefined`: there is none. */
  async readFile(fileName: string): Promise<ParsedFile | undefined> {
    const content = await readWhole(this.store.fs, join(this.path, fileName));
    if (content === 'missing') return undefined;
    return content === 'no-file' ? { kind: 'broken' } : parseSnapshot(content);
  }

  /**
   * `none`: nothing was saved for the tenant. `foreign`: there may be snapshots of another writer, and no log.
   *
   * @throws `FAILED_PRECONDITION` when a symbolic link, or something else, is in the place of a folder.
   */
  kind(): 'none' | 'foreign' | 'own' {
    if (!this.store.hasFolder(this.path)) return 'none';
    return this.store.hasFolder(this.sessions) ? 'own' : 'foreign';
  }

  /**
   * Whether a record was ever saved for the tenant.
   *
   * @throws as {@link kind} does.
   */
  hasScopes(): boolean {
    return this.store.hasFolder(this.path) && this.store.hasFolder(this.scopes);
  }

  /**
   * To be called before a session is changed. Leaves out the folders that `kind` looks at, and that of the pointers, at which a session looks
   * whenever it is brought up to date.
   *
   * @throws as {@link kind} does.
   */
  assertNoLinks(session: SessionName): void {
    this.store.hasFolder(this.ids);
    this.assertNoLinkedShards(session);
  }

  /**
   * To be called before something is read that may be in the folder of shards.
   *
   * @throws as {@link kind} does.
   */
  assertNoLinkedShards(session: SessionName): void {
    if (this.store.hasFolder(this.allShards)) this.store.hasFolder(this.shards(session));
  }

  /** The folder that is there. Genkit's own store names it by the raw prefix; a name is taken only when it is the very same. */
  #find(): string | undefined {
    const { fs, path } = this.store;
    const name = fileNameOf(this.tenant);
    const encoded = join(path, name);
    // Where case is ignored, a folder of another tenant answers to this name.
    const found = fs.stat(encoded);
    if (found && (!found.isDirectory() || basename(fs.realpath(encoded)) === name)) return encoded;
    const raw = join(path, this.tenant);
    const isRaw = isPlainName(this.tenant) && fs.stat(raw) !== undefined && fs.readdir(path).includes(this.tenant);
    return isRaw ? raw : undefined;
  }
}
