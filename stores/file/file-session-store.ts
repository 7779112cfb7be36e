import { closed, quote } from '../../src/errors.ts';
import { copyJson } from '../../src/json/value.ts';
import { assertId } from '../../src/snapshot/ids.ts';
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
import { assertFunction, checkLookup, checkSession } from '../../src/store/lookup.ts';
import { checkOptions, isBoolean, isFunction, isOneOf, isWhole } from '../../src/store/options.ts';
import { checkPage } from '../../src/store/page.ts';
import { checkScope, checkScopeChanges, checkScopes, describeScope } from '../../src/store/scopes.ts';
import { tenantOf, type SnapshotPathPrefix } from '../../src/store/tenant.ts';
import { nodeFileSystem, type FileSystem } from './file-system.ts';
import { findSession, findSnapshot, type FoundSnapshot } from './find-snapshot.ts';
import { REMOVED_OR_NOT, reportingFailures } from './io-error.ts';
import { listSessions, listSnapshots } from './lists.ts';
import { LruCache } from '../chain/lru-cache.ts';
import { handOutLoaded, readMetadata, readSnapshot } from './read-snapshot.ts';
import { deleteSession, prune } from './remove-snapshots.ts';
import { Save, type SaveSettings } from './save-snapshot.ts';
import { ScopeRecords } from './scope-records.ts';
import type { Session } from './session.ts';
import { StateCache } from './state-cache.ts';
import { StoreFolder, type Durability } from './store-folder.ts';
import { KnownSessions, Tenant } from './tenant.ts';
import { usableDirectory } from './usable-directory.ts';
import { Watches } from './watches.ts';

/** Options of {@link FileSessionStore}. */
export interface FileSessionStoreOptions {
  /**
   * A new snapshot removes those before it, on its own path to the root, that are further than so many from every leaf of their session,
   * leaves counted; running ones stay. A rewrite removes nothing; of other paths `prune` takes care. Unless told, nothing is removed.
   */
  maxPersistedChainLength?: number;
  /** Names the caller's tenant; callers see what was saved under their own prefix only. One tenant unless told. */
  snapshotPathPrefix?: SnapshotPathPrefix;
  /** Lookups by `sessionId` of a session with more than one leaf throw `FAILED_PRECONDITION`; `false` unless told. */
  rejectBranchingSessions?: boolean;
  /** How often watchers look for changes that the system did not tell of, in ms; 2,000 unless told. */
  snapshotWatchPollIntervalMs?: number;
  /**
   * What an acknowledged save outlives. `full`, the default: the end of the machine's power, because it has been flushed to the disk.
   * `fast`: the end of the process; when to flush is left to the system.
   */
  durability?: Durability;
  /**
   * A snapshot holds its whole state after at most so many; those in between hold what changed. 25 unless told. With 1 each is a full
   * snapshot, and Genkit's own file store can read the directory.
   */
  checkpointInterval?: number;
  /** How long a save waits for other processes that save to the same session, in ms, before it throws `ABORTED`; 10,000 unless told. */
  lockTimeoutMs?: number;
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

/** Tenants whose state is kept between calls. */
const MOST_TENANTS = 1000;

/**
 * Keeps snapshots in files below a directory, one file each. Several processes of a machine may share the directory. Opens a directory that
 * Genkit's own `FileSessionStore` wrote. `docs/file-store.md` tells the layout and what file systems it is for.
 *
 * Reading makes no files and no directories. What a method hands out is the caller's own copy.
 *
 * @example
 * const store = new FileSessionStore<{ orderId?: string }>('./.genkit/snapshots', { maxPersistedChainLength: 100 });
 * const id = await store.saveSnapshot(undefined, () => ({
 *   sessionId: 'support-1',
 *   createdAt: new Date().toISOString(),
 *   status: 'completed',
 *   state: { custom: { orderId: 'A-17' } },
 * }));
 * const leaf = await store.getSnapshot({ sessionId: 'support-1' });
 */
export class FileSessionStore<S = unknown> implements SnapshotStore<S>, ScopeStore {
  readonly capabilities = CAPABILITIES;
  readonly #folder: StoreFolder;
  readonly #prefix: SnapshotPathPrefix | undefined;
  readonly #rejectBranching: boolean;
  readonly #settings: SaveSettings;
  readonly #tenants = new LruCache<Tenant>(MOST_TENANTS);
  readonly #sessions = new KnownSessions();
  readonly #watches: Watches<S>;
  /** Calls that change something, and have not ended. */
  readonly #changes = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /**
   * @param directory Where to keep the files; made by the first save. Relative to the working directory.
   * @param fileSystem For tests: what the store does its system calls through.
   * @throws `INVALID_ARGUMENT` for an unknown or impossible option, `FAILED_PRECONDITION` when the directory can't be one.
   */
  constructor(directory: string, options?: FileSessionStoreOptions, fileSystem: FileSystem = nodeFileSystem) {
    checkOptions('FileSessionStore', options, {
      maxPersistedChainLength: isWhole(1),
      snapshotPathPrefix: isFunction,
      rejectBranchingSessions: isBoolean,
      snapshotWatchPollIntervalMs: isWhole(1),
      durability: isOneOf('full', 'fast'),
      checkpointInterval: isWhole(1),
      lockTimeoutMs: isWhole(0),
    });
    const path = usableDirectory(directory, fileSystem);
    const {
      durability = 'full',
      lockTimeoutMs = 10_000,
      checkpointInterval = 25,
      maxPersistedChainLength,
    } = options ?? {};
    this.#folder = new StoreFolder(fileSystem, path, { durability, lockTimeoutMs });
    this.#prefix = options?.snapshotPathPrefix;
    this.#rejectBranching = options?.rejectBranchingSessions ?? false;
    this.#settings = { cache: new StateCache(), checkpointInterval, maxPersistedChainLength };
    this.#watches = new Watches({
      read: async (session, snapshotId) => {
        const loaded = await readSnapshot(session, snapshotId, this.#settings.cache);
        return loaded && { node: loaded.node, snapshot: handOutLoaded<S>(loaded) };
      },
      pollIntervalMs: options?.snapshotWatchPollIntervalMs ?? 2000,
    });
  }

