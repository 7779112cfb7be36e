import { closed } from '../../../src/errors.ts';
import type {
  RecordStore,
  ScopeStore,
  SessionSnapshot,
  SessionStoreOptions,
  SnapshotStore,
} from '../../../src/store/contract.ts';
import type { InMemorySessionStore } from '../../../stores/in-memory/in-memory-session-store.ts';

/**
 * One of several connections to a backend that stays open: a correct store, as on another machine. Every call waits for a while before and
 * after its work.
 */
export class Connection implements SnapshotStore, ScopeStore, RecordStore {
  readonly capabilities;
  readonly #backend: InMemorySessionStore;
  readonly #ends = new Set<() => void>();
  #isClosed = false;

  constructor(backend: InMemorySessionStore) {
    this.#backend = backend;
    this.capabilities = { ...backend.capabilities, durable: true, watchAcrossProcesses: true };
  }

  getSnapshot: SnapshotStore['getSnapshot'] = (lookup) => this.#call(() => this.#backend.getSnapshot(lookup));
  getSnapshotMetadata: SnapshotStore['getSnapshotMetadata'] = (lookup) =>
    this.#call(() => this.#backend.getSnapshotMetadata(lookup));
  saveSnapshot: SnapshotStore['saveSnapshot'] = (id, mutator, options) =>
    this.#call(() => this.#backend.saveSnapshot(id, mutator, options));
  listSnapshots: SnapshotStore['listSnapshots'] = (options) => this.#call(() => this.#backend.listSnapshots(options));
  listSessions: SnapshotStore['listSessions'] = (options) => this.#call(() => this.#backend.listSessions(options));
  deleteSession: SnapshotStore['deleteSession'] = (options) => this.#call(() => this.#backend.deleteSession(options));
  prune: SnapshotStore['prune'] = (policy, options) => this.#call(() => this.#backend.prune(policy, options));
  readScopes: ScopeStore['readScopes'] = (options) => this.#call(() => this.#backend.readScopes(options));
  deleteScope: ScopeStore['deleteScope'] = (options) => this.#call(() => this.#backend.deleteScope(options));
  listScopes: ScopeStore['listScopes'] = (options) => this.#call(() => this.#backend.listScopes(options));
  readRecords: RecordStore['readRecords'] = (options) => this.#call(() => this.#backend.readRecords(options));
  writeRecord: RecordStore['writeRecord'] = (options) => this.#call(() => this.#backend.writeRecord(options));

  onSnapshotStateChange(
    snapshotId: string,
    callback: (snapshot: SessionSnapshot) => void,
    options?: SessionStoreOptions,
  ): () => void {
    this.#assertOpen();
    const end = this.#backend.onSnapshotStateChange(snapshotId, callback, options);
    this.#ends.add(end);
    return end;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#ends) end();
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    await aWhile();
    const answer = await work();
    await aWhile();
    return answer;
  }

  #assertOpen(): void {
    if (this.#isClosed) throw closed('connection');
  }
}

function aWhile(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
