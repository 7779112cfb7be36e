import { closed, failedPrecondition, quote } from '../../src/errors.ts';
import { copyJson } from '../../src/json/value.ts';
import { assertId, reserveSnapshotId } from '../../src/snapshot/ids.ts';
import { assertPolicy, planRetention } from '../../src/snapshot/retention.ts';
import { revise, sessionOf, type SessionSnapshotInput } from '../../src/snapshot/snapshot.ts';
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
import { assertExpectedLeaf, assertFunction, checkLookup, checkSession, resolveLeaf } from '../../src/store/lookup.ts';
import { checkOptions, isBoolean, isFunction } from '../../src/store/options.ts';
import { checkPage, pageOf } from '../../src/store/page.ts';
import { checkScope, checkScopeChanges, checkScopes, scopeKey } from '../../src/store/scopes.ts';
import { tenantOf, type SnapshotPathPrefix } from '../../src/store/tenant.ts';
import { WatchHub } from '../../src/store/watch-hub.ts';
import { draftScopes, type ScopeDraft } from './scope-drafts.ts';
import { RecentState } from './packed-state.ts';
import { SnapshotRecord } from './snapshot-record.ts';
import { summarize } from '../../src/store/session-summary.ts';
import { refuseCycle } from '../../src/snapshot/lineage.ts';
import { TenantData } from './tenant-data.ts';

/** Options of {@link InMemorySessionStore}. */
export interface InMemorySessionStoreOptions {
  /** Lookups by `sessionId` of a session with more than one leaf throw `FAILED_PRECONDITION`; `false` unless told. */
  rejectBranchingSessions?: boolean;
  /** Names the caller's tenant; callers see what was saved under their own prefix only. One tenant unless told. */
  snapshotPathPrefix?: SnapshotPathPrefix;
}

const CAPABILITIES: Readonly<StoreCapabilities> = Object.freeze({
  watch: true,
  watchAcrossProcesses: false,
  metadata: true,
  list: true,
  delete: true,
  prune: true,
  compareLeaf: true,
  scopes: true,
  durable: false,
});

/** What a mutator answered, and the snapshot it was asked about. */
interface Draft<S> {
  readonly id: string;
  readonly current: SnapshotRecord | undefined;
  readonly answer: SessionSnapshotInput<S>;
}

/**
 * Keeps snapshots in the memory of this process; they end with it, or with `close()`. For tests, development, and sessions that need not
 * outlive their server.
 *
 * Snapshots share what their states have in common, so a session takes about the memory of what its turns added, however many snapshots it
 * has. What a method hands out is the caller's own copy.
 *
 * @example
 * const store = new InMemorySessionStore<{ orderId?: string }>();
 * const id = await store.saveSnapshot(undefined, () => ({
 *   sessionId: 'support-1',
 *   createdAt: new Date().toISOString(),
 *   status: 'completed',
 *   state: { custom: { orderId: 'A-17' } },
 * }));
 * const leaf = await store.getSnapshot({ sessionId: 'support-1' });
 */
export class InMemorySessionStore<S = unknown> implements SnapshotStore<S>, ScopeStore {
  readonly capabilities = CAPABILITIES;
  readonly #rejectBranching: boolean;
  readonly #prefix: SnapshotPathPrefix | undefined;
  readonly #tenants = new Map<string, TenantData>();
  readonly #watchers = new WatchHub<S>();
  readonly #recent = new RecentState();
  #commits = 0;
  #closed = false;

  constructor(options?: InMemorySessionStoreOptions) {
    checkOptions('InMemorySessionStore', options, {
      rejectBranchingSessions: isBoolean,
      snapshotPathPrefix: isFunction,
    });
    this.#rejectBranching = options?.rejectBranchingSessions ?? false;
    this.#prefix = options?.snapshotPathPrefix;
  }

  async getSnapshot(lookup: SnapshotLookup): Promise<SessionSnapshot<S> | undefined> {
    return this.#find(lookup)?.snapshot(lookup);
  }

