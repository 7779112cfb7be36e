import { copyJson } from '../../src/json/value.ts';
import type { SessionRecord } from '../../src/store/contract.ts';
import {
  assertMayWrite,
  byKindAndKey,
  ORPHAN_RECORD_MS,
  recordKey,
  type RecordRead,
  type RecordWrite,
} from '../../src/store/records/session-records.ts';

interface KeptRecord extends SessionRecord {
  /** When it was written, in ms since 1970. */
  readonly writtenAt: number;
}

/**
 * The session records of one tenant.
 *
 * Invariant: `#sessions` holds the sessions that have a record, each with its records by {@link recordKey}. A record is never changed in place.
 */
export class TenantRecords {
  readonly #sessions = new Map<string, Map<string, KeptRecord>>();

  get isEmpty(): boolean {
    return this.#sessions.size === 0;
  }

  /** The caller's own copies. */
  read({ sessionId, kind, keys }: RecordRead): SessionRecord[] {
    const kept = this.#sessions.get(sessionId) ?? new Map<string, KeptRecord>();
    const found = keys
      ? keys.map((key) => kept.get(recordKey({ kind: kind!, key }))).filter((record) => record !== undefined)
      : [...kept.values()].filter((record) => (kind ?? record.kind) === record.kind).toSorted(byKindAndKey);
    return found.map(handOut);
  }

  /** Returns the new revision, `null` after a removal. */
  write(write: RecordWrite, hasSnapshot: () => boolean): string | null {
    const { sessionId, kind, key, value } = write;
    const name = recordKey(write);
    const kept = this.#sessions.get(sessionId) ?? new Map<string, KeptRecord>();
    assertMayWrite(write, kept.get(name)?.revision, hasSnapshot);
    if (value === undefined) {
      this.#drop(sessionId, kept, [name]);
      return null;
    }
    const revision = globalThis.crypto.randomUUID();
    this.#sessions.set(sessionId, kept.set(name, { kind, key, value, revision, writtenAt: Date.now() }));
    return revision;
  }

  removeSession(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  /** Removes records that have waited too long for the first snapshot of their session. */
  removeOrphans(now: number, hasSnapshots: (sessionId: string) => boolean): void {
    for (const [sessionId, kept] of this.#sessions) {
      if (hasSnapshots(sessionId)) continue;
      const old = [...kept].filter(([, { writtenAt }]) => now - writtenAt > ORPHAN_RECORD_MS);
      this.#drop(
        sessionId,
        kept,
        old.map(([name]) => name),
      );
    }
  }

  /** The number of records. */
  get count(): number {
    return [...this.#sessions.values()].reduce((sum, kept) => sum + kept.size, 0);
  }

  /** Sessions without snapshots that have records, and when the last of those was written. */
  orphans(hasSnapshots: (sessionId: string) => boolean): { sessionId: string; writtenAt: number }[] {
    return [...this.#sessions].flatMap(([sessionId, kept]) =>
      hasSnapshots(sessionId)
        ? []
        : [{ sessionId, writtenAt: Math.max(...[...kept.values()].map((one) => one.writtenAt)) }],
    );
  }

  #drop(sessionId: string, kept: Map<string, KeptRecord>, names: readonly string[]): void {
    for (const name of names) kept.delete(name);
    if (kept.size === 0) this.#sessions.delete(sessionId);
  }
}

function handOut({ kind, key, value, revision }: KeptRecord): SessionRecord {
  return { kind, key, value: copyJson(value), revision };
}
