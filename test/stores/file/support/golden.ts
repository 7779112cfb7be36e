/**
 * What the golden folders hold: `write` made `test/golden/file-v1` with the first version of the format, and every later version has to
 * read it. Run `node --import tsx test/stores/file/support/golden.ts <new folder>` for a new version of the format; never overwrite one.
 * `writeRecords` made `test/golden/file-v1-records`, and `writeSessionRecords` `test/golden/file-v1-session-records`: the same with `records` or
 * `session-records` behind it.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { FileSessionStore, type FileSessionStoreOptions } from '../../../../stores/file/file-session-store.ts';
import type { Json } from '../../../../src/json/value.ts';
import type { ScopeChange, ScopeId, ScopeRecord, WriteRecordOptions } from '../../../../src/store/contract.ts';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { Random } from '../../../support/random.ts';

interface Custom {
  turn: number;
  noise?: string;
}

/** The stores of the golden folder, one tenant each. */
const TENANTS: Readonly<Record<string, FileSessionStoreOptions>> = {
  'diffs and checkpoints': { checkpointInterval: 4 },
  'Full Snapshots': { checkpointInterval: 1 },
  pruned: { checkpointInterval: 4, maxPersistedChainLength: 3 },
  [`a tenant with a name of ${'very '.repeat(60)}many words 🙂`]: {},
};

export const GOLDEN_TENANTS = Object.keys(TENANTS);

export function openTenant(folder: string, tenant: string): FileSessionStore<Custom> {
  return new FileSessionStore<Custom>(folder, { ...TENANTS[tenant], snapshotPathPrefix: () => tenant });
}

/** Everything that can be read of a tenant. */
export async function readTenant(folder: string, tenant: string): Promise<unknown> {
  const store = openTenant(folder, tenant);
  const found: Record<string, unknown> = {};
  const { items } = await store.listSessions();
  for (const { sessionId } of items) {
    const listed = (await store.listSnapshots({ sessionId })).items;
    for (const { snapshotId } of listed) found[snapshotId] = await store.getSnapshot({ snapshotId });
    found[`latest of ${sessionId}`] = (await store.getSnapshot({ sessionId }))?.snapshotId;
    found[`snapshots of ${sessionId}`] = listed.map((item) => item.snapshotId);
  }
  found['loner'] = await store.getSnapshot({ snapshotId: 'loner' });
  await store.close();
  return { sessions: items, found };
}

/** The expectations of a golden folder. */
export function expectationsOf(folder: string): Record<string, unknown> {
  return JSON.parse(readFileSync(`${folder}.json`, 'utf8')) as Record<string, unknown>;
}

async function writeTenant(folder: string, tenant: string): Promise<void> {
  const store = openTenant(folder, tenant);
  const random = new Random(7);
  const messages: { role: 'user'; content: { text: string }[] }[] = [];
  for (let turn = 1; turn <= 14; turn++) {
    // Some turns are large enough for packed patches, and all together for shards.
    const text = Array.from({ length: turn % 3 === 0 ? 700 : 60 }, () => random.below(1000)).join(' ');
    messages.push({ role: 'user', content: [{ text }] });
    await save(store, `turn-${turn}`, turn === 1 ? undefined : `turn-${turn - 1}`, { turn }, messages);
  }
  await save(store, 'branch', 'turn-13', { turn: 100, noise: '\uD800 -0 \0' }, messages.slice(0, 3));
  await store.saveSnapshot('turn-12', (current) => ({ ...current!, note: 'checked' }));
  await store.saveSnapshot('branch', (current) => ({ ...current!, updatedAt: '2026-02-02T00:00:00.000Z' }));
  await store.saveSnapshot(
    'loner',
    () => ({ createdAt: '2026-01-01T00:00:00.000Z', status: 'failed', error: { message: 'none' } }) as never,
  );
  const odd = {
    sessionId: 'A/b ~%',
    'genkitx-agents': { format: 'mine' },
    createdAt: '2026-01-02T00:00:00.000Z',
    status: 'pending',
  };
  await store.saveSnapshot('../Odd Id.json', () => odd as never);
  await store.saveSnapshot('../Odd Id.json', (current) => ({ ...current!, state: { custom: { turn: -0 } } }), {
    session: { ownerId: 'ada', agent: 'support', title: 'Odd' },
  });
  await store.close();
}

