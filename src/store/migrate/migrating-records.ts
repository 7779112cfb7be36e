import { sessionOf } from '../../snapshot/snapshot.ts';
import {
  keepsRecords,
  type ReadRecordsOptions,
  type RecordStore,
  type SessionRecord,
  type SessionStore,
  type SnapshotLookup,
  type SnapshotStore,
  type WriteRecordOptions,
} from '../contract.ts';
import { byKindAndKey, checkRecordWrite, recordChanged, recordKey, snapshotGone } from '../records/session-records.ts';

/** The two stores of a migration. Records of `from` are read if it keeps records. */
export interface RecordStores<S> {
  readonly from: SessionStore<S>;
  readonly to: SnapshotStore<S> & RecordStore;
}

/** The records of both stores; of a record in both, the one of `to`. */
export async function readFromBoth<S>(
  { from, to }: RecordStores<S>,
  options: ReadRecordsOptions,
): Promise<SessionRecord[]> {
  const records = await to.readRecords(options);
  if (!keepsRecords(from)) return records;
  const known = new Set(records.map(recordKey));
  const older = await from.readRecords(options);
  return [...records, ...older.filter((record) => !known.has(recordKey(record)))].toSorted(byKindAndKey);
}

/** Writes a record to `to`, if its conditions hold for the records of both stores. A removal removes the record from both. */
export async function writeThrough<S>(
  { from, to }: RecordStores<S>,
  options: WriteRecordOptions,
): Promise<string | null> {
  const { sessionId, ifSnapshot } = checkRecordWrite(options);
  const write = await asSeenByTo(from, options);
  const isBoundToFrom =
    ifSnapshot !== undefined && !(await hasSnapshot(to, options)) && (await hasSnapshot(from, options));
  if (!isBoundToFrom) return removeFrom(from, options, await to.writeRecord(write));
  const { ifSnapshot: _, ...unbound } = write;
  const revision = await to.writeRecord(unbound);
  if (await hasSnapshot(from, options)) return removeFrom(from, options, revision);
  // The session was deleted in the meantime, so its records must not stay.
  if (revision !== null) await to.writeRecord({ ...unbound, value: undefined, expectedRevision: revision });
  throw snapshotGone({ sessionId, ifSnapshot });
}

/** The write with the revision to expect in `to`: `null` if the caller has read the record from `from`. */
async function asSeenByTo<S>(from: SessionStore<S>, options: WriteRecordOptions): Promise<WriteRecordOptions> {
  const { sessionId, kind, key, context, expectedRevision } = options;
  if (expectedRevision === undefined || !keepsRecords(from)) return options;
  const [old] = await from.readRecords({ sessionId, kind, keys: [key], context });
  if (old && expectedRevision === null) throw recordChanged(options);
  return old?.revision === expectedRevision ? { ...options, expectedRevision: null } : options;
}

/** Ends a write: a record that `to` has removed must not come back from `from`. */
async function removeFrom<S>(
  from: SessionStore<S>,
  { sessionId, kind, key, context }: WriteRecordOptions,
  revision: string | null,
): Promise<string | null> {
  if (revision === null && keepsRecords(from))
    await from.writeRecord({ sessionId, kind, key, value: undefined, context });
  return revision;
}

async function hasSnapshot<S>(store: SessionStore<S>, { sessionId, ifSnapshot, context }: WriteRecordOptions) {
  const lookup: SnapshotLookup = { snapshotId: ifSnapshot!, context, frozen: true };
  const snapshot = await store.getSnapshot(lookup);
  return snapshot !== undefined && sessionOf(snapshot) === sessionId;
}
