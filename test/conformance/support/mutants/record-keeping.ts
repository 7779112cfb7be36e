import type { ReadRecordsOptions, SessionRecord, WriteRecordOptions } from '../../../../src/store/contract.ts';
import { InMemorySessionStore } from '../../../../stores/in-memory/in-memory-session-store.ts';
import { replacing, without, type Methods, type Mutant } from './mutant.ts';

/** A correct store that writes something other than requested. */
function writing(
  change: (options: WriteRecordOptions, sound: Methods) => WriteRecordOptions | Promise<WriteRecordOptions>,
): Mutant['make'] {
  return replacing((sound) => ({
    writeRecord: async (options) => sound.writeRecord(options && (await change(options, sound))),
  }));
}

/** A correct store that returns something other than it has read. */
function answeringRecords(
  change: (records: SessionRecord[], options: ReadRecordsOptions) => SessionRecord[],
): Mutant['make'] {
  return replacing((sound) => ({
    readRecords: async (options) => change(await sound.readRecords(options), options),
  }));
}

/** Restores the session's records after `remove` removed them. */
async function keeping<T>(sound: Methods, session: ReadRecordsOptions, remove: () => Promise<T>): Promise<T> {
  const records = await sound.readRecords(session);
  const result = await remove();
  for (const { kind, key, value } of records) await sound.writeRecord({ ...session, kind, key, value });
  return result;
}

/** Values that belong to a session but are not snapshots. */
export const recordKeeping: readonly Mutant[] = [
  {
    fault: 'does not compare the revision of a record',
    subject: 'session records',
    make: writing((options) => without(options, 'expectedRevision')),
  },
  {
    fault: 'compares the revision of a record, waits, and writes',
    subject: 'session records',
    make: writing(async ({ expectedRevision, ...options }, sound) => {
      const { value: _, key, ...named } = options;
      const [record] = await sound.readRecords({ ...named, keys: [key] });
      if (expectedRevision !== undefined && expectedRevision !== (record?.revision ?? null)) {
        return { ...options, expectedRevision };
      }
      await new Promise((resolve) => setImmediate(resolve));
      return options;
    }),
  },
  {
    fault: 'counts the revisions of each record from 1',
    subject: 'session records',
    make: replacing((sound) => {
      const counts = new Map<string, number>();
      return {
        readRecords: async (options) => {
          const records = await sound.readRecords(options);
          return records.map((record) => ({ ...record, revision: String(counts.get(record.revision)) }));
        },
        writeRecord: async (options) => {
          const { sessionId, kind, key, context, expectedRevision } = options;
          const [record] = await sound.readRecords({ sessionId, kind, keys: [key], context });
          const count = (record && counts.get(record.revision)) ?? 0;
          const isExpected = record !== undefined && expectedRevision === String(count);
          const expected = isExpected ? { expectedRevision: record.revision } : {};
          const revision = await sound.writeRecord({ ...options, ...expected });
          if (revision === null) return null;
          counts.set(revision, count + 1);
          return String(count + 1);
        },
      };
    }),
  },
  {
    fault: 'writes records for removed snapshots',
    subject: 'session records',
    make: writing((options) => without(options, 'ifSnapshot')),
  },
  {
    fault: 'accepts a snapshot of another session for ifSnapshot',
    subject: 'session records',
    make: writing(async ({ ifSnapshot, ...options }, sound) => {
      if (ifSnapshot === undefined) return options;
      const isThere = await sound.getSnapshot({ snapshotId: ifSnapshot, context: options.context });
      return isThere ? options : { ...options, ifSnapshot };
    }),
  },
  {
    fault: 'leaves the records of a deleted session behind',
    subject: 'session records',
    make: replacing((sound) => ({
      deleteSession: (options) => keeping(sound, options, () => sound.deleteSession(options)),
    })),
  },
  {
    fault: 'leaves the records of a pruned session behind',
    subject: 'session records',
    make: replacing((sound) => ({
      prune: (policy, options = {}) =>
        keeping(sound, { context: options.context, sessionId: 'chat' }, () => sound.prune(policy, options)),
    })),
  },
  {
    fault: 'prunes records that wait for the first snapshot of their session',
    subject: 'session records',
    make: replacing((sound) => {
      const sessions = new Set<string>();
      return {
        writeRecord: (options) => {
          sessions.add(options?.sessionId);
          return sound.writeRecord(options);
        },
        prune: async (policy, options = {}) => {
          for (const sessionId of options.dryRun ? [] : sessions) {
            const session = { context: options.context, sessionId };
            if (!(await sound.getSnapshotMetadata(session))) await sound.deleteSession(session);
          }
          return sound.prune(policy, options);
        },
      };
    }),
  },
  {
    fault: 'keeps records in a snapshot of the session',
    subject: 'session records',
    make: replacing((sound) => ({
      writeRecord: async (options) => {
        const revision = await sound.writeRecord(options);
        const { sessionId, context } = options;
        const snapshotId = `records of ${sessionId.slice(0, 100)}`;
        const createdAt = '2026-01-01T00:00:00.000Z';
        await sound.saveSnapshot(snapshotId, () => ({ sessionId, createdAt, status: 'completed' }), { context });
        return revision;
      },
    })),
  },
  {
    fault: 'sorts records by the rules of a language',
    subject: 'session records',
    make: answeringRecords((records) => records.toSorted((x, y) => x.key.localeCompare(y.key, 'en'))),
  },
  {
    fault: 'joins kind and key of a record',
    subject: 'session records',
    make: replacing((sound) => {
      const kinds = new Map<string, string>();
      return {
        writeRecord: (options) => {
          const name = `${options?.sessionId} ${options?.kind}/${options?.key}`;
          if (!kinds.has(name)) kinds.set(name, options?.kind);
          return sound.writeRecord(options && { ...options, kind: kinds.get(name)! });
        },
      };
    }),
  },
  {
    fault: 'gives all tenants the same session records',
    subject: 'session records',
    make: (options) => {
      const common = new InMemorySessionStore();
      const make = replacing((sound) => ({
        readRecords: async (call) => {
          await sound.readRecords(call);
          return common.readRecords(call);
        },
        writeRecord: async (call) => common.writeRecord(without(call, 'ifSnapshot')),
      }));
      return make(options);
    },
  },
];
