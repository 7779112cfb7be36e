import type { ReadRecordsOptions, RecordStore, SessionRecord, WriteRecordOptions } from '../../store/contract.ts';
import { LruCache } from '../../store/parts/lru-cache.ts';
import {
  assertMayWrite,
  byKindAndKey,
  checkRecordRead,
  checkRecordWrite,
} from '../../store/records/session-records.ts';
import { contextKey } from './context-key.ts';

const MOST_SESSIONS = 1_000;

/** Keeps session records in this process, for stores that keep none. Only the most recently used sessions are kept. */
export class LocalRecords implements RecordStore {
  readonly #sessions = new LruCache<Map<string, SessionRecord>>(MOST_SESSIONS);
  #writes = 0;

  async readRecords(options: ReadRecordsOptions): Promise<SessionRecord[]> {
    const { kind, keys } = checkRecordRead(options);
    const records = [...(this.#sessions.get(sessionKey(options))?.values() ?? [])];
    return records
      .filter((record) => (kind ?? record.kind) === record.kind && (keys?.includes(record.key) ?? true))
      .toSorted(byKindAndKey)
      .map((record) => structuredClone(record));
  }

  async writeRecord(options: WriteRecordOptions): Promise<string | null> {
    const write = checkRecordWrite(options);
    const key = sessionKey(options);
    const records = this.#sessions.get(key) ?? new Map<string, SessionRecord>();
    const id = JSON.stringify([write.kind, write.key]);
    assertMayWrite(write, records.get(id)?.revision, () => true);
    this.#sessions.set(key, records, 1);
    if (write.value === undefined) {
      records.delete(id);
      return null;
    }
    const revision = String(++this.#writes);
    records.set(id, { kind: write.kind, key: write.key, value: write.value, revision });
    return revision;
  }
}

function sessionKey({ sessionId, context }: ReadRecordsOptions | WriteRecordOptions): string {
  return JSON.stringify([contextKey(context), sessionId]);
}