  async getSnapshotMetadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    return this.#find(lookup)?.metadata();
  }

  // Nothing is awaited between the read and the write, which makes them one step for every other caller in the process.
  async saveSnapshot(
    snapshotId: string | undefined,
    mutator: SnapshotMutator<S>,
    options?: SaveSnapshotOptions,
  ): Promise<string | null> {
    const tenantId = this.#tenantOf(options);
    if (snapshotId !== undefined) assertId(snapshotId, 'snapshotId');
    assertFunction(mutator, 'mutator');
    const changes = checkScopeChanges(options?.scopes);
    const draft = this.#ask(tenantId, snapshotId, mutator);
    if (!draft) return null;
    const scopes = draftScopes(this.#tenants.get(tenantId), changes);
    this.#assertUntouched(tenantId, draft, scopes);
    const record = this.#commit(tenantId, draft, scopes, options?.expectedLeafId);
    if (this.#watchers.size > 0) {
      this.#watchers.publish(watchKey(tenantId, draft.id), record.status, () => record.snapshot());
    }
    return draft.id;
  }

  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot<S>) => void,
    options?: SessionStoreOptions,
  ): () => void {
    const tenantId = this.#tenantOf(options);
    assertId(snapshotId, 'snapshotId');
    assertFunction(callback, 'callback');
    const key = watchKey(tenantId, snapshotId);
    const unsubscribe = this.#watchers.subscribe(key, callback);
    const record = this.#tenants.get(tenantId)?.get(snapshotId);
    if (record) this.#watchers.announce(key, record.status, () => record.snapshot());
    return unsubscribe;
  }

  async listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>> {
    const tenantId = this.#tenantOf(options);
    const sessionId = checkSession(options);
    const { limit, after: [after] = [0] } = checkPage(options, ['number']);
    const nodes = this.#tenants.get(tenantId)?.tree(sessionId)?.nodes() ?? [];
    const rest = [...nodes].filter((record) => record.sequence > after);
    return pageOf(rest, limit, (record) => ({ position: [record.sequence], item: record.metadata() }));
  }

  async listSessions(options?: PageOptions): Promise<Page<SessionSummary>> {
    const tenantId = this.#tenantOf(options);
    const { limit, after: [before] = [Infinity] } = checkPage(options, ['number']);
    const sessions = this.#tenants.get(tenantId)?.sessions() ?? [];
    const rest = sessions.filter(([, session]) => session.lastCommit < before);
    return pageOf(rest, limit, ([id, { lastCommit, tree }]) => ({ position: [lastCommit], item: summarize(id, tree) }));
  }

  async deleteSession(options: SessionStoreOptions & { sessionId: string }): Promise<DeleteResult> {
    const tenantId = this.#tenantOf(options);
    const sessionId = checkSession(options);
    const tree = this.#tenants.get(tenantId)?.tree(sessionId);
    const ids = [...(tree?.nodes() ?? [])].map((record) => record.snapshotId);
    this.#remove(tenantId, sessionId, ids);
    return { snapshots: ids.length, shards: 0 };
  }

  async prune(policy: PrunePolicy, options?: SessionStoreOptions & { dryRun?: boolean }): Promise<PruneResult> {
    const tenantId = this.#tenantOf(options);
    assertPolicy(policy);
    const dryRun = options?.dryRun ?? false;
    const result: PruneResult = { sessions: 0, snapshots: 0, shards: 0, dryRun };
    const now = Date.now();
    for (const [sessionId, { tree }] of this.#tenants.get(tenantId)?.sessions() ?? []) {
      const plan = planRetention(tree, policy, now);
      const remove = plan.whole ? [...tree.nodes()].map((record) => record.snapshotId) : plan.remove;
      if (plan.whole) result.sessions++;
      result.snapshots += remove.length;
      if (!dryRun) this.#remove(tenantId, sessionId, remove);
    }
    return result;
  }

  async readScopes(options: SessionStoreOptions & { scopes: readonly ScopeId[] }): Promise<ScopeRecord[]> {
    const tenant = this.#tenants.get(this.#tenantOf(options));
    return checkScopes(options).map((id) => copyJson(tenant?.scope(scopeKey(id)) ?? {}));
  }

  async deleteScope(options: SessionStoreOptions & { scope: ScopeId }): Promise<boolean> {
    const tenantId = this.#tenantOf(options);
    const key = scopeKey(checkScope(options));
    const tenant = this.#tenants.get(tenantId);
    const isRemoved = tenant?.putScope(key, {}) ?? false;
    if (tenant?.isEmpty) this.#tenants.delete(tenantId);
    return isRemoved;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.close();
    this.#tenants.clear();
    this.#recent.forget();
  }

  #tenantOf(options: SessionStoreOptions | undefined): string {
    if (this.#closed) throw closed('InMemorySessionStore');
    return tenantOf(this.#prefix, options);
  }

  #find(lookup: SnapshotLookup): SnapshotRecord | undefined {
    const tenant = this.#tenants.get(this.#tenantOf(lookup));
    const { by, id } = checkLookup(lookup);
    if (by === 'snapshot') return tenant?.get(id);
    const tree = tenant?.tree(id);
    return tree && resolveLeaf(tree, id, this.#rejectBranching);
  }

  /** Runs the mutator: on the snapshot of the given id, or of the id that its answer names. */
  #ask(tenantId: string, givenId: string | undefined, mutator: SnapshotMutator<S>): Draft<S> | undefined {
    const current = givenId === undefined ? undefined : this.#tenants.get(tenantId)?.get(givenId);
    const answer = mutator(current?.snapshot());
    if (answer === null) return undefined;
    if (givenId === undefined) {
      const id = answer?.snapshotId ?? reserveSnapshotId();
      assertId(id, 'snapshotId');
      // The mutator has not seen the snapshot that it is about to rewrite.
      if (this.#tenants.get(tenantId)?.get(id)) return this.#ask(tenantId, id, mutator);
      return { id, current, answer };
    }
    return { id: givenId, current, answer };
  }

  /** The caller's functions ran inside the save; what they saved themselves must not be lost in it. */
  #assertUntouched(tenantId: string, { id, current }: Draft<S>, scopes: readonly ScopeDraft[]): void {
    const tenant = this.#tenants.get(tenantId);
    if (tenant?.get(id) !== current) {
      throw failedPrecondition(
        `The mutator for snapshot ${quote(id)} saved that snapshot itself; save it by what the mutator returns only.`,
      );
    }
    if (scopes.some((scope) => tenant?.scope(scope.key) !== scope.current)) {
      throw failedPrecondition(
        `The save of snapshot ${quote(id)} changed a record in scopes by another save inside its own functions; change it by scopes only.`,
      );
    }
  }

  #commit(
    tenantId: string,
    { id, current, answer }: Draft<S>,
    scopes: readonly ScopeDraft[],
    expectedLeafId: string | null | undefined,
  ): SnapshotRecord {
    const next = revise(id, current?.stored, answer, () => new Date().toISOString());
    const sessionId = sessionOf(next);
    const tenant = this.#tenants.get(tenantId) ?? new TenantData();
    const tree = tenant.tree(sessionId);
    const leaf = sessionId === undefined ? undefined : tree?.latestLeaf();
    assertExpectedLeaf(expectedLeafId, sessionId, leaf?.snapshotId ?? null);
    if (!current && (next.parentId === id || tree?.wouldCycle(id, next.parentId))) refuseCycle(id, next.parentId!);
    const parent = next.parentId === undefined ? undefined : tenant.get(next.parentId);
    const base = [current, parent, leaf].find((record) => record && !record.isBlank);
    const commit = this.#commits + 1;
    const record = new SnapshotRecord(current?.sequence ?? commit, next, base, this.#recent);
    this.#commits = commit;
    tenant.put(record, commit);
    for (const { key, next } of scopes) tenant.putScope(key, next);
    this.#tenants.set(tenantId, tenant);
    return record;
  }

  #remove(tenantId: string, sessionId: string, snapshotIds: readonly string[]): void {
    const tenant = this.#tenants.get(tenantId);
    tenant?.remove(sessionId, snapshotIds);
    this.#recent.forget();
    if (tenant?.isEmpty) this.#tenants.delete(tenantId);
  }
}

/** Unambiguous for every pair of ids. */
function watchKey(tenantId: string, snapshotId: string): string {
  return JSON.stringify([tenantId, snapshotId]);
}