async function save(
  store: FileSessionStore<Custom>,
  id: string,
  parentId: string | undefined,
  custom: Custom,
  messages: { role: 'user'; content: { text: string }[] }[],
): Promise<void> {
  await store.saveSnapshot(id, () => ({
    sessionId: 'a session',
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'completed',
    ...(parentId !== undefined && { parentId }),
    state: { custom, messages },
  }));
}

/** The records of the golden folder that has some. */
export const GOLDEN_RECORDS: readonly (readonly [ScopeId, ScopeRecord])[] = [
  [
    { scope: 'app', appName: 'shop' },
    { discount: 5, 'a.b': [[-0], { '': null }] },
  ],
  [{ scope: 'user', appName: 'shop', userId: 'ada' }, { visits: 2 }],
  [{ scope: 'user', appName: '../A b', userId: '\uD800 é' }, JSON.parse('{"__proto__":{"x":1},"~/":"\\u0000\\ud800"}')],
];

/** Two saves; of the second one the records were not settled, as when its process had been killed after the commit point. */
async function writeRecords(folder: string): Promise<void> {
  const rename: FileSystem['rename'] = (from, to) => {
    if (/\.scopes\/.*json$/.test(to)) throw new Error('killed');
    nodeFileSystem.rename(from, to);
  };
  const changes = GOLDEN_RECORDS.map(([id, record]): ScopeChange => ({ id, change: () => record }));
  for (const [id, fileSystem, scopes] of [
    ['turn-1', nodeFileSystem, [changes[0]!, { id: changes[1]!.id, change: () => ({ visits: 1 }) }]],
    ['turn-2', { ...nodeFileSystem, rename }, changes.slice(1)],
  ] as const) {
    const store = new FileSessionStore(folder, {}, fileSystem);
    const save = { sessionId: 'a session', createdAt: '2026-01-01T00:00:00.000Z', status: 'completed' } as const;
    await store.saveSnapshot(id, () => save, { scopes });
    await store.close();
  }
  for (const name of ['.locks', '.tmp']) rmSync(join(folder, name), { recursive: true });
}

/** The session records of the golden folder that has some; the second session has no snapshot. */
export const GOLDEN_SESSION_RECORDS: readonly Omit<WriteRecordOptions, 'expectedRevision'>[] = [
  { sessionId: 'a session', kind: 'summary', key: 'A/b ~%', value: { text: '\uD800 \0', 'a.b': [[-0], { '': null }] } },
  { sessionId: 'a session', kind: 'summary', key: 'latest', value: JSON.parse('{"__proto__":{"x":1}}') as Json },
  { sessionId: '../Not begun 🙂', kind: 'k'.repeat(1000), key: 'one', value: 'short' },
];

async function writeSessionRecords(folder: string): Promise<void> {
  const store = new FileSessionStore(folder);
  await store.saveSnapshot('turn-1', () => ({ sessionId: 'a session', createdAt: '2026-01-01T00:00:00.000Z' }));
  for (const record of GOLDEN_SESSION_RECORDS) await store.writeRecord(record);
  await store.close();
  for (const name of ['.locks', '.tmp']) rmSync(join(folder, name), { recursive: true });
}

async function write(folder: string): Promise<void> {
  const expectations: Record<string, unknown> = {};
  for (const tenant of GOLDEN_TENANTS) {
    await writeTenant(folder, tenant);
    expectations[tenant] = await readTenant(folder, tenant);
  }
  for (const name of ['.locks', '.tmp']) rmSync(join(folder, name), { recursive: true });
  writeFileSync(`${folder}.json`, `${JSON.stringify(expectations, null, 1)}\n`, { flag: 'wx' });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [, , folder, what = ''] = process.argv;
  await ({ records: writeRecords, 'session-records': writeSessionRecords }[what] ?? write)(folder!);
}
