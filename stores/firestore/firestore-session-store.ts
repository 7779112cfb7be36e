import { Firestore } from '@google-cloud/firestore';
import { closed, quote } from '../../src/errors.ts';
import { copyJson } from '../../src/json/value.ts';
import { assertId } from '../../src/snapshot/ids.ts';
import { assertPolicy } from '../../src/snapshot/retention.ts';
import type {
  DeleteResult,
  Page,
  PageOptions,
  PrunePolicy,
  PruneResult,
  SaveSnapshotOptions,
  ScopeId,
  ScopeRecord,
  ScopeStore,
  SessionSnapshot,
  SessionStoreOptions,
  SessionSummary,
  SnapshotLookup,
  SnapshotMetadata,
  SnapshotMutator,
  SnapshotStore,
  StoreCapabilities,
} from '../../src/store/contract.ts';
import { KeyQueue } from '../../src/store/key-queue.ts';
import { assertFunction, checkLookup, checkSession } from '../../src/store/lookup.ts';
import { checkOptions, isBoolean, isFunction, isWhole } from '../../src/store/options.ts';
import { checkPage } from '../../src/store/page.ts';
import { checkScope, checkScopeChanges, checkScopes, scopeKey } from '../../src/store/scopes.ts';
import { tenantOf, type SnapshotPathPrefix } from '../../src/store/tenant.ts';
import { Database } from './database.ts';
import { deleteSession } from './delete-session.ts';
import { erase, type EraseResult } from './erase.ts';
import { explained } from './failures.ts';
import { listSessions, listSnapshots } from './lists.ts';
import { Meter, type FirestoreUsage } from './meter.ts';
import { isClient, isCollectionName, isShardSize } from './option-checks.ts';
import { prune, type PruneProgress } from './prune.ts';
import { deleteScope, readScopes } from './records.ts';
import { SaveRequest } from './save-request.ts';
import { saveSnapshot } from './save-snapshot.ts';
import { handOutLoaded, SnapshotReader } from './snapshot-reader.ts';
import { Caches, Tenant, type StoreSettings } from './tenant.ts';
import { Watches } from './watches.ts';

/** Options of {@link FirestoreSessionStore}. */
export interface FirestoreSessionStoreOptions {
  /**
   * The database. Unless told the store makes a client of its own, with application default credentials or, when `FIRESTORE_EMULATOR_HOST`
   * is set, for the emulator; `close()` ends that one only.
   */
  db?: Firestore;
  /** The collection of the snapshots; those of pointers, shards and scopes are named after it. `genkit-sessions` unless told. */
  collection?: string;
  /** Names the caller's tenant; callers see what was saved under their own prefix only. One tenant unless told. */
  snapshotPathPrefix?: SnapshotPathPrefix;
  /** A snapshot holds its whole state after at most so many; those in between hold what changed. 25 unless told. */
  checkpointInterval?: number;
  /** The largest shard of a whole state, in bytes; 512 KiB unless told, at most 1,000,000. */
  shardSize?: number;
  /** Lookups by `sessionId` of a session with more than one leaf throw `FAILED_PRECONDITION`; `false` unless told. */
  rejectBranchingSessions?: boolean;
  /**
   * A snapshot counts as gone so long after it was written last, in ms, and carries `expireAt` for a TTL policy of Firestore, which removes
   * it some time later. Unless told, nothing expires.
   */
  expireAfterMs?: number;
  /** The largest state, in bytes of JSON; a larger one is refused before anything is sent. 100 MB unless told. */
  maxStateBytes?: number;
  /** How long one request to Firestore may take, in ms, before the call ends as `UNAVAILABLE`; 8,000 unless told. */
  requestTimeoutMs?: number;
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
  details: false,
  durable: true,
});

/** How long a save tries again because of others, in ms. */
const PATIENCE_MS = 30_000;

