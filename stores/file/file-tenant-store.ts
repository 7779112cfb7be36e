import { quote } from '../../src/errors.ts';
import { copyJson } from '../../src/json/value.ts';
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
} from '../../src/store/contract.ts';
import type { Lookup } from '../../src/store/check-lookup.ts';
import { checkPage } from '../../src/store/list/page.ts';
import { describeScope } from '../../src/store/records/record-scopes.ts';
import { LruCache } from '../../src/store/parts/lru-cache.ts';
import type { StoreCheck } from '../../src/store/parts/store-check.ts';
import type { KnownState } from '../chain/known-state.ts';
import type { RecordRead, RecordWrite } from '../../src/store/records/session-records.ts';
import { TenantCheck } from './check/check-tenant.ts';
import { REMOVED_OR_NOT, type Call } from './disk/io-error.ts';
import { findLeaf, locate, type SnapshotLocation } from './read/find-snapshot.ts';
import { listSessions, listSnapshots } from './read/lists.ts';
import { handOutLoaded, readHeadOf, readSnapshot } from './read/read-snapshot.ts';
import { deleteSession, prune } from './remove/remove-snapshots.ts';
import { ScopeRecords } from './records/scope-records.ts';
import { Save } from './save/save-snapshot.ts';
import { SessionRecords } from './records/session-records.ts';
import type { FileSession } from './file-session.ts';
import { TenantSessions, WEIGHT_OF_SESSION } from './tenant-sessions.ts';
import type { TenantWatch } from './watch/tenant-watch.ts';

/** Characters of JSON text of the states that a check keeps while it reads. */
const MOST_CHECKED = 64 * 1024 * 1024;

/** Runs the calls of a store. */
export interface Runner {
  /** Runs a call that changes nothing. */
  read<T>(call: Call, run: () => Promise<T>): Promise<T>;
  /** Runs a call that may change something; `close` waits for it. */
  change<T>(call: Call, run: () => Promise<T>): Promise<T>;
}

/** One tenant of the file store. */
export class FileTenantStore<S> implements TenantStore<S> {
  readonly tenant: TenantSessions;
  readonly #runner: Runner;
  readonly #watch: () => TenantWatch<S>;

  /** @param options.watch Returns the tenant's watch, or creates it. */
  constructor(tenant: TenantSessions, options: { runner: Runner; watch: () => TenantWatch<S> }) {
    this.tenant = tenant;
    this.#runner = options.runner;
    this.#watch = options.watch;
  }

