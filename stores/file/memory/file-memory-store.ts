import { BaseMemoryStore, type MemoryTenant } from '../../../src/store/memory/base-memory-store.ts';
import type { MemoryStoreCapabilities } from '../../../src/store/memory/contract.ts';
import { checkOptions, isFunction, isEncryption, isOneOf, isWhole } from '../../../src/store/check-options.ts';
import type { Encryption } from '../../../src/store/encryption/encryption.ts';
import type { SnapshotPathPrefix } from '../../../src/store/name-tenant.ts';
import { KeyQueue } from '../../../src/store/parts/key-queue.ts';
import { LruCache } from '../../../src/store/parts/lru-cache.ts';
import { nodeFileSystem, type FileSystem } from '../disk/file-system.ts';
import { StoreFolder, type Durability } from '../disk/store-folder.ts';
import { usableDirectory } from '../disk/usable-directory.ts';
import type { LoadedLog } from './memory-log.ts';
import { FileMemoryTenant, type SharedMemories } from './memory-tenant.ts';

/** Options of {@link FileMemoryStore}. */
export interface FileMemoryStoreOptions {
  /**
   * Names the caller's tenant; callers see only the data of their own tenant. The session stores of the agents need the same tenants,
   * or smaller ones: all sessions of a tenant must belong to one tenant of memories. Default: one tenant for all.
   */
  pathPrefix?: SnapshotPathPrefix;
  /**
   * Encrypts new data; `envelope()` of `genkitx-agents/privacy` makes one. Data that was stored in clear can still be read.
   * `docs/privacy.md` lists what stays in clear. Default: no encryption.
   */
  encryption?: Encryption;
  /**
   * `full`: a commit that has returned survives a power failure, because it was flushed to the disk. `fast`: it survives the end of the
   * process; the system flushes it later. Default: `full`.
   */
  durability?: Durability;
  /** How long a commit waits for other processes that write to the same scope, in ms, before it throws `ABORTED`. Default: 10000. */
  lockTimeoutMs?: number;
}

const CAPABILITIES: Readonly<MemoryStoreCapabilities> = Object.freeze({ shared: true, vectorDimensions: 4096 });

/** Bytes of the logs whose memories are kept in this process between calls. */
const MOST_BYTES = 512 * 1024 * 1024;

/**
 * Keeps memories in files below a directory: a log for each scope, a file for each note and for each job. Several processes of a machine may
 * share the directory, which may be that of a `FileSessionStore`. Results of methods are frozen, or the caller's own copies.
 *
 * @example
 * const memories = new FileMemoryStore('./.genkit/memories');
 * const scope = { scope: 'user', appName: 'barista', userId: 'ada' } as const;
 * const { items } = await memories.query(scope);
 */
export class FileMemoryStore extends BaseMemoryStore {
  /** What this store can do. */
  readonly capabilities = CAPABILITIES;
  readonly #shared: SharedMemories;

  /**
   * @param directory The directory of the files; the first commit creates it. Relative to the working directory.
   * @param fileSystem For tests: the system calls of the store.
   * @throws `INVALID_ARGUMENT` for an unknown or invalid option, `FAILED_PRECONDITION` when the directory can't be used.
   */
  constructor(directory: string, options: FileMemoryStoreOptions = {}, fileSystem: FileSystem = nodeFileSystem) {
    checkOptions('FileMemoryStore', options, {
      pathPrefix: isFunction,
      encryption: isEncryption,
      durability: isOneOf('full', 'fast'),
      lockTimeoutMs: isWhole(0),
    });
    super('FileMemoryStore', options.pathPrefix);
    const { durability = 'full', lockTimeoutMs = 10_000, encryption } = options;
    const usable = usableDirectory(directory, fileSystem, 'FileMemoryStore');
    this.#shared = {
      folder: new StoreFolder(usable, { durability, lockTimeoutMs }),
      loaded: new LruCache<LoadedLog>(MOST_BYTES),
      loads: new KeyQueue(),
      encryption,
      reported: new Set(),
    };
  }

  protected openTenant(id: string): MemoryTenant {
    return new FileMemoryTenant(this.#shared, id);
  }

  /** Waits for the running calls. */
  protected async release(): Promise<void> {
    await this.#shared.folder.close();
    this.#shared.loaded.clear();
  }
}
