import type { Firestore } from '@google-cloud/firestore';
import { checkOptions, isEncryption, isFunction, isTimerMs } from '../../../src/store/check-options.ts';
import type { Encryption } from '../../../src/store/encryption/encryption.ts';
import { BaseMemoryStore, type MemoryTenant } from '../../../src/store/memory/base-memory-store.ts';
import type { MemoryStoreCapabilities } from '../../../src/store/memory/contract.ts';
import type { SnapshotPathPrefix } from '../../../src/store/name-tenant.ts';
import { KeyQueue } from '../../../src/store/parts/key-queue.ts';
import { Database } from '../database.ts';
import { Meter, type FirestoreUsage } from '../meter.ts';
import { isClient, isCollectionName } from '../option-checks.ts';
import { FirestoreMemoryTenant } from './firestore-memory-tenant.ts';
import type { SharedMemories } from './memory-database.ts';

/** Options of {@link FirestoreMemoryStore}. */
export interface FirestoreMemoryStoreOptions {
  /**
   * The database. Default: the store's own client, with application default credentials or, when `FIRESTORE_EMULATOR_HOST` is set, for
   * the emulator. `close()` closes only this one.
   */
  db?: Firestore;
  /** The collection of the scopes; that of jobs is named after it. Default: `genkit-memories`. */
  collection?: string;
  /**
   * Names the caller's tenant; callers see only the data of their own tenant. The session stores of the agents need the same tenants,
   * or smaller ones: all sessions of a tenant must belong to one tenant of memories. Default: one tenant for all.
   */
  pathPrefix?: SnapshotPathPrefix;
  /** How long one request to Firestore may take, in ms, before the call ends as `UNAVAILABLE`. Default: 8,000. */
  requestTimeoutMs?: number;
  /**
   * Encrypts new data; `envelope()` of `genkitx-agents/privacy` makes one. Embeddings stay in clear, because Firestore
   * searches them. Data that was stored in clear can still be read. Default: no encryption.
   */
  encryption?: Encryption;
}

const CAPABILITIES: Readonly<MemoryStoreCapabilities> = Object.freeze({ shared: true, vectorDimensions: 2048 });

/**
 * Keeps memories in Cloud Firestore. Any number of processes may share the database. Firestore itself runs queries by vector: deploy the indexes
 * of `firestore.indexes.json`, and add one for the dimensions of your embedder if they are not among them.
 *
 * Results of methods are frozen, or the caller's own copies. Every call is a span of Genkit's tracing with the billed reads, writes and deletes.
 *
 * @example
 * const memories = new FirestoreMemoryStore();
 * const scope = { scope: 'user', appName: 'barista', userId: 'ada' } as const;
 * const { items } = await memories.query(scope);
 */
export class FirestoreMemoryStore extends BaseMemoryStore {
  /** What this store can do. */
  readonly capabilities = CAPABILITIES;
  readonly #shared: SharedMemories;
  readonly #meter = new Meter('FirestoreMemoryStore');

  /** @throws `INVALID_ARGUMENT` for an unknown or invalid option. */
  constructor(options: FirestoreMemoryStoreOptions = {}) {
    checkOptions('FirestoreMemoryStore', options, {
      db: isClient,
      collection: isCollectionName,
      pathPrefix: isFunction,
      requestTimeoutMs: isTimerMs(1),
      encryption: isEncryption,
    });
    super('FirestoreMemoryStore', options.pathPrefix);
    const { db, collection = 'genkit-memories', requestTimeoutMs = 8000, encryption } = options;
    const settings = { collection, timeoutMs: requestTimeoutMs, meter: this.#meter };
    this.#shared = { database: new Database(db, settings), queue: new KeyQueue(), encryption };
  }

  /** The use of Firestore by this store object so far. */
  stats(): FirestoreUsage {
    return this.#meter.total;
  }

  protected openTenant(id: string): MemoryTenant {
    return new FirestoreMemoryTenant(this.#shared, id);
  }

  protected release(): Promise<void> {
    return this.#shared.database.close();
  }
}
