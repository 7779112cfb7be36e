import type { DocumentSnapshot, Firestore } from '@google-cloud/firestore';
import { BaseSessionStore } from '../../src/store/base-session-store.ts';
import {
  ALL_CAPABILITIES,
  type DeleteResult,
  type DeleteSessionsResult,
  type SessionStoreOptions,
  type StoreCapabilities,
} from '../../src/store/contract.ts';
import type { Encryption } from '../../src/store/encryption/encryption.ts';
import { checkSessions } from '../../src/store/check-lookup.ts';
import {
  checkOptions,
  isBoolean,
  isEncryption,
  isFunction,
  isTimerMs,
  isWhole,
} from '../../src/store/check-options.ts';
import type { SnapshotPathPrefix } from '../../src/store/name-tenant.ts';
import { Database } from './database.ts';
import { readPointer } from './format/pointer-document.ts';
import { Meter, type FirestoreUsage } from './meter.ts';
import { isClient, isCollectionName, isLifeMs, isShardSize } from './option-checks.ts';
import { forgetDeadRecords, removeRemains } from './remove/delete-session.ts';
import type { EraseResult } from './remove/erase.ts';
import { Caches, newQueues, TenantDatabase, type Shared } from './tenant-database.ts';
import { FirestoreTenantStore } from './firestore-tenant-store.ts';
import { Watches } from './watch/watches.ts';

/** Options of {@link FirestoreSessionStore}. */
export interface FirestoreSessionStoreOptions {
  /**
   * The database; a client with `useBigInt` is refused. Default: the store's own client, with application default credentials or, when
   * `FIRESTORE_EMULATOR_HOST` is set, for the emulator. `close()` closes only this one.
   */
  db?: Firestore;
  /** The collection of the snapshots; those of pointers, shards, scopes and records are named after it. Default: `genkit-sessions`. */
  collection?: string;
  /** Names the caller's tenant; callers see only the data of their own tenant. Default: one tenant for all. */
  snapshotPathPrefix?: SnapshotPathPrefix;
  /** At least one of this many successive snapshots is a checkpoint, with its whole state; the others are diffs. Default: 25. */
  checkpointInterval?: number;
  /** The largest shard of a checkpoint, in bytes, at most 1,000,000. Default: 512 KiB. */
  shardSize?: number;
  /** Lookups by `sessionId` of a session with more than one leaf throw `FAILED_PRECONDITION`. Default: `false`. */
  rejectBranchingSessions?: boolean;
  /**
   * A session expires this long after its last write, in ms: it then reads as absent, and a TTL policy of Firestore on `expireAt` may
   * remove its pointer; `prune` or `removeExpired` removes the rest. Give all stores of a collection the same value. A session on hold
   * (`holdSession`) stays. Do not combine it with `archive` of `applyRetention`: Firestore removes expired sessions without archiving them.
   * Default: never.
   */
  expireAfterMs?: number;
  /** The largest state, in bytes of JSON; a larger one is refused before anything is sent. Default: 100 MB. */
  maxStateBytes?: number;
  /** How long one request to Firestore may take, in ms, before the call ends as `UNAVAILABLE`. Default: 8,000. */
  requestTimeoutMs?: number;
  /**
   * Encrypts new data; `envelope()` of `genkitx-agents/privacy` makes one. Data that was stored in clear can still be read.
   * `docs/privacy.md` lists what stays in clear. Default: no encryption.
   */
  encryption?: Encryption;
}

/**
 * Keeps snapshots in Cloud Firestore. Any number of processes may share the database. `docs/firestore.md` shows the layout, the cost of a
 * turn, and the rules and indexes to deploy.
 *
 * Results of methods are the caller's own copies. Every call is a span of Genkit's tracing with the billed reads, writes and deletes.
 *
 * @example
 * const store = new FirestoreSessionStore<{ orderId?: string }>({
 *   snapshotPathPrefix: (options) => options?.context?.auth?.uid ?? 'anonymous',
 * });
 * const leaf = await store.getSnapshot({ sessionId: 'support-1', context });
 */
export class FirestoreSessionStore<S = unknown> extends BaseSessionStore<S> {
  /** What this store can do. */
  readonly capabilities: Readonly<StoreCapabilities> = ALL_CAPABILITIES;
  readonly #shared: Shared;
  readonly #meter = new Meter('FirestoreSessionStore');
  readonly #watches = new Watches<S>();

  /** @throws `INVALID_ARGUMENT` for an unknown or invalid option. */
  constructor(options: FirestoreSessionStoreOptions = {}) {
    checkOptions('FirestoreSessionStore', options, {
      db: isClient,
      collection: isCollectionName,
      snapshotPathPrefix: isFunction,
      checkpointInterval: isWhole(1),
      shardSize: isShardSize,
      rejectBranchingSessions: isBoolean,
      expireAfterMs: isLifeMs,
      maxStateBytes: isWhole(1),
      requestTimeoutMs: isTimerMs(1),
      encryption: isEncryption,
    });
    super('FirestoreSessionStore', options.snapshotPathPrefix);
    const { db, collection = 'genkit-sessions', requestTimeoutMs = 8000 } = options;
    this.#shared = {
      database: new Database(db, { collection, timeoutMs: requestTimeoutMs, meter: this.#meter }),
      caches: new Caches(),
      queues: newQueues(),
      encryption: options.encryption,
      settings: {
        checkpointInterval: options.checkpointInterval ?? 25,
        shardSize: options.shardSize ?? 512 * 1024,
        rejectBranching: options.rejectBranchingSessions ?? false,
        expireAfterMs: options.expireAfterMs,
        maxStateBytes: options.maxStateBytes ?? 100_000_000,
      },
    };
  }

  /**
   * `deleteSession` for many sessions, with about one request for 100 documents.
   *
   * @throws `INVALID_ARGUMENT` when `sessionIds` is not a list of session ids.
   */
  async deleteSessions(
    options: SessionStoreOptions & { sessionIds: readonly string[] },
  ): Promise<DeleteSessionsResult> {
    return this.tenant(this.tenantName(options)).deleteSessions(checkSessions(options));
  }

  /** Removes everything of the caller's tenant from the database. */
  async erase(options?: SessionStoreOptions): Promise<EraseResult> {
    return this.tenant(this.tenantName(options)).erase();
  }

  /**
   * Removes the snapshots, shards and records of an expired session. For a Cloud Function that runs when Firestore's TTL policy has removed the
   * session's pointer, a document of `<collection>-pointers/<tenant>/pointers`; without such a function `prune` removes them.
   *
   * @param pointer The removed document, as the function's event carries it.
   * @returns The removed documents.
   */
  async removeExpired(pointer: DocumentSnapshot): Promise<DeleteResult> {
    return this.#shared.database.call('removeExpired', 'Removing an expired session', async () => {
      const data = new TenantDatabase('', this.#shared, pointer.ref.parent.parent!.id);
      const expired = readPointer(pointer);
      await data.sealerOf(expired).forget();
      await forgetDeadRecords(data, expired.sessionId);
      const { snapshots, shards } = await removeRemains(data, [expired.sessionId], { keepsWaiting: true });
      return { snapshots, shards };
    });
  }

  /** The use of Firestore by this store object so far. */
  stats(): FirestoreUsage {
    return this.#meter.total;
  }

  protected tenant(id: string): FirestoreTenantStore<S> {
    return new FirestoreTenantStore(new TenantDatabase(id, this.#shared), this.#watches);
  }

  protected async release(): Promise<void> {
    this.#watches.close();
    await this.#shared.database.close();
    this.#shared.caches.clear();
  }
}