/**
 * Keeps snapshots in Cloud Firestore. Any number of processes may share the database. Opens what Genkit's own `FirestoreSessionStore` wrote.
 * `docs/firestore.md` tells the layout, what a turn costs, and the rules and indexes to deploy.
 *
 * What a method hands out is the caller's own copy. Every call is a span of Genkit's tracing with the billed reads, writes and deletes.
 *
 * @example
 * const store = new FirestoreSessionStore<{ orderId?: string }>({
 *   snapshotPathPrefix: (options) => options?.context?.auth?.uid ?? 'nobody',
 * });
 * const leaf = await store.getSnapshot({ sessionId: 'support-1', context });
 */
export class FirestoreSessionStore<S = unknown> implements SnapshotStore<S>, ScopeStore {
  readonly capabilities = CAPABILITIES;
  readonly #db: Firestore;
  readonly #ownsDb: boolean;
  readonly #database: Database;
  readonly #meter = new Meter();
  readonly #caches = new Caches();
  readonly #settings: StoreSettings;
  readonly #prefix: SnapshotPathPrefix | undefined;
  readonly #snapshots = new KeyQueue();
  readonly #sessions = new KeyQueue();
  readonly #records = new KeyQueue();
  readonly #watches = new Watches<S>();
  #closed = false;

