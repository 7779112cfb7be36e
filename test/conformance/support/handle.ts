import assert from 'node:assert/strict';
import type {
  DeleteResult,
  ListSessionsOptions,
  Page,
  PageOptions,
  PrunePolicy,
  PruneResult,
  ReadRecordsOptions,
  RecordStore,
  SaveSnapshotOptions,
  ScopeId,
  ScopeRecord,
  ScopeStore,
  SessionRecord,
  SessionSnapshot,
  SessionSnapshotInput,
  SessionStore,
  SessionStoreOptions,
  SessionSummary,
  SnapshotLookup,
  SnapshotMetadata,
  SnapshotMutator,
  SnapshotStore,
  WriteRecordOptions,
} from '../../../src/store/contract.ts';

type Context = SessionStoreOptions['context'];

/** A store for a caller of one tenant. Adds the caller's context to every call. */
export class Handle {
  readonly store: SessionStore;
  readonly #context: Context;
  readonly #ends: (() => void)[];

  constructor(store: SessionStore, context?: Context, ends: (() => void)[] = []) {
    this.store = store;
    this.#context = context;
    this.#ends = ends;
  }

  /** Returns the same store for another tenant. */
  as(tenant: unknown): Handle {
    return new Handle(this.store, { tenant }, this.#ends);
  }

  get(lookup: SnapshotLookup): Promise<SessionSnapshot | undefined> {
    return this.store.getSnapshot(this.#with(lookup));
  }

  byId(snapshotId: string): Promise<SessionSnapshot | undefined> {
    return this.get({ snapshotId });
  }

  bySession(sessionId: string): Promise<SessionSnapshot | undefined> {
    return this.get({ sessionId });
  }

  async mustGet(snapshotId: string): Promise<SessionSnapshot> {
    const snapshot = await this.byId(snapshotId);
    assert.ok(snapshot, `snapshot ${JSON.stringify(snapshotId)} is gone`);
    return snapshot;
  }

  async leafId(sessionId: string): Promise<string | undefined> {
    return (await this.bySession(sessionId))?.snapshotId;
  }

  /** Saves `answer`, or its result if it is a function. */
  save(
    snapshotId: string | undefined,
    answer: SessionSnapshotInput | SnapshotMutator,
    options?: SaveSnapshotOptions,
  ): Promise<string | null> {
    const mutator: SnapshotMutator = typeof answer === 'function' ? answer : () => answer;
    return this.store.saveSnapshot(snapshotId, mutator, this.#with(options ?? {}));
  }

  watch(snapshotId: string, callback: (snapshot: SessionSnapshot) => void): () => void {
    const end = this.#full.onSnapshotStateChange(snapshotId, callback, this.#with({})) ?? (() => {});
    this.#ends.push(end);
    return end;
  }

  /** Ends the watchers that a failed test has left. */
  endWatching(): void {
    for (const end of this.#ends) end();
  }

  metadata(lookup: SnapshotLookup): Promise<SnapshotMetadata | undefined> {
    return this.#full.getSnapshotMetadata(this.#with(lookup));
  }

  listSnapshots(options: PageOptions & { sessionId: string }): Promise<Page<SnapshotMetadata>> {
    return this.#full.listSnapshots(this.#with(options));
  }

  listSessions(options: ListSessionsOptions = {}): Promise<Page<SessionSummary>> {
    return this.#full.listSessions(this.#with(options));
  }

  deleteSession(sessionId: string, options: { expectedLeafId?: string } = {}): Promise<DeleteResult> {
    return this.#full.deleteSession(this.#with({ sessionId, ...options }));
  }

  prune(policy: PrunePolicy, options: { dryRun?: boolean; sessionId?: string } = {}): Promise<PruneResult> {
    return this.#full.prune(policy, this.#with(options));
  }

  readScopes(scopes: readonly ScopeId[]): Promise<ScopeRecord[]> {
    return this.#full.readScopes(this.#with({ scopes }));
  }

  async scope(id: ScopeId): Promise<ScopeRecord> {
    const [record] = await this.readScopes([id]);
    assert.ok(record, `no record was returned for ${JSON.stringify(id)}`);
    return record;
  }

  deleteScope(scope: ScopeId): Promise<boolean> {
    return this.#full.deleteScope(this.#with({ scope }));
  }

  listScopes(options: PageOptions = {}): Promise<Page<ScopeId>> {
    return this.#full.listScopes(this.#with(options));
  }

  readRecords(options: ReadRecordsOptions): Promise<SessionRecord[]> {
    return this.#full.readRecords(this.#with(options));
  }

  writeRecord(options: WriteRecordOptions): Promise<string | null> {
    return this.#full.writeRecord(this.#with(options));
  }

  close(): Promise<void> {
    return this.#full.close();
  }

  /** The store with all methods. Only for tests of features that the store has declared. */
  get #full(): SnapshotStore & ScopeStore & RecordStore {
    return this.store as SnapshotStore & ScopeStore & RecordStore;
  }

  #with<T extends object>(options: T): T {
    return this.#context === undefined ? options : { ...options, context: this.#context };
  }
}
