/** The rights of a user whose files are damaged, of a newer version, or can't be opened. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileSessionStore, genkit, InMemorySessionStore } from 'genkitx-agents';
import { FileMemoryStore, memoryManager } from 'genkitx-agents/memory';
import { eraseUser, exportUser, type ExportedLine } from 'genkitx-agents/privacy';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem } from '../../../stores/file/disk/file-system.ts';
import { contentsBelow } from '../../stores/file/support/folders.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { note, put } from '../../conformance/memory/support/drafts.ts';
import { collect } from '../../support/collect.ts';

const CANARY = 'canary-5e21';
const createdAt = new Date().toISOString();

/** Changes that make a file unreadable. */
const HARMS: Readonly<Record<string, (path: string) => void>> = {
  empty: (path) => truncateSync(path, 0),
  'cut to half': (path) => truncateSync(path, readFileSync(path).length >> 1),
  garbled: (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('genkitx', 'gXnkitx')),
  'of a newer version': (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('"format":1', '"format":99')),
  'a FIFO': (path) => {
    rmSync(path);
    execFileSync('/usr/bin/mkfifo', [path]);
  },
};

function open(folder: string): FileSessionStore<string> {
  return new FileSessionStore<string>(folder, { durability: 'fast' });
}

/** Two sessions of `ada`, the first of two snapshots, and one of `eve`. */
async function plant(): Promise<string> {
  const folder = temporaryFolder();
  const store = open(folder);
  for (const [snapshotId, sessionId, ownerId] of [
    ['a', 'one', 'ada'],
    ['b', 'one', 'ada'],
    ['c', 'two', 'ada'],
    ['d', 'three', 'eve'],
  ] as const) {
    const state = { custom: ownerId === 'ada' ? CANARY : 'other' };
    const parent = snapshotId === 'b' && { parentId: 'a' };
    await store.saveSnapshot(snapshotId, () => ({ sessionId, createdAt, status: 'completed', state, ...parent }), {
      session: { ownerId },
    });
  }
  await store.writeRecord({ sessionId: 'one', kind: 'k', key: 'k', value: CANARY });
  await store.close();
  return folder;
}

async function exported(lines: AsyncIterable<string>): Promise<ExportedLine[]> {
  return (await collect(lines)).map((line) => JSON.parse(line) as ExportedLine);
}

function expectNoCanary(folder: string): void {
  const found = Object.entries(contentsBelow(folder)).filter(([, bytes]) => bytes.includes(CANARY));
  expect(found.map(([name]) => name)).toEqual([]);
}

describe('a session of the user', () => {
  for (const [harm, harmFile] of Object.entries(HARMS)) {
    for (const snapshotId of ['a', 'b']) {
      it(`whose snapshot ${snapshotId} is ${harm} is found, exported as far as it is readable, and erased`, async () => {
        const folder = await plant();
        harmFile(join(folder, `global/${snapshotId}.json`));
        const store = open(folder);
        const listed = (await store.listSessions({ ownerId: 'ada' })).items.map(({ sessionId }) => sessionId);
        expect(listed.toSorted()).toEqual(['one', 'two']);
        const lines = await exported(exportUser(store, { userId: 'ada' }));
        const read = lines.flatMap((line) => (line.kind === 'snapshot' ? [line.snapshot.snapshotId] : []));
        const unread = lines.flatMap((line) => (line.kind === 'unreadable' ? [line] : []));
        expect(unread[0]).toMatchObject({ sessionId: 'one', problem: expect.stringContaining(snapshotId) });
        expect(new Set([...read, ...unread.map((line) => line.snapshotId)])).toEqual(new Set(['a', 'b', 'c']));
        expect(lines.at(-1)).toMatchObject({ kind: 'end', sessions: 2, records: 1, unreadable: unread.length });
        const receipt = await eraseUser(store, { userId: 'ada' });
        expect(receipt).toMatchObject({ sessions: 2, snapshots: 3, records: 1 });
        expect(receipt.unreadable).toBeUndefined();
        expectNoCanary(folder);
        // Its id is free again.
        await store.saveSnapshot(snapshotId, () => ({ sessionId: 'new', createdAt, status: 'completed' }));
        expect((await store.listSessions()).items.map(({ sessionId }) => sessionId)).toEqual(['new', 'three']);
        await store.close();
      });
    }

    it(`of which all snapshots are ${harm} is named, and stays until it is deleted`, async () => {
      const folder = await plant();
      for (const snapshotId of ['a', 'b']) harmFile(join(folder, `global/${snapshotId}.json`));
      const store = open(folder);
      for (const userId of ['ada', 'eve']) {
        const page = await store.listSessions({ ownerId: userId });
        expect(page.items.map(({ sessionId }) => sessionId)).toEqual([userId === 'ada' ? 'two' : 'three']);
        expect(page.unreadable).toEqual([{ sessionId: 'one' }]);
        const lines = await exported(exportUser(store, { userId }));
        expect(lines.at(-2)).toEqual({ kind: 'unreadable', sessionId: 'one' });
        const receipt = await eraseUser(store, { userId });
        expect(receipt).toMatchObject({ sessions: 1, unreadable: [{ sessionId: 'one' }] });
      }
      await store.deleteSession({ sessionId: 'one' });
      expectNoCanary(folder);
      expect((await eraseUser(store, { userId: 'ada' })).unreadable).toBeUndefined();
      await store.close();
    });
  }

  it('of which neither the log nor a snapshot can be read is named by its place', async () => {
    const folder = await plant();
    for (const path of ['a.json', 'b.json', '.sessions/one/log.jsonl'])
      writeFileSync(join(folder, 'global', path), 'garbage');
    const store = open(folder);
    expect(await eraseUser(store, { userId: 'ada' })).toMatchObject({
      sessions: 1,
      unreadable: [{ place: 'global/.sessions/one' }],
    });
    await store.close();
  });

  it('of a newer version, or one that the process may not open, is named, and another user is erased', async () => {
    const folder = await plant();
    const log = join(folder, 'global/.sessions/one/log.jsonl');
    const deny = (path: string, flags: number): number => {
      if (path !== log) return nodeFileSystem.open(path, flags);
      throw Object.assign(new Error('EACCES'), { code: 'EACCES', syscall: 'open' });
    };
    const denied = new FileSessionStore(folder, {}, { ...nodeFileSystem, open: deny });
    expect((await denied.listSessions()).unreadable).toEqual([{ sessionId: 'one' }]);
    expect(await eraseUser(denied, { userId: 'eve' })).toMatchObject({
      sessions: 1,
      unreadable: [{ sessionId: 'one' }],
    });
    HARMS['of a newer version']!(log);
    const store = open(folder);
    expect(await eraseUser(store, { userId: 'ada' })).toMatchObject({
      sessions: 1,
      unreadable: [{ sessionId: 'one' }],
    });
    await Promise.all([denied.close(), store.close()]);
  });
});