  /** @throws `INVALID_ARGUMENT` for an unknown or impossible option. */
  constructor(options?: FirestoreSessionStoreOptions) {
    checkOptions('FirestoreSessionStore', options, {
      db: isClient,
      collection: isCollectionName,
      snapshotPathPrefix: isFunction,
      checkpointInterval: isWhole(1),
      shardSize: isShardSize,
      rejectBranchingSessions: isBoolean,
      expireAfterMs: isWhole(1),
      maxStateBytes: isWhole(1),
      requestTimeoutMs: isWhole(1),
    });
    const { db, collection = 'genkit-sessions', requestTimeoutMs = 8000 } = options ?? {};
    this.#ownsDb = db === undefined;
    // After an outage gRPC would pause for up to two minutes before it connects again.
    this.#db = db ?? new Firestore({ 'grpc.max_reconnect_backoff_ms': 2000 });
    this.#database = new Database(this.#db, { collection, timeoutMs: requestTimeoutMs, meter: this.#meter });
    this.#prefix = options?.snapshotPathPrefix;
    this.#settings = {
      checkpointInterval: options?.checkpointInterval ?? 25,
      shardSize: options?.shardSize ?? 512 * 1024,
      rejectBranching: options?.rejectBranchingSessions ?? false,
      expireAfterMs: options?.expireAfterMs,
      maxStateBytes: options?.maxStateBytes ?? 100_000_000,
      patienceMs: PATIENCE_MS,
    };
  }

  async getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    const { reader } = this.#at(lookup);
    const { by, id } = checkLookup(lookup);
    return this.#call('getSnapshot', `Reading ${by} ${quote(id)}`, async () => {
      const found = await reader.find({ by, id });
      return found && handOutLoaded<S>(found, lookup);
    });
  }

  async getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    const { reader } = this.#at(lookup);
    const { by, id } = checkLookup(lookup);
    return this.#call('getSnapshotMetadata', `Reading ${by} ${quote(id)}`, async () => {
      const meta = await reader.findMetadata({ by, id });
      return meta && copyJson(meta);
    });
  }

  async saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options?: SaveSnapshotOptions,
  ): Promise<string | null> {
    const { tenant, reader } = this.#at(options);
    if (snapshotId !== undefined) assertId(snapshotId, 'snapshotId');
    assertFunction(mutator, 'mutator');
    const scopes = checkScopeChanges(options?.scopes);
    const tools = {
      tenant,
      reader,
      snapshots: this.#snapshots,
      sessions: this.#sessions,
      records: this.#records,
      onSaved: (version: Parameters<Watches<S>['saved']>[1], snapshot: () => SessionSnapshot): void =>
        this.#watches.saved(tenant.keyOf(version.id), version, snapshot),
    };
    const request = new SaveRequest(tools, { mutator, expectedLeafId: options?.expectedLeafId, scopes });
    const what = snapshotId === undefined ? 'Saving a snapshot' : `Saving snapshot ${quote(snapshotId)}`;
    return this.#call('saveSnapshot', what, () => saveSnapshot(request, snapshotId));
  }

  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options?: SessionStoreOptions,
  ): () => void {
    const place = this.#at(options);
    assertId(snapshotId, 'snapshotId');
    assertFunction(callback, 'callback');
    return this.#watches.subscribe(place, snapshotId, callback);
  }

  async listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>> {
    const { tenant } = this.#at(options);
    const sessionId = checkSession(options);
    const page = checkPage(options, ['number']);
    return this.#call('listSnapshots', `Listing session ${quote(sessionId)}`, () =>
      listSnapshots(tenant, sessionId, page),
    );
  }

  async listSessions(options?: PageOptions): Promise<Page<SessionSummary>> {
    const { tenant } = this.#at(options);
    const page = checkPage(options, ['number', 'number', 'string']);
    return this.#call('listSessions', 'Listing the sessions', () => listSessions(tenant, page));
  }

  async deleteSession(options: SessionStoreOptions & { sessionId: string }): Promise<DeleteResult> {
    const { tenant, reader } = this.#at(options);
    const sessionId = checkSession(options);
    return this.#call('deleteSession', `Deleting session ${quote(sessionId)}`, () =>
      this.#sessions.run(tenant.keyOf(sessionId), () => deleteSession(tenant, reader, sessionId)),
    );
  }

  /**
   * Removes what the policy names in the caller's tenant; what stays reads as before. It may be interrupted anywhere, and run again.
   *
   * @param options With `dryRun` nothing is removed. `onProgress` is told after each session how far the work has come.
   */
  async prune(
    policy: PrunePolicy,
    options?: SessionStoreOptions & { dryRun?: boolean; onProgress?: (progress: PruneProgress) => void },
  ): Promise<PruneResult> {
    const { tenant, reader } = this.#at(options);
    assertPolicy(policy);
    const { dryRun = false, onProgress } = options ?? {};
    const run = { dryRun, sessions: this.#sessions, ...(onProgress && { onProgress }) };
    return this.#call('prune', 'Pruning', () => prune(tenant, reader, policy, run));
  }

  async readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]> {
    const { tenant } = this.#at(options);
    const keys = checkScopes(options).map((id) => scopeKey(id));
    return this.#call('readScopes', 'Reading scopes', () => readScopes(tenant, keys));
  }

  async deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean> {
    const { tenant } = this.#at(options);
    const key = scopeKey(checkScope(options));
    return this.#call('deleteScope', 'Deleting a scope', () => deleteScope(tenant, key));
  }

  /** Removes everything of the caller's tenant from the database, whoever wrote it. */
  async erase(options?: SessionStoreOptions): Promise<EraseResult> {
    const { tenant } = this.#at(options);
    return this.#call('erase', 'Erasing', () => erase(tenant));
  }

  /** What this store object has used of Firestore so far. */
  stats(): FirestoreUsage {
    return this.#meter.total;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#watches.close();
    this.#caches.clear();
    await this.#database.drain();
    if (this.#ownsDb) await this.#db.terminate();
  }

  #at(options: SessionStoreOptions | undefined): { tenant: Tenant; reader: SnapshotReader } {
    if (this.#closed) throw closed('FirestoreSessionStore');
    const name = tenantOf(this.#prefix, options);
    const tenant = new Tenant(name, { database: this.#database, caches: this.#caches, settings: this.#settings });
    return { tenant, reader: new SnapshotReader(tenant) };
  }

  #call<T>(method: string, what: string, work: () => Promise<T>): Promise<T> {
    return this.#meter.span(method, async () => {
      try {
        return await work();
      } catch (error) {
        throw explained(error, what);
      }
    });
  }
}
