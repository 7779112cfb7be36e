import { readdirSync, readFileSync } from 'node:fs';
import type { Firestore } from '@google-cloud/firestore';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../support/database.ts';
import {
  doubleRecords,
  fromJson,
  goOn,
  openGolden,
  readGolden,
  readGoldenRecords,
  readGoldenSessionRecords,
  type Golden,
  type GoldenRecords,
  type GoldenSessionRecords,
} from '../support/golden.ts';

const folder = new URL('../../../golden/', import.meta.url);
const names = readdirSync(folder).toSorted();
const files = names.filter((name) => /^firestore-\d/.test(name));
const recordFiles = names.filter((name) => name.startsWith('firestore-records-'));
const sessionRecordFiles = names.filter((name) => name.startsWith('firestore-session-records-'));

async function restore(documents: Record<string, unknown>): Promise<Firestore> {
  const db = openDatabase();
  for (const [path, data] of Object.entries(documents)) await db.doc(path).set(fromJson(data) as object);
  return db;
}

describe('golden documents', () => {
  it.each(files)('%s is read as it was written, and works with new saves', async (name) => {
    const golden = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Golden;
    const db = await restore(golden.documents);
    const store = openGolden(db);
    for (const expected of golden.expected) {
      const { tenant } = expected;
      // Through JSON, which has no minus zero.
      expect(JSON.parse(JSON.stringify(await readGolden(store, tenant)))).toEqual(expected);
      const leaf = (await store.getSnapshot({ sessionId: 'chat \u0000 é', context: { tenant } }))!;
      const next = { ...leaf, parentId: leaf.snapshotId, state: { ...leaf.state, custom: { goes: 'on' } } };
      await store.saveSnapshot('next', () => next, { context: { tenant }, expectedLeafId: leaf.snapshotId });
      const read = await openGolden(db).getSnapshot({ snapshotId: 'next', context: { tenant } });
      expect(read?.state).toEqual(next.state);
    }
  });

  it.each(recordFiles)('%s is read as it was written, and works with new saves', async (name) => {
    const golden = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as GoldenRecords;
    const db = await restore(golden.documents);
    const store = openGolden(db);
    for (const expected of golden.expected) {
      expect(await readGoldenRecords(store, expected.tenant)).toEqual(expected);
      await goOn(store, expected.tenant);
      const { records } = await readGoldenRecords(store, expected.tenant);
      expect(records).toEqual(expected.records.map((record) => ({ ...record, n: Number(record['n']) + 1 })));
    }
  });

  it.each(sessionRecordFiles)('%s is read as it was written, and works with new saves', async (name) => {
    const golden = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as GoldenSessionRecords;
    const db = await restore(golden.documents);
    const store = openGolden(db);
    for (const expected of golden.expected) {
      expect(await readGoldenSessionRecords(store, expected.tenant)).toEqual(expected);
      await doubleRecords(store, expected);
      const { sessionRecords } = await readGoldenSessionRecords(store, expected.tenant);
      const doubled = expected.sessionRecords.map(({ value }) => [value, value]);
      expect(sessionRecords.map(({ value }) => value)).toEqual(doubled);
    }
  });

  it('there is one of each format', () => {
    expect(files).toEqual(['firestore-1.json']);
    expect(recordFiles).toEqual(['firestore-records-1.json']);
    expect(sessionRecordFiles).toEqual(['firestore-session-records-1.json']);
  });
});
