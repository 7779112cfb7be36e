import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from './support/folders.ts';
import { expectationsOf, GOLDEN_TENANTS, openTenant, readTenant } from './support/golden.ts';

const GOLDEN = fileURLToPath(new URL('../../golden', import.meta.url));

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

      it(`goes on with new saves, rewrites and pruning: ${tenant.slice(0, 40)}`, async () => {
        const folder = temporaryFolder();
        cpSync(join(GOLDEN, version), folder, { recursive: true });
        const store = openTenant(folder, tenant);
        const before = await store.getSnapshot({ snapshotId: 'turn-14' });
        const state = { ...before!.state, custom: { turn: 15 } };
        await store.saveSnapshot('turn-15', () => ({ ...before!, parentId: 'turn-14', state }));
        await store.saveSnapshot('turn-13', (current) => ({ ...current!, state: { custom: { turn: 0 } } }));
        await store.prune({ maxChainLength: 2 });
        const cold = openTenant(folder, tenant);
        expect((await cold.getSnapshot({ sessionId: 'a session' }))?.state).toEqual(state);
        expect((await cold.getSnapshot({ snapshotId: 'turn-14' }))?.state).toEqual(before!.state);
        expect((await cold.getSnapshot({ snapshotId: 'branch' }))?.state?.custom?.turn).toBe(100);
      });
    }
  });
}
