import { closed } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import { assertPolicy } from '../snapshot/retention.ts';
import type {
  CheckOptions,
  CheckResult,
  CheckStore,
  DeleteResult,
  ListSessionsOptions,
  Page,
  PageOptions,
  PrunePolicy,
  PruneResult,
  ReadRecordsOptions,
  RecordStore,
  SaveSnapshotOptions,
  ScopeChange,
  ScopeId,
  ScopeRecord,
  ScopeStore,
  SessionDetails,
  SessionRecord,
  SessionSnapshot,
  SessionStoreOptions,
  SessionSummary,
  SnapshotLookup,
  SnapshotMetadata,
  SnapshotMutator,
  SnapshotStore,
  StoreCapabilities,
  WriteRecordOptions,
} from './contract.ts';
import { assertFunction, checkLookup, checkSession, type Lookup } from './check-lookup.ts';
import { checkRecordRead, checkRecordWrite, type RecordRead, type RecordWrite } from './records/session-records.ts';
import { isErasureSession } from './records/erasure.ts';
import { checkScopeChanges, checkScopes, scopeKey } from './records/record-scopes.ts';
import { checkOptions, isAny, isBoolean, isFunction, isWhole, type OptionCheck } from './check-options.ts';
import { StoreCheck } from './parts/store-check.ts';
import { checkDetails } from './list/session-summary.ts';
import { nameTenant, type SnapshotPathPrefix } from './name-tenant.ts';

type Awaitable<T> = T | Promise<T>;

/** A checked save. */
export interface SaveRequest<S> {
  /** The snapshot to create or rewrite; `undefined`: the answer's own `snapshotId`, else a new id. */
  readonly snapshotId: string | undefined;
  readonly mutator: SnapshotMutator<S>;
  readonly expectedLeafId: string | null | undefined;
  readonly ifSnapshot: string | undefined;
  /** By `scopeKey`. */
  readonly scopes: ReadonlyMap<string, ScopeChange>;
  readonly session: SessionDetails | undefined;
}

export interface PruneOptions {
  readonly dryRun: boolean;
  /** `undefined`: all sessions, and the data that belongs to no session. */
  readonly sessionId: string | undefined;
}

/** One tenant of a store. Arguments arrive checked, and the store is open; the meaning of each method is that of the contract. */
export interface TenantStore<S> {
  getSnapshot(lookup: Lookup): Awaitable<SessionSnapshot<S> | undefined>;
  getSnapshotMetadata(lookup: Lookup): Awaitable<SnapshotMetadata | undefined>;
  saveSnapshot(request: SaveRequest<S>): Awaitable<string | null>;
  onSnapshotStateChange(snapshotId: string, callback: (snapshot: SessionSnapshot<S>) => void): () => void;
  listSnapshots(sessionId: string, page: PageOptions): Awaitable<Page<SnapshotMetadata>>;
  listSessions(page: ListSessionsOptions): Awaitable<Page<SessionSummary>>;
  deleteSession(sessionId: string, expectedLeafId: string | undefined): Awaitable<DeleteResult>;
  prune(policy: PrunePolicy, options: PruneOptions): Awaitable<PruneResult>;
  /** @param keys By `scopeKey`. */
  readScopes(keys: readonly string[]): Awaitable<ScopeRecord[]>;
  /** @param key By `scopeKey`. */
  deleteScope(key: string): Awaitable<boolean>;
  listScopes(page: PageOptions): Awaitable<Page<ScopeId>>;
  readRecords(request: RecordRead): Awaitable<SessionRecord[]>;
  writeRecord(request: RecordWrite): Awaitable<string | null>;
  /** Reports what it finds to `check`. */
  check(check: StoreCheck): Awaitable<void>;
}

/** The names of a call's options. */
function named(...names: string[]): Readonly<Record<string, OptionCheck>> {
  return Object.fromEntries(['context', ...names].map((name) => [name, isAny]));
}

/** The options of the calls. Those that read by ids are not here: Genkit's runtime hands on to lookups what its client has sent. */
const OPTIONS = {
  saveSnapshot: named('expectedLeafId', 'ifSnapshot', 'scopes', 'session'),
  onSnapshotStateChange: named(),
  listSnapshots: named('sessionId', 'limit', 'cursor'),
  listSessions: named('ownerId', 'limit', 'cursor'),
  deleteSession: named('sessionId', 'expectedLeafId'),
  prune: named('dryRun', 'sessionId'),
  readScopes: named('scopes'),
  deleteScope: named('scope'),
  listScopes: named('limit', 'cursor'),
  writeRecord: named('sessionId', 'kind', 'key', 'value', 'expectedRevision', 'ifSnapshot'),
};

/**
 * The public side of a store: checks the arguments of each call, finds the caller's tenant, and calls that tenant's {@link TenantStore}.
 * Each store of this package extends it and implements a `TenantStore`.
 *
 * Methods of a `TenantStore` may return without a promise, so a method of the in-memory store runs without interruption.
 */
