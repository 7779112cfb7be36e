import { failedPrecondition, quote } from '../../src/errors.ts';
import { copyJson } from '../../src/json/value.ts';
import { assertId, reserveSnapshotId } from '../../src/snapshot/ids.ts';
import { refuseCycle } from '../../src/snapshot/session-tree.ts';
import { planRetention } from '../../src/snapshot/retention.ts';
import { assertStateMayChange, revise, sessionOf, type SessionSnapshotInput } from '../../src/snapshot/snapshot.ts';
import type { PruneOptions, SaveRequest, TenantStore } from '../../src/store/base-session-store.ts';
import type {
  DeleteResult,
  ListSessionsOptions,
  Page,
  PageOptions,
  PrunePolicy,
  PruneResult,
  ScopeId,
  ScopeRecord,
  SessionRecord,
  SessionSnapshot,
  SessionSummary,
  SnapshotMetadata,
  SnapshotMutator,
} from '../../src/store/contract.ts';
import { type Lookup } from '../../src/store/check-lookup.ts';
import { assertExpectedLeaf, assertRequiredSnapshot, chooseLeaf } from '../../src/store/choose-leaf.ts';
import { checkPage, pageOf } from '../../src/store/list/page.ts';
import { runScopeChange, scopeOfKey } from '../../src/store/records/record-scopes.ts';
import type { RecordRead, RecordWrite } from '../../src/store/records/session-records.ts';
import { summarize } from '../../src/store/list/session-summary.ts';
import type { StoreCheck } from '../../src/store/parts/store-check.ts';
import type { WatchHub } from '../../src/store/parts/watch-hub.ts';
import type { RecentState } from './packed-state.ts';
import { SnapshotRecord } from './snapshot-record.ts';
import { TenantData } from './tenant-data.ts';

/** Shared by all tenants of a store. */
export interface Shared<S> {
  /** The tenants that have data. */
  readonly tenants: Map<string, InMemoryTenantStore<S>>;
  readonly rejectBranching: boolean;
  readonly watchers: WatchHub<S>;
  readonly recent: RecentState;
}

/** The result of a mutator, and the snapshot that it got. */
interface Draft<S> {
  readonly id: string;
  readonly current: SnapshotRecord | undefined;
  readonly answer: SessionSnapshotInput<S>;
}

/** A record that a save changes: its current and its next content. */
interface ScopeDraft {
  readonly key: string;
  readonly current: ScopeRecord | undefined;
  readonly next: ScopeRecord;
}

/** One tenant. A read and its write are synchronous, so they are atomic for all other callers in the process. */
export class InMemoryTenantStore<S> implements TenantStore<S> {
  readonly #id: string;
  readonly #shared: Shared<S>;
  readonly #data = new TenantData();
  #commits = 0;

  constructor(id: string, shared: Shared<S>) {
    this.#id = id;
    this.#shared = shared;
  }

  getSnapshot(lookup: Lookup): SessionSnapshot<S> | undefined {
    return this.#find(lookup)?.snapshot(lookup);
  }

  getSnapshotMetadata(lookup: Lookup): SnapshotMetadata | undefined {
    return this.#find(lookup)?.metadata();
  }

  saveSnapshot(request: SaveRequest<S>): string | null {
    // Before the caller's functions run: a save inside them must use this same tenant.
    this.#shared.tenants.set(this.#id, this);
    try {
      return this.#save(request);
    } finally {
      this.#forgetIfEmpty();
    }
  }

  #save(request: SaveRequest<S>): string | null {
    const draft = this.#runMutator(request.snapshotId, request.mutator);
    if (!draft) return null;
    const scopes = this.#draftScopes(request);
    this.#assertUntouched(draft, scopes);
    const record = this.#commit(draft, scopes, request);
    const { watchers } = this.#shared;
    if (watchers.size > 0) watchers.publish(this.#watchKey(draft.id), record.status, () => record.snapshot());
    return draft.id;
  }

  onSnapshotStateChange(snapshotId: string, callback: (snapshot: SessionSnapshot<S>) => void): () => void {
    const key = this.#watchKey(snapshotId);
    const { watchers } = this.#shared;
    const unsubscribe = watchers.subscribe(key, callback);
    const record = this.#data.get(snapshotId);
    if (record) watchers.announce(key, record.status, () => record.snapshot());
    return unsubscribe;
  }

