import { ALL_CAPABILITIES, type StoreCapabilities } from '../../src/store/contract.ts';
import { BaseSessionStore, type TenantStore } from '../../src/store/base-session-store.ts';
import {
  checkOptions,
  isBoolean,
  isFunction,
  isEncryption,
  isOneOf,
  isTimerMs,
  isWhole,
} from '../../src/store/check-options.ts';
import type { SnapshotPathPrefix } from '../../src/store/name-tenant.ts';
import type { Encryption } from '../../src/store/encryption/encryption.ts';
import { nodeFileSystem, type FileSystem } from './disk/file-system.ts';
import { StoreFolder, type Durability } from './disk/store-folder.ts';
import { usableDirectory } from './disk/usable-directory.ts';
import { assertNotForeign } from './read/scan-tenant.ts';
import { FileTenantStore } from './file-tenant-store.ts';
import { Caches, TenantSessions, type Shared } from './tenant-sessions.ts';

/** Options of {@link FileSessionStore}. */
export interface FileSessionStoreOptions {
  /**
   * How many snapshots of a path to keep, counted from the leaf. Saving a new snapshot removes older ones of its path, except running ones,
   * those near enough to another leaf, and those that a session continues from (see `PrunePolicy`). A rewrite removes
   * nothing; use `prune` for other paths. Default: all are kept.
   */
  maxPersistedChainLength?: number;
  /** Names the caller's tenant; callers see only the data of their own tenant. Default: one tenant for all. */
  snapshotPathPrefix?: SnapshotPathPrefix;
  /** Lookups by `sessionId` of a session with more than one leaf throw `FAILED_PRECONDITION`. Default: `false`. */
  rejectBranchingSessions?: boolean;
  /** How often watchers poll for changes that the system did not report, in ms. Default: 2000. */
  snapshotWatchPollIntervalMs?: number;
  /**
   * `full`: a save that has returned survives a power failure, because it was flushed to the disk. `fast`: it survives the end of the
   * process; the system flushes it later. Default: `full`.
   */
  durability?: Durability;
  /**
   * At least one of this many successive snapshots is a checkpoint, with its whole state; the others are diffs. 1: each is a checkpoint.
   * Default: 25.
   */
  checkpointInterval?: number;
  /** How long a save waits for other processes that save to the same session, in ms, before it throws `ABORTED`. Default: 10000. */
  lockTimeoutMs?: number;
  /**
   * Encrypts new data; `envelope()` of `genkitx-agents/privacy` makes one. Data that was stored in clear can still be read.
   * `docs/privacy.md` lists what stays in clear. Default: no encryption.
   */
  encryption?: Encryption;
}

/**
 * Keeps snapshots in files below a directory, one file each. Several processes of a machine may share the directory.
 * `docs/file-store.md` describes the layout and the supported file systems.
 *
 * Reading creates no files and no directories. Results of methods are the caller's own copies.
 *
 * @example
 * const store = new FileSessionStore<{ orderId?: string }>('./.genkit/sessions', { maxPersistedChainLength: 100 });
 * const id = await store.saveSnapshot(undefined, () => ({
 *   sessionId: 'support-1',
 *   createdAt: new Date().toISOString(),
 *   status: 'completed',
 *   state: { custom: { orderId: 'A-17' } },
 * }));
 * const leaf = await store.getSnapshot({ sessionId: 'support-1' });
 */
export class FileSessionStore<S = unknown> extends BaseSessionStore<S> {
  /** What this store can do. */
  readonly capabilities: Readonly<StoreCapabilities> = ALL_CAPABILITIES;
  readonly #shared: Shared;
  #isChecked = false;

  /**
   * @param directory The directory of the files; the first save creates it. Relative to the working directory.
   * @param fileSystem For tests: the system calls of the store.
   * @throws `INVALID_ARGUMENT` for an unknown or invalid option, `FAILED_PRECONDITION` when the directory can't be used.
   */
  constructor(directory: string, options: FileSessionStoreOptions = {}, fileSystem: FileSystem = nodeFileSystem) {
    checkOptions('FileSessionStore', options, {
      maxPersistedChainLength: isWhole(1),
      snapshotPathPrefix: isFunction,
      rejectBranchingSessions: isBoolean,
      snapshotWatchPollIntervalMs: isTimerMs(1),
      durability: isOneOf('full', 'fast'),
      checkpointInterval: isWhole(1),
      lockTimeoutMs: isWhole(0),
      encryption: isEncryption,
    });
    super('FileSessionStore', options.snapshotPathPrefix);
    const { durability = 'full', lockTimeoutMs = 10_000 } = options;
    const usable = usableDirectory(directory, fileSystem, 'FileSessionStore');
    this.#shared = {
      folder: new StoreFolder(usable, { durability, lockTimeoutMs }),
      caches: new Caches(),
      watches: new Map(),
      pollIntervalMs: options.snapshotWatchPollIntervalMs ?? 2000,
      checkpointInterval: options.checkpointInterval ?? 25,
      maxPersistedChainLength: options.maxPersistedChainLength,
      rejectBranching: options.rejectBranchingSessions ?? false,
      encryption: options.encryption,
      run: (call, work) =>
        this.#shared.folder.run(call, () => {
          this.#assertNotForeign();
          return work();
        }),
    };
  }

  protected tenant(id: string): TenantStore<S> {
    return new FileTenantStore(new TenantSessions(this.#shared, id));
  }

  /** Waits for the running calls. */
  protected async release(): Promise<void> {
    for (const watch of this.#shared.watches.values()) watch.close();
    await this.#shared.folder.close();
    this.#shared.caches.clear();
  }

  /** A directory that has this store's locks is its own. */
  #assertNotForeign(): void {
    if (this.#isChecked) return;
    const { folder } = this.#shared;
    if (!folder.fs.stat(folder.locks.path)) assertNotForeign(folder);
    this.#isChecked = true;
  }
}
