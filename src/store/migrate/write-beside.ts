import {
  keepsRecords,
  type ScopeId,
  type ScopeRecord,
  type SessionRecord,
  type SessionStoreOptions,
  type SnapshotStore,
} from '../contract.ts';
import { recordKey } from '../records/session-records.ts';

/** Records written with one save. */
const SCOPES_A_SAVE = 50;
/** A fixed id: if a copy is killed, the next one removes its session. */
const SESSION_ID = 'genkitx-agents:copy of records';

/**
 * Writes records of users and apps that the store does not have. Only a save can write them, so they are saved with a snapshot of a
 * temporary session, which `end` removes.
 */
export class ScopeWriter<S> {
  readonly #to: SnapshotStore<S>;
  readonly #caller: SessionStoreOptions;
  #waiting: { readonly id: ScopeId; readonly values: ScopeRecord }[] = [];
  #written = 0;

  /** @param to A store with `capabilities.scopes`. */
  constructor(to: SnapshotStore<S>, caller: SessionStoreOptions) {
    this.#to = to;
    this.#caller = caller;
  }

  async add(id: ScopeId, values: ScopeRecord): Promise<void> {
    this.#waiting.push({ id, values });
    if (this.#waiting.length === SCOPES_A_SAVE) await this.#save();
  }

  /** Answers how many were written. */
  async end(): Promise<number> {
    if (this.#waiting.length > 0) await this.#save();
    if (this.#to.capabilities.delete) await this.#to.deleteSession({ ...this.#caller, sessionId: SESSION_ID });
    return this.#written;
  }

  async #save(): Promise<void> {
    const written = new Set<ScopeId>();
    const scopes = this.#waiting.map(({ id, values }) => ({
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
    this.#written += written.size;
    this.#waiting = [];
  }
}

/** Writes the session records that `to` does not have; answers how many. */
export async function writeMissingRecords<S>(
  to: SnapshotStore<S>,
  session: SessionStoreOptions & { sessionId: string },
  records: readonly Omit<SessionRecord, 'revision'>[],
): Promise<number> {
  if (records.length === 0 || !keepsRecords(to)) return 0;
  const there = new Set((await to.readRecords(session)).map(recordKey));
  const missing = records.filter((record) => !there.has(recordKey(record)));
  for (const { kind, key, value } of missing) {
    await to.writeRecord({ ...session, kind, key, value, expectedRevision: null });
  }
  return missing.length;
}