it('an erasure that failed shows no session of its own', async () => {
  for (const store of [open(temporaryFolder()), new InMemorySessionStore()]) {
    await store.saveSnapshot('a', () => ({ sessionId: 'one', createdAt }), { session: { ownerId: 'ada' } });
    const controller = new AbortController();
    const onProgress = () => controller.abort();
    await expect(eraseUser(store, { userId: 'ada', onProgress, signal: controller.signal })).rejects.toThrow();
    expect((await store.listSessions()).items).toEqual([]);
    await store.close();
  }
});

it('a record of the user that is damaged is named by its place', async () => {
  const folder = temporaryFolder();
  const store = open(folder);
  const id = { scope: 'user', appName: 'app', userId: 'ada' } as const;
  await store.saveSnapshot('a', () => ({ sessionId: 'one', createdAt }), {
    session: { ownerId: 'ada' },
    scopes: [{ id, change: () => ({ text: CANARY }) }],
  });
  const [name] = readdirSync(join(folder, 'global/.scopes'));
  const place = `global/.scopes/${name}`;
  writeFileSync(join(folder, place), `garbage ${CANARY}`);
  const lines = await exported(exportUser(store, { userId: 'ada' }));
  expect(lines.at(-2)).toEqual({ kind: 'unreadable', place });
  expect((await eraseUser(store, { userId: 'ada' })).unreadable).toEqual([{ place }]);
  await store.deleteScope({ scope: id });
  expectNoCanary(folder);
  await store.close();
});

describe('memories of the user', () => {
  const harms: Readonly<Record<string, (log: string) => void>> = {
    'has a damaged first line': (log) => writeFileSync(log, `X${readFileSync(log, 'utf8').slice(1)}`),
    'is empty': (log) => truncateSync(log, 0),
    'is gone': (log) => rmSync(log),
    'has a damaged line': (log) => writeFileSync(log, readFileSync(log, 'utf8').replace('"put"', '"pXt"')),
    'is a FIFO': HARMS['a FIFO']!,
  };
  for (const [harm, harmLog] of Object.entries(harms)) {
    it(`whose log ${harm} are erased, or named and erased by their scope`, async () => {
      const folder = temporaryFolder();
      const app = 'genkitx-agents';
      const ada = { scope: 'user', appName: app, userId: 'ada' } as const;
      const eve = { scope: 'user', appName: app, userId: 'eve' } as const;
      const before = new FileMemoryStore(folder, { durability: 'fast' });
      await before.commit(ada, [put('x', { text: CANARY })]);
      await before.commit(ada, [note('k', 'k', CANARY)]);
      await before.close();
      const [name] = readdirSync(join(folder, 'global/.memories'));
      const place = `global/.memories/${name}`;
      const store = new FileMemoryStore(folder, { durability: 'fast' });
      await store.commit(eve, [put('y')]);
      harmLog(join(folder, place, 'log.jsonl'));
      const memory = memoryManager(genkit({}), { store, extract: () => [], worker: false });
      const sessions = new InMemorySessionStore();
      const lines = await exported(exportUser(sessions, { userId: 'ada', memory }));
      expect(lines.filter(({ kind }) => kind === 'unreadable')).toHaveLength(1);
      expect(JSON.stringify(lines)).not.toContain(folder);
      const receipt = await eraseUser(sessions, { userId: 'ada', memory });
      if (receipt.unreadable) expect(receipt.unreadable).toEqual([{ place }]);
      else expectNoCanary(folder);
      await store.erase(ada);
      expectNoCanary(folder);
      expect((await eraseUser(sessions, { userId: 'ada', memory })).unreadable).toBeUndefined();
      expect((await store.query(ada)).items).toEqual([]);
      await store.commit(ada, [put('z')]);
      expect((await store.query(ada)).items.map(({ memory: { id } }) => id)).toEqual(['z']);
      expect((await store.query(eve)).items).toHaveLength(1);
      await memory.close();
    });
  }
});