  getSnapshot(lookup: Lookup): Promise<SessionSnapshot<S> | undefined> {
    return this.#find(lookup, async (location, id) => {
      const loaded = await readSnapshot(this.tenant, location, id);
      return loaded && handOutLoaded<S>(loaded, lookup.frozen);
    });
  }

  getSnapshotMetadata(lookup: Lookup): Promise<SnapshotMetadata | undefined> {
    return this.#find(lookup, async (location, id) => {
      const head = await readHeadOf(this.tenant, location, id);
      return head && copyJson(head.meta);
    });
  }

  saveSnapshot(request: SaveRequest<S>): Promise<string | null> {
    const { snapshotId } = request;
    const what = snapshotId === undefined ? 'Saving a snapshot' : `Saving snapshot ${quote(snapshotId)}`;
    return this.#change({ what }, () => new Save(this.tenant, request).run());
  }

  onSnapshotStateChange(snapshotId: string, callback: (snapshot: SessionSnapshot<S>) => void): () => void {
    return this.#watch().subscribe(snapshotId, callback);
  }

  listSnapshots(sessionId: string, page: PageOptions): Promise<Page<SnapshotMetadata>> {
    checkPage(page, ['number']);
    return this.#read<Page<SnapshotMetadata>>({ what: `Listing session ${quote(sessionId)}` }, { items: [] }, () =>
      listSnapshots(this.tenant.session(sessionId), page),
    );
  }

  listSessions(page: ListSessionsOptions): Promise<Page<SessionSummary>> {
    checkPage(page, ['number', 'string']);
    return this.#read<Page<SessionSummary>>({ what: 'Listing the sessions' }, { items: [] }, () =>
      listSessions(this.tenant, page),
    );
  }

  deleteSession(sessionId: string, expectedLeafId: string | undefined): Promise<DeleteResult> {
    const call = { what: `Deleting session ${quote(sessionId)}`, consequence: REMOVED_OR_NOT };
    return this.#change(call, () => deleteSession(this.tenant.session(sessionId), expectedLeafId));
  }

  prune(policy: PrunePolicy, options: PruneOptions): Promise<PruneResult> {
    const nothing = { sessions: 0, snapshots: 0, shards: 0, dryRun: options.dryRun };
    if (options.dryRun) {
      return this.#read({ what: 'Planning a prune' }, nothing, () => prune(this.tenant, policy, options));
    }
    return this.#change({ what: 'Pruning', consequence: REMOVED_OR_NOT }, () => prune(this.tenant, policy, options));
  }

  readScopes(ids: readonly ScopeId[]): Promise<ScopeRecord[]> {
    const records = new ScopeRecords(this.tenant.folder);
    return this.#runner.read({ what: 'Reading records' }, () => Promise.all(ids.map((id) => records.read(id))));
  }

  deleteScope(id: ScopeId): Promise<boolean> {
    const what = `Deleting the state of ${describeScope(id)}`;
    const consequence = 'The record was either removed or left unchanged';
    return this.#change({ what, consequence }, () => new ScopeRecords(this.tenant.folder).remove(id));
  }

  listScopes(page: PageOptions): Promise<Page<ScopeId>> {
    checkPage(page, ['string']);
    return this.#runner.read({ what: 'Listing records' }, () => new ScopeRecords(this.tenant.folder).list(page));
  }

  readRecords(request: RecordRead): Promise<SessionRecord[]> {
    const { sessionId } = request;
    return this.#read<SessionRecord[]>({ what: `Reading records of session ${quote(sessionId)}` }, [], () =>
      new SessionRecords(this.tenant.session(sessionId)).read(request),
    );
  }

  writeRecord(request: RecordWrite): Promise<string | null> {
    const { sessionId } = request;
    const what = `Writing a record of session ${quote(sessionId)}`;
    return this.#change({ what }, () => new SessionRecords(this.tenant.session(sessionId)).write(request));
  }

  check(check: StoreCheck): Promise<void> {
    const { folder, shared, finish } = this.tenant;
    // Empty caches, so that everything is read from the disk.
    const fresh = {
      states: new LruCache<KnownState>(MOST_CHECKED),
      sessions: new LruCache<FileSession>(WEIGHT_OF_SESSION),
      sessionIds: new LruCache<string>(1),
    };
    const tenant = new TenantSessions({ ...shared, ...fresh }, folder.tenant, finish);
    return this.#runner.change({ what: 'Checking' }, () => new TenantCheck(tenant, check).run());
  }

  /** Calls `use` with the snapshot that a lookup names. */
  #find<T>(
    { by, id }: Lookup,
    use: (location: SnapshotLocation, snapshotId: string) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    return this.#read({ what: `Reading ${by} ${quote(id)}` }, undefined, async () => {
      if (by === 'snapshot') {
        const location = await locate(this.tenant, id);
        return location && use(location, id);
      }
      const session = this.tenant.session(id);
      const leaf = await findLeaf(session, this.tenant.shared);
      this.tenant.keep(session);
      return leaf && use(session, leaf.snapshotId);
    });
  }

  /** @param nothing The result for a tenant without data. */
  #read<T>(call: Call, nothing: T, run: () => Promise<T>): Promise<T> {
    return this.#runner.read(call, async () => ((await this.tenant.open()) ? run() : nothing));
  }

  #change<T>(call: Call, run: () => Promise<T>): Promise<T> {
    return this.#runner.change(call, async () => {
      await this.tenant.prepare();
      return run();
    });
  }
}
