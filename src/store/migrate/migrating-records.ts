import { sessionOf } from '../../snapshot/snapshot.ts';
import {
  keepsRecords,
  type ReadRecordsOptions,
  type RecordStore,
  type SessionRecord,
  type SessionStore,
  type SnapshotStore,
  type WriteRecordOptions,
} from '../contract.ts';
import { byKindAndKey, checkRecordWrite, recordChanged, snapshotGone, type RecordName } from '../session-records.ts';

/** The two stores of a migration. Records of `from` are read where it keeps some. */
export interface RecordStores<S> {
  readonly from: SessionStore<S>;
  readonly to: SnapshotStore<S> & RecordStore;
}

/** The records of both; a record that is in both is the one of `to`. */
export async function readFromBoth<S>(
  { from, to }: RecordStores<S>,
  options: ReadRecordsOptions,
): Promise<SessionRecord[]> {
  const records = await to.readRecords(options);
  if (!keepsRecords(from)) return records;
  const known = new Set(records.map(nameOf));
  const older = await from.readRecords(options);
  return [...records, ...older.filter((record) => !known.has(nameOf(record)))].toSorted(byKindAndKey);
}

function nameOf({ kind, key }: RecordName): string {
  return JSON.stringify([kind, key]);
}

/** Writes to `to` what was decided by the records of both. A removal works on both. */
export async function writeThrough<S>(stores: RecordStores<S>, options: WriteRecordOptions): Promise<string | null> {
  const { from, to } = stores;
  const { sessionId, ifSnapshot } = checkRecordWrite(options);
  const expecting = await expectingOfTo(from, options);
  const isInFrom = ifSnapshot !== undefined && (await hasSnapshot(from, options)) && !(await hasSnapshot(to, options));
  const { ifSnapshot: _, ...unbound } = expecting;
  const revision = await to.writeRecord(isInFrom ? unbound : expecting);
  if (isInFrom && !(await hasSnapshot(from, options)) && !(await hasSnapshot(to, options))) {
    // The session was deleted in the meantime: nothing of it may stay.
    if (revision !== null) await to.writeRecord({ ...unbound, value: undefined, expectedRevision: revision });
    throw snapshotGone({ sessionId, ifSnapshot });
  }
  if (options.value === undefined && keepsRecords(from)) await from.writeRecord(withoutExpectations(options));
  return revision;
}

/** The write with the revision that `to` has to have: none, where the caller has read the record in `from`. */
async function expectingOfTo<S>(from: SessionStore<S>, options: WriteRecordOptions): Promise<WriteRecordOptions> {
  const { sessionId, kind, key, context, expectedRevision } = options;
  if (expectedRevision === undefined || !keepsRecords(from)) return options;
  const [old] = await from.readRecords({ sessionId, kind, keys: [key], context });
  if (old && expectedRevision === null) throw recordChanged(options);
  return old?.revision === expectedRevision ? { ...options, expectedRevision: null } : options;
}

function withoutExpectations({ sessionId, kind, key, value, context }: WriteRecordOptions): WriteRecordOptions {
  return { sessionId, kind, key, value, context };
}

async function hasSnapshot<S>(store: SessionStore<S>, { sessionId, ifSnapshot, context }: WriteRecordOptions) {
  const snapshot = await store.getSnapshot({ snapshotId: ifSnapshot!, context });
  return snapshot !== undefined && sessionOf(snapshot) === sessionId;
}
