import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logger } from 'genkit/logging';
import { FileMemoryStore, type MemoryScopeId, type MemoryStore } from 'genkitx-agents/memory';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ADA, BOB, put, START } from '../../../conformance/memory/support/drafts.ts';
import { encryptionWith } from '../../../privacy/encryption/support.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'memory-jobs-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
  vi.restoreAllMocks();
});

const LEASE = 1000;

const open = (...secrets: string[]): FileMemoryStore =>
  new FileMemoryStore(folder, {
    durability: 'fast',
    ...(secrets.length > 0 && { encryption: encryptionWith(...secrets) }),
  });

function add(store: MemoryStore, id: string, scope: MemoryScopeId): Promise<unknown> {
  return store.addJob({ id, scope, input: id, sourceId: id }, { maxJobs: 9, now: START });
}

/** Rewrites all files below the folder whose paths have a part and end so. */
function rewrite(part: string, ending: string, change: (text: string) => string): void {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  const found = paths.filter((path) => path.includes(part) && path.endsWith(ending));
  expect(found).not.toEqual([]);
  for (const path of found) writeFileSync(path, change(readFileSync(path, 'utf8')));
}

const newer = (text: string) => text.replace(/"format":\d/, '"format":99');
const damage = () => 'junk\n';

it.each([
  ['encrypted under a lost key', 'FAILED_PRECONDITION', undefined],
  ['damaged', 'DATA_LOSS', damage],
  ['of a newer format', 'FAILED_PRECONDITION', newer],
])('a job that is %s does not block jobs of other scopes', async (how, status, change) => {
  const warn = vi.spyOn(logger, 'warn').mockReturnValue();
  const isLost = change === undefined;
  const [before, store] = isLost ? [open('lost'), open('new')] : [open(), open()];
  await add(before, 'of ada', ADA);
  // A job that was taken before is also looked up in the log of its scope.
  await before.claimJob({ owner: 'v', leaseMs: LEASE, now: START });
  if (change) rewrite('.memory-jobs', '.json', change);
  const now = START + 2 * LEASE;
  await add(store, 'of bob', BOB);
  const claim = (scope?: MemoryScopeId) =>
    store.claimJob({ owner: 'w', leaseMs: LEASE, now, ...(scope && { scope }) }).then((job) => job?.id);
  expect([await claim(), await claim()]).toEqual(['of bob', undefined]);
  // Once. A file that is damaged does not say which scope it is of.
  expect(warn.mock.calls.map(([message]) => String(message))).toEqual([
    expect.stringMatching(
      isLost ? /of user "ada" of app "shop" can't be read/ : /in the file [\w-]+\.json can't be read/,
    ),
  ]);
  expect((await store.listJobs()).items.map(({ id }) => id)).toEqual(['of bob']);
  const refusal = { status, message: expect.stringContaining('user "ada" of app "shop"') as string };
  await expect(claim(ADA)).rejects.toMatchObject(refusal);
  await expect(store.listJobs({ scope: ADA })).rejects.toMatchObject(refusal);
  expect(await store.commit(BOB, [put('x')], { job: { id: 'of bob', owner: 'w' } })).toEqual({ revision: 1 });
  expect(await store.erase(ADA)).toMatchObject({ jobs: 1 });
  await Promise.all([before.close(), store.close()]);
});

it('a job whose scope has a damaged log does not block jobs of other scopes, and is not run', async () => {
  const warn = vi.spyOn(logger, 'warn').mockReturnValue();
  const store = open();
  await store.commit(ADA, [put('x')]);
  await add(store, 'of ada', ADA);
  await store.claimJob({ owner: 'v', leaseMs: LEASE, now: START });
  rewrite('.memories', 'log.jsonl', damage);
  await add(store, 'of bob', BOB);
  const claim = (scope?: MemoryScopeId) =>
    store
      .claimJob({ owner: 'w', leaseMs: LEASE, now: START + 2 * LEASE, ...(scope && { scope }) })
      .then((job) => job?.id);
  expect([await claim(), await claim()]).toEqual(['of bob', undefined]);
  expect(warn).toHaveBeenCalledOnce();
  await expect(claim(ADA)).rejects.toMatchObject({ status: 'DATA_LOSS' });
  await store.close();
});
