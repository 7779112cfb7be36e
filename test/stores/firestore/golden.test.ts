import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { openDatabase } from './support/database.ts';
import { fromJson, openGolden, readGolden, type Golden } from './support/golden.ts';

const folder = new URL('../../golden/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.startsWith('firestore-'));

describe('golden documents', () => {
  it.each(files)('%s is read as it was written, and goes on', async (name) => {
    const golden = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Golden;
    const db = openDatabase();
    for (const [path, data] of Object.entries(golden.documents)) await db.doc(path).set(fromJson(data) as object);
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
    await db.terminate();
  });

  it('there is one of each format', () => {
    expect(files).toEqual(['firestore-1.json']);
  });
});
