import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import {
  expectationsOf,
  GOLDEN_RECORDS,
  GOLDEN_SESSION_RECORDS,
  GOLDEN_TENANTS,
  openTenant,
  readTenant,
} from '../support/golden.ts';

const GOLDEN = fileURLToPath(new URL('../../../golden', import.meta.url));

for (const version of ['file-v1']) {
  describe(`a directory of the format ${version}`, () => {
    const expectations = expectationsOf(join(GOLDEN, version));

    for (const tenant of GOLDEN_TENANTS) {
      it(`reads as it was written: ${tenant.slice(0, 40)}`, async () => {
        const folder = temporaryFolder();
        cpSync(join(GOLDEN, version), folder, { recursive: true });
        // -0 is 0 in the expectations, which are JSON.
        const read: unknown = JSON.parse(JSON.stringify(await readTenant(folder, tenant)));
        expect(read).toEqual(expectations[tenant]);
      });

      it(`works with new saves, rewrites and pruning: ${tenant.slice(0, 40)}`, async () => {
        const folder = temporaryFolder();
        cpSync(join(GOLDEN, version), folder, { recursive: true });
        const store = openTenant(folder, tenant);
        const before = await store.getSnapshot({ snapshotId: 'turn-14' });
        const state = { ...before!.state, custom: { turn: 15 } };
        await store.saveSnapshot('turn-15', () => ({ ...before!, parentId: 'turn-14', state }));
        await store.saveSnapshot('branch', (current) => ({ ...current!, note: 'checked' }));
        await store.prune({ maxChainLength: 2 });
        const cold = openTenant(folder, tenant);
        expect((await cold.getSnapshot({ sessionId: 'a session' }))?.state).toEqual(state);
        expect((await cold.getSnapshot({ snapshotId: 'turn-14' }))?.state).toEqual(before!.state);
        expect((await cold.getSnapshot({ snapshotId: 'branch' }))?.state?.custom?.turn).toBe(100);
      });
    }
  });
}

describe('a directory of the format file-v1 that has records', () => {
  const scopes = GOLDEN_RECORDS.map(([id]) => id);
  const records = GOLDEN_RECORDS.map(([, record]) => record);

  it('reads as it was written, drafts included, and works with new saves', async () => {
    const folder = temporaryFolder();
    cpSync(join(GOLDEN, 'file-v1-records'), folder, { recursive: true });
    const store = new FileSessionStore(folder);
    expect(await store.readScopes({ scopes })).toEqual(records);
    await store.saveSnapshot('turn-2', (current) => ({ ...current!, updatedAt: '2026-01-02T00:00:00.000Z' }), {
      scopes: [{ id: scopes[1]!, change: ({ visits }) => ({ visits: Number(visits) + 1 }) }],
    });
    expect(await new FileSessionStore(folder).readScopes({ scopes })).toEqual(records.with(1, { visits: 3 }));
  });
});

describe('a directory of the format file-v1 that has records of sessions', () => {
  it('reads as it was written, and works with new saves', async () => {
    const folder = temporaryFolder();
    cpSync(join(GOLDEN, 'file-v1-session-records'), folder, { recursive: true });
    const store = new FileSessionStore(folder);
    for (const { sessionId, kind, key, value } of GOLDEN_SESSION_RECORDS) {
      const [found] = await store.readRecords({ sessionId, kind, keys: [key] });
      expect(found?.value).toEqual(value);
      await store.writeRecord({ sessionId, kind, key, value: 'next', expectedRevision: found!.revision });
      expect(await store.readRecords({ sessionId, kind, keys: [key] })).toMatchObject([{ key, value: 'next' }]);
    }
    await store.deleteSession({ sessionId: 'a session' });
    expect(await store.readRecords({ sessionId: 'a session', kind: 'summary' })).toEqual([]);
  });
});
