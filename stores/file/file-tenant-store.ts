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
import { chooseLeaf } from '../../src/store/choose-leaf.ts';
import { checkPage } from '../../src/store/list/page.ts';
import { describeScope } from '../../src/store/records/record-scopes.ts';
import type { StoreCheck } from '../../src/store/parts/store-check.ts';
import type { RecordRead, RecordWrite } from '../../src/store/records/session-records.ts';
import { TenantCheck } from './check/check-tenant.ts';
import { REMOVED_OR_NOT, type Call } from './disk/io-error.ts';
import { locateForReading, type SnapshotLocation } from './read/find-snapshot.ts';
import { listSessions, listSnapshots } from './read/lists.ts';
import { handOutLoaded, readHeadOf, readSnapshot } from './read/read-snapshot.ts';
import { deleteSession, prune } from './remove/remove-snapshots.ts';
import { ScopeRecords } from './records/scope-records.ts';
import { Save } from './save/save-snapshot.ts';
import { SessionRecords } from './records/session-records.ts';
import type { TenantSessions } from './tenant-sessions.ts';
import { TenantWatch } from './watch/tenant-watch.ts';

/** One tenant of the file store. */
export class FileTenantStore<S> implements TenantStore<S> {
  readonly tenant: TenantSessions;

  constructor(tenant: TenantSessions) {
    this.tenant = tenant;
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
    return this.#change({ what }, (isNew) => new Save(this.tenant, request, isNew).run());
  }

  onSnapshotStateChange(snapshotId: string, callback: (snapshot: SessionSnapshot<S>) => void): () => void {
    const { folder, shared } = this.tenant;
    const watch = shared.watches.get(folder.tenant) ?? new TenantWatch(this.tenant);
    shared.watches.set(folder.tenant, watch);
    return watch.subscribe(snapshotId, callback as (snapshot: SessionSnapshot) => void);
  }

  listSnapshots(sessionId: string, options: PageOptions): Promise<Page<SnapshotMetadata>> {
    const page = checkPage(options, ['number']);
    return this.#read<Page<SnapshotMetadata>>({ what: `Listing session ${quote(sessionId)}` }, { items: [] }, () =>
      listSnapshots(this.tenant.session(sessionId), page),
    );
  }

  listSessions(options: ListSessionsOptions): Promise<Page<SessionSummary>> {
    const page = checkPage(options, ['number', 'string']);
    return this.#read<Page<SessionSummary>>({ what: 'Listing the sessions' }, { items: [] }, () =>
      listSessions(this.tenant, page, options.ownerId),
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

  readScopes(keys: readonly string[]): Promise<ScopeRecord[]> {
    const records = new ScopeRecords(this.tenant.folder);
    return this.tenant.shared.run({ what: 'Reading records' }, () => Promise.all(keys.map((key) => records.read(key))));
  }

  deleteScope(key: string): Promise<boolean> {
    const what = `Deleting the state of ${describeScope(key)}`;
    const consequence = 'The record was either removed or left unchanged';
    return this.#change({ what, consequence }, () => new ScopeRecords(this.tenant.folder).remove(key));
  }

  listScopes(options: PageOptions): Promise<Page<ScopeId>> {
    const page = checkPage(options, ['string']);
    return this.tenant.shared.run({ what: 'Listing records' }, () => new ScopeRecords(this.tenant.folder).list(page));
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
    return this.tenant.shared.run({ what: 'Checking' }, () =>
      new TenantCheck(this.tenant.withEmptyCaches(), check).run(),
    );
  }

  /** Calls `use` with the snapshot that a lookup names. */
  #find<T>(
    { by, id }: Lookup,
    use: (location: SnapshotLocation, snapshotId: string) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    return this.#read({ what: `Reading ${by} ${quote(id)}` }, undefined, async () => {
      if (by === 'snapshot') {
        const location = await locateForReading(this.tenant, id);
        return location && use(location, id);
      }
      const session = this.tenant.session(id);
      await session.refresh();
      const leaf = chooseLeaf(session.index.tree, id, this.tenant.shared.rejectBranching);
      this.tenant.keep(session);
      return leaf && use(session, leaf.snapshotId);
    });
  }

  /** @param nothing The result for a tenant without data. */
  #read<T>(call: Call, nothing: T, run: () => Promise<T>): Promise<T> {
    return this.tenant.shared.run(call, async () => ((await this.tenant.open()) ? run() : nothing));
  }

  #change<T>(call: Call, run: (isNew: boolean) => Promise<T>): Promise<T> {
    return this.tenant.shared.run(call, async () => run(await this.tenant.prepare()));
  }
}
