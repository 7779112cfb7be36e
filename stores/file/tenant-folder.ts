import { join } from 'node:path';
import { Sealer, type Encryption, type KeyOwner } from '../../src/store/encryption/encryption.ts';
import type { StoreFolder } from './disk/store-folder.ts';
import { fileNameOf, snapshotName } from './format/names.ts';

/** The name of a log in its session's folder. */
export const LOG = 'log.jsonl';

/** The paths of one tenant's files. */
export class TenantFolder {
  readonly store: StoreFolder;
  readonly tenant: string;
  readonly path: string;
  /** A folder for each session. */
  readonly sessions: string;
  /** The records of users and apps. */
  readonly scopes: string;
  /** A folder for each session that has records. */
  readonly allRecords: string;
  readonly #encryption: Encryption | undefined;

  constructor(store: StoreFolder, tenant: string, encryption: Encryption | undefined) {
    this.store = store;
    this.#encryption = encryption;
    this.tenant = tenant;
    this.path = join(store.path, fileNameOf(tenant));
    this.sessions = join(this.path, '.sessions');
    this.scopes = join(this.path, '.scopes');
    this.allRecords = join(this.path, '.records');
  }

  /** Encrypts and decrypts the data of a session, of a snapshot without one, or of a user or an app. */
  sealer(kind: KeyOwner['kind'], id: string, reopen?: () => Promise<unknown>): Sealer {
    return new Sealer(this.#encryption, { tenant: this.tenant, kind, id }, reopen);
  }

  snapshot(snapshotId: string): string {
    return join(this.path, snapshotName(snapshotId));
  }

  /** The folder of a session's log, its shards, and states of removed snapshots that are still needed. */
  session(sessionId: string): string {
    return join(this.sessions, fileNameOf(sessionId));
  }

  /** The log of a session, by the name of the session's folder. */
  log(name: string): string {
    return join(this.sessions, name, LOG);
  }

  /** The folder of a session's records. */
  records(sessionId: string): string {
    return join(this.allRecords, fileNameOf(sessionId));
  }

  record(name: string): string {
    return join(this.scopes, `${name}.json`);
  }

  /** The draft of a record: its new content, after the save that wrote it is committed. */
  draft(name: string): string {
    return join(this.scopes, `${name}.draft`);
  }

  /**
   * `none`: nothing was saved for the tenant. `lost`: the folder of sessions is missing, but snapshots may exist.
   *
   * @throws `FAILED_PRECONDITION` when a symbolic link, or something else, is in the place of a folder.
   */
  kind(): 'none' | 'lost' | 'own' {
    if (!this.store.hasFolder(this.path)) return 'none';
    return this.store.hasFolder(this.sessions) ? 'own' : 'lost';
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
   * Whether a session record was ever saved for the tenant.
   *
   * @throws as {@link kind} does.
   */
  hasRecords(): boolean {
    return this.store.hasFolder(this.path) && this.store.hasFolder(this.allRecords);
  }
}
