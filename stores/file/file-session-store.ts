import type { StoreCapabilities } from '../../src/store/contract.ts';
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
import { LruCache } from '../../src/store/parts/lru-cache.ts';
import { nodeFileSystem, type FileSystem } from './disk/file-system.ts';
import { reportingFailures, type Call } from './disk/io-error.ts';
import { StoreFolder, type Durability } from './disk/store-folder.ts';
import { usableDirectory } from './disk/usable-directory.ts';
import { assertNotForeign } from './read/scan-tenant.ts';
import { finish } from './remove/remove-snapshots.ts';
import { FileTenantStore, type Runner } from './file-tenant-store.ts';
import { MOST_SNAPSHOTS, TenantSessions, type Shared } from './tenant-sessions.ts';
import { TenantWatch } from './watch/tenant-watch.ts';

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

const CAPABILITIES: Readonly<StoreCapabilities> = Object.freeze({
  watch: true,
  watchAcrossProcesses: true,
  metadata: true,
  list: true,
  delete: true,
  prune: true,
  compareLeaf: true,
  scopes: true,
  records: true,
  details: true,
  check: true,
  durable: true,
});

/** Tenants whose state is kept between calls. */
const MOST_TENANTS = 1000;
/** Characters of JSON text of the states that are kept in memory. */
const MOST_CHARACTERS = 64 * 1024 * 1024;

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
  readonly capabilities = CAPABILITIES;
  readonly #directory: string;
  readonly #shared: Shared;
  readonly #tenants = new LruCache<FileTenantStore<S>>(MOST_TENANTS);
  /** The tenants that have listeners. */
  readonly #watched = new Map<string, { readonly tenant: FileTenantStore<S>; readonly watch: TenantWatch<S> }>();
  readonly #pollIntervalMs: number;
  readonly #runner: Runner;
  #isChecked = false;

  /**
   * @param directory The directory of the files; the first save creates it. Relative to the working directory.
   * @param fileSystem For tests: the system calls of the store.
   * @throws `INVALID_ARGUMENT` for an unknown or invalid option, `FAILED_PRECONDITION` when the directory can't be used.
   */
  constructor(directory: string, options?: FileSessionStoreOptions, fileSystem: FileSystem = nodeFileSystem) {
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
    super('FileSessionStore', options?.snapshotPathPrefix);
    const path = usableDirectory(directory, fileSystem);
    const { durability = 'full', lockTimeoutMs = 10_000 } = options ?? {};
    this.#directory = directory;
    this.#shared = {
      folder: new StoreFolder(fileSystem, path, { durability, lockTimeoutMs }),
      states: new LruCache(MOST_CHARACTERS),
      sessions: new LruCache(MOST_SNAPSHOTS),
      sessionIds: new LruCache(MOST_SNAPSHOTS),
      checkpointInterval: options?.checkpointInterval ?? 25,
      maxPersistedChainLength: options?.maxPersistedChainLength,
      rejectBranching: options?.rejectBranchingSessions ?? false,
      encryption: options?.encryption,
    };
    this.#pollIntervalMs = options?.snapshotWatchPollIntervalMs ?? 2000;
    this.#runner = {
      read: (call, run) => this.#run(call, run),
      change: (call, run) => this.#shared.folder.track(this.#run(call, run)),
    };
  }

  protected tenant(id: string): TenantStore<S> {
    // A watched tenant must stay the same object, even after the cache has dropped it.
    const known = this.#watched.get(id)?.tenant ?? this.#tenants.get(id);
    if (known) return known;
    const tenant = new TenantSessions(this.#shared, id, finish);
    const made: FileTenantStore<S> = new FileTenantStore(tenant, {
      runner: this.#runner,
      watch: () => this.#watch(id, made),
    });
    this.#tenants.set(id, made, 1);
    return made;
  }

  #watch(id: string, tenant: FileTenantStore<S>): TenantWatch<S> {
    const known = this.#watched.get(id)?.watch;
    if (known) return known;
    const onIdle = (): void => void this.#watched.delete(id);
    const watch = new TenantWatch<S>(tenant.tenant, { pollIntervalMs: this.#pollIntervalMs, onIdle });
    this.#watched.set(id, { tenant, watch });
    return watch;
  }

  /** Waits for the running saves and removals. */
  protected async release(): Promise<void> {
    for (const { watch } of this.#watched.values()) watch.close();
    this.#watched.clear();
    await this.#shared.folder.close();
    this.#tenants.clear();
    this.#shared.sessions.clear();
    this.#shared.sessionIds.clear();
    this.#shared.states.clear();
  }

  #run<T>(call: Call, run: () => Promise<T>): Promise<T> {
    const { path, fs } = this.#shared.folder;
    return reportingFailures(call, { given: this.#directory, path, fs }, async () => {
      this.#assertNotForeign();
      return run();
    });
  }

  /** A directory that has this store's locks is its own. */
  #assertNotForeign(): void {
    if (this.#isChecked) return;
    const { folder } = this.#shared;
    if (!folder.fs.stat(folder.locks.path)) assertNotForeign(folder);
    this.#isChecked = true;
  }
}
