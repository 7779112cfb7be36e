import { quote } from '../../src/errors.ts';
import { copyJson } from '../../src/json/value.ts';
import type { PruneOptions, SaveRequest, TenantStore } from '../../src/store/base-session-store.ts';
import type {
  DeleteResult,
  DeleteSessionsResult,
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
} from '../../src/store/contract.ts';
import type { Lookup } from '../../src/store/check-lookup.ts';
import type { RecordRead, RecordWrite } from '../../src/store/records/session-records.ts';
import type { StoreCheck } from '../../src/store/parts/store-check.ts';
import { TenantCheck } from './check/check-tenant.ts';
import { listSessions, listSnapshots } from './read/lists.ts';
import { readRecords } from './read/records.ts';
import { listScopes, readScopes } from './read/read-scopes.ts';
import { handOutLoaded, SnapshotReader } from './read/snapshot-reader.ts';
import { deleteSession, deleteSessions } from './remove/delete-session.ts';
import { erase, type EraseResult } from './remove/erase.ts';
import { Prune } from './prune/prune.ts';
import { saveSnapshot } from './save/save-snapshot.ts';
import { writeRecord } from './save/write-record.ts';
import type { TenantDatabase } from './tenant-database.ts';
import type { Watches } from './watch/watches.ts';

/** One tenant. Each method is a span of Genkit's tracing, and converts errors of Firestore. */
export class FirestoreTenantStore<S> implements TenantStore<S> {
  readonly #data: TenantDatabase;
  readonly #reader: SnapshotReader;
  readonly #watches: Watches<S>;

  constructor(data: TenantDatabase, watches: Watches<S>) {
    this.#data = data;
    this.#reader = new SnapshotReader(data);
    this.#watches = watches;
  }

  getSnapshot(lookup: Lookup): Promise<SessionSnapshot<S> | undefined> {
    return this.#call('getSnapshot', `Reading ${lookup.by} ${quote(lookup.id)}`, async () => {
      const found = await this.#reader.find(lookup);
      return found && handOutLoaded<S>(found, lookup);
    });
  }

  getSnapshotMetadata(lookup: Lookup): Promise<SnapshotMetadata | undefined> {
    return this.#call('getSnapshotMetadata', `Reading ${lookup.by} ${quote(lookup.id)}`, async () => {
      const meta = await this.#reader.findMetadata(lookup);
      return meta && copyJson(meta);
    });
  }

  saveSnapshot(request: SaveRequest<S>): Promise<string | null> {
    const { snapshotId } = request;
    const what = snapshotId === undefined ? 'Saving a snapshot' : `Saving snapshot ${quote(snapshotId)}`;
    return this.#call('saveSnapshot', what, () => saveSnapshot(this.#reader, this.#watches, request));
  }

  onSnapshotStateChange(snapshotId: string, callback: (snapshot: SessionSnapshot<S>) => void): () => void {
    return this.#watches.subscribe(this.#reader, snapshotId, callback);
  }

  listSnapshots(sessionId: string, page: PageOptions): Promise<Page<SnapshotMetadata>> {
    return this.#call('listSnapshots', `Listing session ${quote(sessionId)}`, () =>
      listSnapshots(this.#reader, sessionId, page),
    );
  }

  listSessions(page: ListSessionsOptions): Promise<Page<SessionSummary>> {
    return this.#call('listSessions', 'Listing the sessions', () => listSessions(this.#data, page));
  }

  deleteSession(sessionId: string, expectedLeafId: string | undefined): Promise<DeleteResult> {
    const { queues } = this.#data;
    return this.#call('deleteSession', `Deleting session ${quote(sessionId)}`, () =>
      queues.sessions.run(this.#data.keyOf(sessionId), () => deleteSession(this.#data, sessionId, expectedLeafId)),
    );
  }

  deleteSessions(sessionIds: readonly string[]): Promise<DeleteSessionsResult> {
    return this.#call('deleteSessions', 'Deleting sessions', () => deleteSessions(this.#data, sessionIds));
  }

  prune(policy: PrunePolicy, options: PruneOptions): Promise<PruneResult> {
    return this.#call('prune', 'Pruning', () => new Prune(this.#reader, policy, options).run());
  }

  readScopes(keys: readonly string[]): Promise<ScopeRecord[]> {
    return this.#call('readScopes', 'Reading scopes', () => readScopes(this.#data, keys));
  }

  deleteScope(key: string): Promise<boolean> {
    const { caches, database } = this.#data;
    return this.#call('deleteScope', 'Deleting a scope', async () => {
      caches.scopes.delete(this.#data.keyOf(key));
      // The key first: after an interruption the record is still listed, so the deletion can be repeated.
      await this.#data.sealer('scope', key).forget();
      return (await database.remove([{ ref: this.#data.scopeRef(key) }])) > 0;
    });
  }

  listScopes(page: PageOptions): Promise<Page<ScopeId>> {
    return this.#call('listScopes', 'Listing the scopes', () => listScopes(this.#data, page));
  }

  readRecords(request: RecordRead): Promise<SessionRecord[]> {
    return this.#call('readRecords', `Reading records of session ${quote(request.sessionId)}`, () =>
      readRecords(this.#reader, request),
    );
  }

  writeRecord(request: RecordWrite): Promise<string | null> {
    return this.#call('writeRecord', `Writing a record of session ${quote(request.sessionId)}`, () =>
      writeRecord(this.#reader, request),
    );
  }

  check(check: StoreCheck): Promise<void> {
    return this.#call('check', 'Checking', () => new TenantCheck(this.#data.withEmptyCaches(), check).run());
  }

  erase(): Promise<EraseResult> {
    return this.#call('erase', 'Erasing', () => erase(this.#data));
  }

  #call<T>(method: string, what: string, work: () => Promise<T>): Promise<T> {
    return this.#data.database.call(method, what, work);
  }
}
