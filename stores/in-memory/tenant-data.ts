import { SessionTree } from '../../src/snapshot/session-tree.ts';
import type { ScopeRecord, SessionDetails, UsageSum } from '../../src/store/contract.ts';
import { mergeDetails, usageOfSession } from '../../src/store/list/session-summary.ts';
import type { SnapshotRecord } from './snapshot-record.ts';
import { TenantRecords } from './tenant-records.ts';

/** One session: its tree, its details, and its last commit. */
export class SessionData {
  readonly tree = new SessionTree<SnapshotRecord>();
  details: SessionDetails | undefined;
  lastCommit = 0;

  /** The usage of its snapshots. */
  usage(): { usage?: UsageSum } {
    const usage = usageOfSession([...this.tree.nodes()].map((record) => record.usage));
    return usage ? { usage } : {};
  }
}

/**
 * The data of one tenant.
 *
 * Invariant: `#sessions` holds the sessions that have a snapshot, the one written last at the end; `scopes` the records that are not empty,
 * by `scopeKey`. A record is never changed in place.
 */
export class TenantData {
  readonly records = new TenantRecords();
  readonly scopes = new Map<string, ScopeRecord>();
  readonly #snapshots = new Map<string, SnapshotRecord>();
  readonly #sessions = new Map<string, SessionData>();
  /** The session that was written last. */
  #latest: SessionData | undefined;

  get isEmpty(): boolean {
    return this.#snapshots.size === 0 && this.scopes.size === 0 && this.records.isEmpty;
  }

  get(snapshotId: string): SnapshotRecord | undefined {
    return this.#snapshots.get(snapshotId);
  }

  session(sessionId: string): SessionData | undefined {
    return this.#sessions.get(sessionId);
  }

  /** The session written last comes first. */
  sessions(): [sessionId: string, SessionData][] {
    return [...this.#sessions].toReversed();
  }

  /** Adds or replaces a snapshot. `commit` numbers this write. */
  put(record: SnapshotRecord, commit: number, details: SessionDetails | undefined): void {
    this.#snapshots.set(record.snapshotId, record);
    const { sessionId } = record;
    if (sessionId === undefined) return;
    const known = this.#sessions.get(sessionId);
    const session = known ?? new SessionData();
    session.tree.put(record);
    session.details = known ? mergeDetails(known.details, details) : details;
    session.lastCommit = commit;
    // It is at the end already. This is the usual case, because turns of one session follow each other.
    if (session === this.#latest) return;
    this.#latest = session;
    this.#sessions.delete(sessionId);
    this.#sessions.set(sessionId, session);
  }

  /** Removes snapshots of a session, and with its last one the session and its records. */
  remove(sessionId: string, snapshotIds: readonly string[]): void {
    const tree = this.#sessions.get(sessionId)?.tree;
    for (const id of snapshotIds) {
      this.#snapshots.delete(id);
      tree?.remove(id);
    }
    if (tree && tree.size > 0) return;
    this.records.removeSession(sessionId);
    this.#sessions.delete(sessionId);
    this.#latest = undefined;
  }

  /** Replaces a record; an empty one removes it. */
  putScope(key: string, record: ScopeRecord): void {
    if (Object.keys(record).length === 0) this.scopes.delete(key);
    else this.scopes.set(key, record);
  }
}
