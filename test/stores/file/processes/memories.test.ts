import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { FileMemoryStore } from 'genkitx-agents/memory';
import { expect, it } from 'vitest';
import { ADA, put } from '../../../conformance/memory/support/drafts.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { childScript } from '../../../support/child-script.ts';

it('50 corroborations by 2 processes are 50, and 24 jobs are done once each', async () => {
  const folder = temporaryFolder();
  const store = new FileMemoryStore(folder, { durability: 'fast' });
  await store.commit(ADA, [put('seat', { times: 0 })]);
  for (let i = 0; i < 24; i++) {
    const scope = { scope: 'user', appName: 'shop', userId: `u${i % 4}` } as const;
    await store.addJob({ id: `job ${i}`, scope, input: i, sourceId: `chat ${i}` }, { maxJobs: 100 });
  }
  const script = await childScript(new URL('./scripts/memory-child.ts', import.meta.url), { isWhole: true });
  const run = promisify(execFile);
  await Promise.all(['w1', 'w2'].map((owner) => run(process.execPath, [script, folder, owner, '25'])));
  const [memory] = await store.get(ADA, ['seat']);
  expect([memory?.['times'], memory?.revision, await store.revision(ADA)]).toEqual([50, 51, 51]);
  const counts: unknown[] = [];
  for (let i = 0; i < 4; i++) {
    const { notes } = await store.notes({ scope: 'user', appName: 'shop', userId: `u${i}` }, 'count');
    counts.push(...notes.map(({ value }) => value));
  }
  expect(counts).toEqual(Array.from({ length: 24 }, () => 1));
  await store.close();
});
