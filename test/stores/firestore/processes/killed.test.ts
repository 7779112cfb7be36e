import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { describe, expect, it } from 'vitest';
import { childScript } from '../../../support/child-script.ts';
import { scale } from '../../../support/scale.ts';
import { measureAtRest } from '../support/at-rest.ts';
import { newProject, openDatabase } from '../support/database.ts';

const SHOP = { scope: 'app', appName: 'shop' } as const;
const SAVER = await childScript(new URL('large-save.ts', import.meta.url));

/** Runs the saver until it ends or is killed before its n-th commit. Returns how many commits it sent; `undefined` if it was killed. */
async function save(project: string, fatal: number): Promise<number | undefined> {
  const child = spawn(process.execPath, [SAVER, project, String(fatal)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  if (signal === 'SIGKILL') return undefined;
  expect(code).toBe(0);
  return Number(output);
}

describe('crash-kill: a process that is killed in the middle of a large save', () => {
  it('keeps the old leaf and the old record, and leaves only orphans that a prune removes, killed at any step', async () => {
    const steps = (await prepared(async (project) => save(project, 0)))!;
    expect(steps).toBeGreaterThan(2);
    for (let fatal = 1; fatal <= steps; fatal += scale(3, 1)) {
      await prepared(async (project, store, small) => {
        expect(await save(project, fatal)).toBeUndefined();
        expect(await store.getSnapshot({ sessionId: 'killed' })).toEqual(small);
        expect(await store.getSnapshot({ snapshotId: 'large' })).toBeUndefined();
        expect(await store.readScopes({ scopes: [SHOP] })).toEqual([{ sold: 'small' }]);
        const foreseen = await store.prune({ maxAgeMs: 1e12 }, { dryRun: true });
        const result = await store.prune({ maxAgeMs: 1e12 });
        expect(result).toEqual({ ...foreseen, dryRun: false });
        expect(result.shards > 0).toBe(fatal > 1);
        const db = openDatabase(project);
        // The snapshot, its pointer and the record.
        expect((await measureAtRest(db)).documents).toBe(3);
        await db.terminate();
        expect(await store.getSnapshot({ sessionId: 'killed' })).toEqual(small);
        return undefined;
      });
    }
  });
});

async function prepared<T>(
  work: (project: string, store: FirestoreSessionStore, small: unknown) => Promise<T>,
): Promise<T> {
  const project = newProject();
  const db = openDatabase(project);
  const store = new FirestoreSessionStore({ db });
  const small = {
    sessionId: 'killed',
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'completed',
  } as const;
  await store.saveSnapshot('small', () => ({ ...small, state: { messages: [] } }), {
    scopes: [{ id: SHOP, change: () => ({ sold: 'small' }) }],
  });
  try {
    return await work(project, store, await store.getSnapshot({ snapshotId: 'small' }));
  } finally {
    await db.terminate();
  }
}
