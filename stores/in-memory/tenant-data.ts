import { SessionTree } from '../../src/snapshot/lineage.ts';
import type { ScopeRecord } from '../../src/store/contract.ts';
import type { SnapshotRecord } from './snapshot-record.ts';

/** One session: its tree, and the commit that wrote to it last. */
export interface SessionData {
  readonly tree: SessionTree<SnapshotRecord>;
  lastCommit: number;
}

/**
 * The snapshots and the scopes of one tenant.
 *
 * Invariant: `#sessions` holds the sessions that have a snapshot, the one written last at the end; `#scopes` the records that are not empty.
 */
export class TenantData {
  readonly #snapshots = new Map<string, SnapshotRecord>();
  readonly #sessions = new Map<string, SessionData>();
  /** The snapshots without a session. */
  readonly #alone = new SessionTree<SnapshotRecord>();
  readonly #scopes = new Map<string, ScopeRecord>();
  /** The session that was written last. */
  #latest: SessionData | undefined;

  get isEmpty(): boolean {
    return this.#snapshots.size === 0 && this.#scopes.size === 0;
  }

  get(snapshotId: string): SnapshotRecord | undefined {
    return this.#snapshots.get(snapshotId);
  }

  /** @param sessionId `undefined`: the snapshots that have no session. */
  tree(sessionId: string | undefined): SessionTree<SnapshotRecord> | undefined {
    return sessionId === undefined ? this.#alone : this.#sessions.get(sessionId)?.tree;
  }

  /** The one written last first. */
  sessions(): [sessionId: string, SessionData][] {
    return [...this.#sessions].toReversed();
  }

  /** Adds or replaces a snapshot. `commit` numbers this write. */
  put(record: SnapshotRecord, commit: number): void {
    this.#snapshots.set(record.snapshotId, record);
    const { sessionId } = record;
    if (sessionId === undefined) {
      this.#alone.put(record);
      return;
    }
    const session = this.#sessions.get(sessionId) ?? { tree: new SessionTree<SnapshotRecord>(), lastCommit: commit };
    session.tree.put(record);
    session.lastCommit = commit;
    // It is at the end already: nearly always turns of one session follow each other.
    if (session === this.#latest) return;
    this.#latest = session;
    this.#sessions.delete(sessionId);
    this.#sessions.set(sessionId, session);
  }

  /** Removes snapshots of a session, and with its last one the session. */
  remove(sessionId: string, snapshotIds: readonly string[]): void {
    const tree = this.tree(sessionId);
    for (const id of snapshotIds) {
      this.#snapshots.delete(id);
      tree?.remove(id);
    }
    if (tree?.size !== 0) return;
    this.#sessions.delete(sessionId);
    this.#latest = undefined;
  }

  /** A record, never to be changed; `undefined` when there is none. */
  scope(key: string): ScopeRecord | undefined {
    return this.#scopes.get(key);
  }

  /** Puts an empty record, or another, in the place of what there is. Answers whether there was one. */
  putScope(key: string, record: ScopeRecord): boolean {
    if (Object.keys(record).length === 0) return this.#scopes.delete(key);
    const isKnown = this.#scopes.has(key);
    this.#scopes.set(key, record);
    return isKnown;
  }
}
