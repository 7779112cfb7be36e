import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';
import {
  keepsRecords,
  keepsScopes,
  type ScopeId,
  type ScopeRecord,
  type SessionDetails,
  type SessionRecord,
  type SessionSnapshot,
  type SessionStoreOptions,
  type SnapshotStore,
} from '../contract.ts';
import { listAllSnapshots } from '../list/items-of.ts';
import { recordKey } from '../records/session-records.ts';

/** Records written with one save. */
const SCOPES_A_SAVE = 50;
/** A fixed id: if a copy is killed, the next one removes its session. */
const SESSION_ID = 'genkitx-agents:copy of records';

/** The counts of a copy so far. */
export interface CopyResult {
  /** Sessions that are complete in `to`. */
  sessions: number;
  /** Snapshots written. */
  snapshots: number;
  /** Records of users and apps written. */
  scopes: number;
  /** Session records written. */
  records: number;
  /** Sessions that continued in both stores. They were not copied; decide which of the two to keep. */
  diverged: string[];
  /**
   * Sessions that continued in `to` and have other branches in `from`, which stay there: saved now, a branch would become the session's latest.
   * The snapshots that lead up to the continuation and the session's records were copied. Always empty for an import.
   */
  partial: string[];
}

/** How a session was copied; see {@link CopyResult}. `unreadable`: without the data that can't be read. */
export type CopyOutcome = 'whole' | 'partial' | 'diverged' | 'unreadable';

/** Writes the snapshots and records that a store does not have, and counts them. Does not change data in the store. */
export class CopyTarget<S> {
  readonly #to: SnapshotStore<S>;
  readonly #caller: SessionStoreOptions;
  readonly #onProgress: ((progress: CopyResult) => void) | undefined;
  readonly #result: CopyResult = { sessions: 0, snapshots: 0, scopes: 0, records: 0, diverged: [], partial: [] };
  #scopes: { readonly id: ScopeId; readonly values: ScopeRecord }[] = [];

  constructor(to: SnapshotStore<S>, caller: SessionStoreOptions, onProgress?: (progress: CopyResult) => void) {
    this.#to = to;
    this.#caller = caller;
    this.#onProgress = onProgress;
  }

  get result(): CopyResult {
    const { diverged, partial, ...counts } = this.#result;
    return { ...counts, diverged: [...diverged], partial: [...partial] };
  }

  /** The snapshots of a session that the store has, in the order of their first saves. */
  snapshotsOf(sessionId: string): Promise<SnapshotMetadata[]> {
    return listAllSnapshots(this.#to, { ...this.#caller, sessionId });
  }

  async save(snapshot: SessionSnapshot<S>, details: SessionDetails = {}): Promise<void> {
    const options = { ...this.#caller, ...(this.#to.capabilities.details && { session: details }) };
    const saved = await this.#to.saveSnapshot(snapshot.snapshotId, (current) => (current ? null : snapshot), options);
    if (saved !== null) this.#result.snapshots++;
  }

  /** Ends a session whose snapshots are written: writes its records, unless it has diverged. */
  async endSession(
    sessionId: string,
    outcome: CopyOutcome,
    records: readonly Omit<SessionRecord, 'revision'>[],
  ): Promise<void> {
    if (outcome === 'whole') this.#result.sessions++;
    else if (outcome !== 'unreadable') this.#result[outcome].push(sessionId);
    if (outcome !== 'diverged') await this.#writeRecords({ ...this.#caller, sessionId }, records);
    this.#onProgress?.(this.result);
  }

  async #writeRecords(
    session: SessionStoreOptions & { sessionId: string },
    records: readonly Omit<SessionRecord, 'revision'>[],
  ): Promise<void> {
    const to = this.#to;
    if (records.length === 0 || !keepsRecords(to)) return;
    const there = new Set((await to.readRecords(session)).map(recordKey));
    const missing = records.filter((record) => !there.has(recordKey(record)));
    for (const { kind, key, value } of missing) {
      await to.writeRecord({ ...session, kind, key, value, expectedRevision: null });
    }
    this.#result.records += missing.length;
  }

  /**
   * Writes the record of a user or an app. Only a save can write it, so such records are saved with a snapshot of a temporary session, which
   * {@link endScopes} removes.
   */
  async addScope(id: ScopeId, values: ScopeRecord): Promise<void> {
    if (!keepsScopes(this.#to)) return;
    this.#scopes.push({ id, values });
    if (this.#scopes.length === SCOPES_A_SAVE) await this.#saveScopes();
  }

  async endScopes(): Promise<void> {
    if (!keepsScopes(this.#to)) return;
    if (this.#scopes.length > 0) await this.#saveScopes();
    if (this.#to.capabilities.delete) await this.#to.deleteSession({ ...this.#caller, sessionId: SESSION_ID });
  }

  async #saveScopes(): Promise<void> {
    const written = new Set<ScopeId>();
    const scopes = this.#scopes.map(({ id, values }) => ({
      id,
      // It may run more than once.
      change: (record: ScopeRecord) => {
        written.delete(id);
        if (Object.keys(record).length > 0) return undefined;
        written.add(id);
        return values;
      },
    }));
    const snapshot = { sessionId: SESSION_ID, createdAt: new Date().toISOString() };
    await this.#to.saveSnapshot(undefined, () => snapshot, { ...this.#caller, scopes });
    this.#result.scopes += written.size;
    this.#scopes = [];
  }
}