  async getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    return this.#find(lookup, ({ session, node }) => this.#read(session, node.snapshotId, lookup));
  }

  async getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    return this.#find(lookup, async ({ session, node }) => {
      const meta = await readMetadata(session, node.snapshotId);
      return meta && copyJson(meta);
    });
  }

  async saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options?: SaveSnapshotOptions,
  ): Promise<string | null> {
    const tenant = this.#tenantOf(options);
    if (snapshotId !== undefined) assertId(snapshotId, 'snapshotId');
    assertFunction(mutator, 'mutator');
    const scopes = checkScopeChanges(options?.scopes);
    const what = snapshotId === undefined ? 'Saving a snapshot' : `Saving snapshot ${quote(snapshotId)}`;
    const save = new Save(tenant, mutator, {
      expectedLeafId: options?.expectedLeafId,
      scopes,
      settings: this.#settings,
    });
    return this.#change(what, () => save.run(snapshotId));
  }

  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options?: SessionStoreOptions,
  ): () => void {
    const tenant = this.#tenantOf(options);
    assertId(snapshotId, 'snapshotId');
    assertFunction(callback, 'callback');
    return this.#watches.subscribe(tenant, snapshotId, callback);
  }

  async listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>> {
    const tenant = this.#tenantOf(options);
    const sessionId = checkSession(options);
    const page = checkPage(options, ['number']);
    return reportingFailures(`Listing session ${quote(sessionId)}`, async () => {
      const session = await findSession(tenant, sessionId);
      return session ? listSnapshots(session, page) : { items: [] };
    });
  }

  async listSessions(options?: PageOptions): Promise<Page<SessionSummary>> {
    const tenant = this.#tenantOf(options);
    const page = checkPage(options, ['number', 'string']);
    return reportingFailures('Listing the sessions', () => listSessions(tenant, page));
  }

  async deleteSession(options: SessionStoreOptions & { sessionId: string }): Promise<DeleteResult> {
    const tenant = this.#tenantOf(options);
    const sessionId = checkSession(options);
    return this.#change(`Deleting session ${quote(sessionId)}`, () => deleteSession(tenant, sessionId), REMOVED_OR_NOT);
  }

  async prune(policy: PrunePolicy, options?: SessionStoreOptions & { dryRun?: boolean }): Promise<PruneResult> {
    const tenant = this.#tenantOf(options);
    if (options?.dryRun) return reportingFailures('Looking what to prune', () => prune(tenant, policy, true));
    return this.#change('Pruning', () => prune(tenant, policy, false), REMOVED_OR_NOT);
  }

  async readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]> {
    const { folder } = this.#tenantOf(options);
    const scopes = checkScopes(options);
    const records = new ScopeRecords(folder);
    return reportingFailures('Reading records', () => Promise.all(scopes.map((id) => records.read(id))));
  }

  async deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean> {
    const { folder } = this.#tenantOf(options);
    const scope = checkScope(options);
    const records = new ScopeRecords(folder);
    return this.#change(
      `Deleting the state of ${describeScope(scope)}`,
      () => records.remove(scope),
      'The record is as it was, or gone',
    );
  }

  /** Ends all watches, waits until the saves and removals under way have ended, and forgets everything. Calls from now on are refused. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#watches.close();
    await Promise.allSettled(this.#changes);
    this.#tenants.clear();
    this.#sessions.clear();
    this.#settings.cache.clear();
    this.#folder.close();
  }

  async #change<T>(what: string, call: () => Promise<T>, consequence?: string): Promise<T> {
    const change = reportingFailures(
      what,
      () => {
        this.#folder.prepare();
        return call();
      },
      consequence,
    );
    this.#changes.add(change);
    try {
      return await change;
    } finally {
      this.#changes.delete(change);
    }
  }

  #tenantOf(options: SessionStoreOptions | undefined): Tenant {
    if (this.#closing) throw closed('FileSessionStore');
    const name = tenantOf(this.#prefix, options);
    // Who listens has to be told of this tenant's own saves, however many others were used since.
    const known = this.#watches.tenant(name) ?? this.#tenants.get(name);
    if (known) return known;
    const tenant = new Tenant(this.#folder, name, this.#sessions);
    this.#tenants.set(name, tenant, 1);
    return tenant;
  }

  /** Hands the snapshot that a lookup means to `use`. */
  async #find<T>(
    lookup: SnapshotLookup,
    use: (found: FoundSnapshot) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const tenant = this.#tenantOf(lookup);
    const checked = checkLookup(lookup);
    return reportingFailures(`Reading ${checked.by} ${quote(checked.id)}`, async () => {
      const found = await findSnapshot(tenant, checked, { rejectBranching: this.#rejectBranching });
      return found && use(found);
    });
  }

  async #read(session: Session, snapshotId: string, lookup?: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    const loaded = await readSnapshot(session, snapshotId, this.#settings.cache);
    return loaded && handOutLoaded<S>(loaded, lookup);
  }
}