export abstract class BaseSessionStore<S> implements SnapshotStore<S>, ScopeStore, RecordStore, CheckStore {
  abstract readonly capabilities: Readonly<StoreCapabilities>;
  readonly #name: string;
  readonly #prefix: SnapshotPathPrefix | undefined;
  #closing: Promise<void> | undefined;

  /** @param name The class as its users know it, for messages. */
  protected constructor(name: string, prefix: SnapshotPathPrefix | undefined) {
    this.#name = name;
    this.#prefix = prefix;
  }

  /** The tenant of a name; called for each call of the store. */
  protected abstract tenant(id: string): TenantStore<S>;

  /** Ends what the store opened; called once. */
  protected abstract release(): Awaitable<void>;

  async getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    return this.#tenantStore(lookup).getSnapshot(checkLookup(lookup));
  }

  async getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    return this.#tenantStore(lookup).getSnapshotMetadata(checkLookup(lookup));
  }

  async saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options?: SaveSnapshotOptions,
  ): Promise<string | null> {
    const tenant = this.#tenantStore(options, 'saveSnapshot');
    if (snapshotId !== undefined) assertId(snapshotId, 'snapshotId');
    assertFunction(mutator, 'mutator');
    const { expectedLeafId, ifSnapshot } = options ?? {};
    if (typeof expectedLeafId === 'string') assertId(expectedLeafId, 'expectedLeafId');
    if (ifSnapshot !== undefined) assertId(ifSnapshot, 'ifSnapshot');
    const scopes = checkScopeChanges(options?.scopes);
    return tenant.saveSnapshot({
      snapshotId,
      mutator,
      expectedLeafId,
      ifSnapshot,
      scopes,
      session: checkDetails(options?.session),
    });
  }

  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options?: SessionStoreOptions,
  ): () => void {
    const tenant = this.#tenantStore(options, 'onSnapshotStateChange');
    assertId(snapshotId, 'snapshotId');
    assertFunction(callback, 'callback');
    return tenant.onSnapshotStateChange(snapshotId, callback);
  }

  async listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>> {
    return this.#tenantStore(options, 'listSnapshots').listSnapshots(checkSession(options), options);
  }

  async listSessions(options: ListSessionsOptions = {}): Promise<Page<SessionSummary>> {
    const tenant = this.#tenantStore(options, 'listSessions');
    if (options.ownerId !== undefined) assertId(options.ownerId, 'ownerId');
    const page = await tenant.listSessions(options);
    return { ...page, items: page.items.filter((session) => !isErasureSession(session)) };
  }

  async deleteSession(
    options: SessionStoreOptions & { sessionId: string; expectedLeafId?: string },
  ): Promise<DeleteResult> {
    const tenant = this.#tenantStore(options, 'deleteSession');
    const sessionId = checkSession(options);
    if (options.expectedLeafId !== undefined) assertId(options.expectedLeafId, 'expectedLeafId');
    return tenant.deleteSession(sessionId, options.expectedLeafId);
  }

  async prune(
    policy: PrunePolicy,
    options: SessionStoreOptions & { dryRun?: boolean; sessionId?: string } = {},
  ): Promise<PruneResult> {
    const tenant = this.#tenantStore(options, 'prune');
    assertPolicy(policy);
    const { dryRun = false, sessionId } = options;
    if (sessionId !== undefined) assertId(sessionId, 'sessionId');
    return tenant.prune(policy, { dryRun, sessionId });
  }

  async readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]> {
    return this.#tenantStore(options, 'readScopes').readScopes(checkScopes(options));
  }

  async deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean> {
    return this.#tenantStore(options, 'deleteScope').deleteScope(scopeKey(options?.scope));
  }

  async listScopes(options: PageOptions = {}): Promise<Page<ScopeId>> {
    return this.#tenantStore(options, 'listScopes').listScopes(options);
  }

  async readRecords(options: ReadRecordsOptions): Promise<SessionRecord[]> {
    return this.#tenantStore(options).readRecords(checkRecordRead(options));
  }

  async writeRecord(options: WriteRecordOptions): Promise<string | null> {
    return this.#tenantStore(options, 'writeRecord').writeRecord(checkRecordWrite(options));
  }

  async check(options: CheckOptions = {}): Promise<CheckResult> {
    const { context: _, ...rest } = options;
    checkOptions('check', rest, { repair: isBoolean, graceMs: isWhole(0), onProgress: isFunction });
    const tenant = this.tenantName(options);
    const check = new StoreCheck(tenant, options);
    await this.tenant(tenant).check(check);
    return check.result;
  }

  close(): Promise<void> {
    this.#closing ??= (async () => this.release())();
    return this.#closing;
  }

  /** The name of the caller's tenant, in an open store. */
  protected tenantName(options: SessionStoreOptions | undefined): string {
    if (this.#closing) throw closed(this.#name);
    return nameTenant(this.#prefix, options);
  }

  #tenantStore(options: SessionStoreOptions | undefined, call?: keyof typeof OPTIONS): TenantStore<S> {
    if (call) checkOptions(call, options, OPTIONS[call]);
    return this.tenant(this.tenantName(options));
  }
}