  listSnapshots(sessionId: string, options: PageOptions): Page<SnapshotMetadata> {
    const { limit, after: [after] = [0] } = checkPage(options, ['number']);
    const nodes = this.#data.session(sessionId)?.tree.nodes() ?? [];
    const rest = [...nodes].filter((record) => record.sequence > after);
    return pageOf(rest, limit, (record) => ({ position: [record.sequence], item: record.metadata() }));
  }

  listSessions(options: ListSessionsOptions): Page<SessionSummary> {
    const { limit, after: [before] = [Infinity] } = checkPage(options, ['number']);
    const { ownerId } = options;
    const rest = this.#data
      .sessions()
      .filter(
        ([, { lastCommit, details }]) => lastCommit < before && (ownerId ?? details?.ownerId) === details?.ownerId,
      );
    return pageOf(rest, limit, ([id, session]) => ({
      position: [session.lastCommit],
      item: summarize(id, session.tree, { ...session.details, ...session.usage() }),
    }));
  }

  deleteSession(sessionId: string, expectedLeafId: string | undefined): DeleteResult {
    const leaf = this.#data.session(sessionId)?.tree.latestLeaf();
    assertExpectedLeaf(expectedLeafId, sessionId, leaf?.snapshotId ?? null);
    const ids = [...(this.#data.session(sessionId)?.tree.nodes() ?? [])].map((record) => record.snapshotId);
    this.#remove(sessionId, ids);
    return { snapshots: ids.length, shards: 0 };
  }

  /** Data in memory is never damaged, but records may wait for a session that never begins. */
  check(check: StoreCheck): void {
    for (const [sessionId, { tree }] of this.#data.sessions()) {
      check.count('snapshots', tree.size);
      for (const record of tree.nodes()) check.reportRun(record.metadata(), { sessionId });
      check.count('sessions');
    }
    check.count('scopes', this.#data.scopes.size);
    const hasSnapshots = (sessionId: string): boolean => this.#data.session(sessionId) !== undefined;
    check.count('records', this.#data.records.count);
    for (const { sessionId, writtenAt } of this.#data.records.orphans(hasSnapshots)) {
      const isOld = check.mayRepair(writtenAt);
      if (isOld) this.#data.records.removeSession(sessionId);
      check.report({ kind: 'orphan', sessionId, problem: 'records of a session that has no snapshot' }, isOld);
    }
    this.#forgetIfEmpty();
  }

  prune(policy: PrunePolicy, { dryRun, sessionId: only }: PruneOptions): PruneResult {
    const result: PruneResult = { sessions: 0, snapshots: 0, shards: 0, dryRun };
    const now = Date.now();
    for (const [sessionId, { tree }] of this.#data.sessions()) {
      if (only !== undefined && only !== sessionId) continue;
      const plan = planRetention(tree, policy, now);
      const remove = plan.whole ? [...tree.nodes()].map((record) => record.snapshotId) : plan.remove;
      if (plan.whole) result.sessions++;
      result.snapshots += remove.length;
      if (!dryRun) this.#remove(sessionId, remove);
    }
    if (!dryRun && only === undefined) {
      this.#data.records.removeOrphans(now, (sessionId) => this.#data.session(sessionId) !== undefined);
      this.#forgetIfEmpty();
    }
    return result;
  }

  readScopes(keys: readonly string[]): ScopeRecord[] {
    return keys.map((key) => copyJson(this.#data.scopes.get(key) ?? {}));
  }

  deleteScope(key: string): boolean {
    const isRemoved = this.#data.scopes.delete(key);
    this.#forgetIfEmpty();
    return isRemoved;
  }

  listScopes(options: PageOptions): Page<ScopeId> {
    const { limit, after: [after] = [''] } = checkPage(options, ['string']);
    const rest = [...this.#data.scopes.keys()].filter((key) => key > after).toSorted();
    return pageOf(rest, limit, (key) => ({ position: [key], item: scopeOfKey(key) }));
  }

  readRecords(request: RecordRead): SessionRecord[] {
    return this.#data.records.read(request);
  }

  writeRecord(write: RecordWrite): string | null {
    const hasSnapshot = (): boolean => this.#data.get(write.ifSnapshot!)?.sessionId === write.sessionId;
    const revision = this.#data.records.write(write, hasSnapshot);
    if (revision === null) this.#forgetIfEmpty();
    else this.#shared.tenants.set(this.#id, this);
    return revision;
  }

  #find({ by, id }: Lookup): SnapshotRecord | undefined {
    if (by === 'snapshot') return this.#data.get(id);
    const session = this.#data.session(id);
    return session && chooseLeaf(session.tree, id, this.#shared.rejectBranching);
  }

  /** Runs the mutator on the snapshot with the given id, or with the id that its result names. */
  #runMutator(givenId: string | undefined, mutator: SnapshotMutator<S>): Draft<S> | undefined {
    const current = givenId === undefined ? undefined : this.#data.get(givenId);
    const answer = mutator(current?.snapshot());
    if (answer === null) return undefined;
    if (givenId !== undefined) return { id: givenId, current, answer };
    const id = answer?.snapshotId ?? reserveSnapshotId();
    assertId(id, 'snapshotId');
    // The snapshot exists but the mutator did not get it, so the mutator runs again.
    return this.#data.get(id) ? this.#runMutator(id, mutator) : { id, current, answer };
  }

  /** Runs the changes of the records, without writing them. Leaves out those that change nothing. */
  #draftScopes({ scopes }: SaveRequest<S>): readonly ScopeDraft[] {
    const drafts: ScopeDraft[] = [];
    for (const [key, change] of scopes) {
      const current = this.#data.scopes.get(key);
      const next = runScopeChange(change, current);
      if (next) drafts.push({ key, current, next });
    }
    return drafts;
  }

  /** Refuses a save if the caller's functions have saved the same snapshot or records: this save would overwrite that. */
  #assertUntouched({ id, current }: Draft<S>, scopes: readonly ScopeDraft[]): void {
    if (this.#data.get(id) !== current) {
      throw failedPrecondition(
        `The mutator for snapshot ${quote(id)} saved that snapshot itself. Return the new content from the mutator instead.`,
      );
    }
    if (scopes.some((scope) => this.#data.scopes.get(scope.key) !== scope.current)) {
      throw failedPrecondition(
        `The functions of the save of snapshot ${quote(id)} changed one of its records with another save. Change the record only in scopes.`,
      );
    }
  }

  #commit({ id, current, answer }: Draft<S>, scopes: readonly ScopeDraft[], request: SaveRequest<S>): SnapshotRecord {
    const next = revise(id, current?.stored, answer, () => new Date().toISOString());
    const sessionId = sessionOf(next);
    const tree = sessionId === undefined ? undefined : this.#data.session(sessionId)?.tree;
    const leaf = tree?.latestLeaf();
    assertExpectedLeaf(request.expectedLeafId, sessionId, leaf?.snapshotId ?? null);
    assertRequiredSnapshot(request.ifSnapshot, sessionId, (one) => tree?.has(one) ?? false);
    if (current)
      assertStateMayChange(
        current,
        () => tree?.hasChildren(id) ?? false,
        () => current.hasState(next.state),
      );
    else if (sessionId !== undefined && (next.parentId === id || tree?.wouldCycle(id, next.parentId))) {
      refuseCycle(id, next.parentId!);
    }
    const parent = next.parentId === undefined ? undefined : this.#data.get(next.parentId);
    const base = [current, parent, leaf].find((record) => record && !record.isBlank);
    const commit = this.#commits + 1;
    const record = new SnapshotRecord(current?.sequence ?? commit, next, base, this.#shared.recent);
    this.#commits = commit;
    this.#data.put(record, commit, request.session);
    for (const { key, next } of scopes) this.#data.putScope(key, next);
    return record;
  }

  #remove(sessionId: string, snapshotIds: readonly string[]): void {
    this.#data.remove(sessionId, snapshotIds);
    this.#shared.recent.forget();
    this.#forgetIfEmpty();
  }

  #forgetIfEmpty(): void {
    if (this.#data.isEmpty) this.#shared.tenants.delete(this.#id);
  }

  /** Unambiguous for every pair of ids. */
  #watchKey(snapshotId: string): string {
    return JSON.stringify([this.#id, snapshotId]);
  }
}
