import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ScopeId } from '../../../../src/store/contract.ts';
import { scopeKey } from '../../../../src/store/records/record-scopes.ts';
import { recordNameOf } from '../../../../stores/file/format/scope-file.ts';
import { entriesBelow } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { RecordingFileSystem } from '../support/recording.ts';
import { ADA, adding, APP, openStore, saveTurn, SESSION, type Store } from '../support/scenarios.ts';

const EVE: ScopeId = { scope: 'user', appName: 'shop', userId: 'eve' };

function fileOf(folder: string, id: ScopeId, ending = 'json'): string {
  return join(folder, 'global/.scopes', `${recordNameOf(scopeKey(id))}.${ending}`);
}

/** Files and folders whose name or content has a text. */
function mentions(folder: string, text: string): string[] {
  return entriesBelow(folder).filter((path) => {
    const found = join(folder, path);
    return path.includes(text) || (lstatSync(found).isFile() && readFileSync(found).includes(text));
  });
}

/** A store with records of Ada, Eve and the app. */
async function begun(folder = temporaryFolder()): Promise<{ folder: string; store: Store }> {
  const store = openStore(folder, { durability: 'fast' });
  await saveTurn(store, 1, { scopes: [adding(ADA), adding(EVE), adding(APP)] });
  return { folder, store };
}

describe('the cost of records', () => {
  it('is zero for saves, reads and lists without records', async () => {
    const calls: number[] = [];
    for (const scopes of [[], [adding(ADA), adding(APP)]]) {
      const folder = temporaryFolder();
      await saveTurn(openStore(folder), 1, { scopes });
      const recording = new RecordingFileSystem();
      const store = openStore(folder, {}, recording.fileSystem);
      await saveTurn(store, 2);
      await saveTurn(store, 3, { scopes: [] });
      await store.getSnapshot({ sessionId: SESSION });
      await store.listSessions();
      expect(await store.readScopes({ scopes: [] })).toEqual([]);
      expect(JSON.stringify(recording.operations)).not.toContain('.scopes');
      calls.push(recording.operations.length);
    }
    expect(calls[0]).toBe(calls[1]);
  });

  it('is one file for a record that is read, however many there are', async () => {
    const { folder, store } = await begun();
    const recording = new RecordingFileSystem();
    const reader = openStore(folder, {}, recording.fileSystem);
    const read = async (): Promise<number> => {
      const before = recording.operations.length;
      expect(await reader.readScopes({ scopes: [ADA] })).toEqual([{ n: 1 }]);
      return recording.operations.length - before;
    };
    const [cold, warm] = [await read(), await read()];
    for (let i = 0; i < 100; i++) {
      const id: ScopeId = { scope: 'user', appName: 'shop', userId: `user ${i}` };
      await store.saveSnapshot(`of ${i}`, () => ({ sessionId: `of ${i}`, createdAt: 'x' }), { scopes: [adding(id)] });
    }
    expect(await read()).toBe(warm);
    expect(Math.max(cold, warm)).toBeLessThan(14);
    expect(recording.operations.filter(({ call }) => call === 'open')).toHaveLength(3);
  });

  it('does not write when the change keeps the record', async () => {
    const { folder } = await begun();
    const recording = new RecordingFileSystem();
    const changes = [
      { id: ADA, change: () => undefined },
      { id: APP, change: () => ({ n: 1 }) },
    ];
    await saveTurn(openStore(folder, {}, recording.fileSystem), 2, { scopes: changes });
    const looks = new Set(['look', 'open', 'close']);
    const writes = recording.operations.filter(({ call }) => !looks.has(call));
    expect(JSON.stringify(writes)).not.toContain('.scopes');
  });
});

describe('the remaining data', () => {
  it('of a deleted session is not a byte in the records that it changed', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder);
    const save = (id: string): Promise<unknown> =>
      store.saveSnapshot(id, () => ({ sessionId: 'canary-session', createdAt: 'x' }), { scopes: [adding(ADA)] });
    await save('canary-snapshot-1');
    await save('canary-snapshot-2');
    expect(mentions(folder, 'canary')).not.toEqual([]);
    await store.deleteSession({ sessionId: 'canary-session' });
    expect(mentions(folder, 'canary')).toEqual([]);
    expect(await openStore(folder).readScopes({ scopes: [ADA] })).toEqual([{ n: 2 }]);
  });

  it('of a record that was deleted, or became empty, is not a byte', async () => {
    for (const ending of ['deleted', 'emptied']) {
      const { folder, store } = await begun();
      const id: ScopeId = { scope: 'user', appName: 'shop', userId: 'canary' };
      await saveTurn(store, 2, { scopes: [{ id, change: () => ({ canary: 'canary' }) }] });
      expect(mentions(folder, 'canary')).toHaveLength(1);
      if (ending === 'deleted') expect(await store.deleteScope({ scope: id })).toBe(true);
      else await saveTurn(store, 3, { scopes: [{ id, change: () => ({}) }] });
      expect(mentions(folder, 'canary'), ending).toEqual([]);
      expect(await store.deleteScope({ scope: id })).toBe(false);
      expect(readdirSync(join(folder, 'global/.scopes'))).toHaveLength(3);
    }
  });

  it('of reading or deleting a missing record leaves no file and no folder', async () => {
    const folder = join(temporaryFolder(), 'store');
    const store = openStore(folder);
    expect(await store.readScopes({ scopes: [ADA, APP] })).toEqual([{}, {}]);
    expect(await store.deleteScope({ scope: ADA })).toBe(false);
    await store.saveSnapshot('skipped', () => null, { scopes: [adding(ADA)] });
    expect(() => lstatSync(folder)).toThrow('ENOENT');
  });
});

const BROKEN: Readonly<Record<string, (path: string, other: string) => void>> = {
  'an empty file': (path) => writeFileSync(path, ''),
  'half a record': (path) => writeFileSync(path, readFileSync(path).subarray(0, 40)),
  'another JSON value': (path) => writeFileSync(path, '[1, 2, 3]\n'),
  'a record without members': (path) => writeFileSync(path, '{"format":1,"record":{}}\n'),
  'random bytes': (path) => writeFileSync(path, Buffer.from([0, 255, 254, 1, 2, 128, 10, 13])),
  'the record of another user': (path, other) => copyFileSync(other, path),
  'a folder': (path) => mkdirSync(path),
  'a symbolic link': (path, other) => symlinkSync(other, path),
};

describe('bad files:', () => {
  for (const [kind, make] of Object.entries(BROKEN)) {
    for (const ending of ['json', 'draft']) {
      it(`${kind} in the place of a record’s ${ending === 'json' ? 'file' : 'draft'} is DATA_LOSS of that record, and does not affect others`, async () => {
        const { folder } = await begun();
        const path = fileOf(folder, ADA, ending);
        if (ending === 'draft') copyFileSync(fileOf(folder, ADA), path);
        if (kind === 'a folder' || kind === 'a symbolic link') rmSync(path);
        make(path, fileOf(folder, EVE));
        const other = readFileSync(fileOf(folder, EVE));
        const store = openStore(folder, { durability: 'fast' });
        const loss = { status: 'DATA_LOSS', message: expect.stringContaining('user "ada" of app "shop"') };
        await expect(store.readScopes({ scopes: [APP, ADA] })).rejects.toMatchObject(loss);
        await expect(saveTurn(store, 2, { scopes: [adding(EVE), adding(ADA)] })).rejects.toMatchObject(loss);
        expect(await store.getSnapshot({ snapshotId: 't2' })).toBeUndefined();
        expect(await store.readScopes({ scopes: [APP, EVE] })).toEqual([{ n: 1 }, { n: 1 }]);
        expect(readFileSync(fileOf(folder, EVE))).toEqual(other);
        await saveTurn(store, 2, { scopes: [adding(EVE)] });
        await store.prune({ maxChainLength: 1 });
        expect(await store.readScopes({ scopes: [EVE] })).toEqual([{ n: 2 }]);
        if (kind === 'a folder') return;
        expect(await store.deleteScope({ scope: ADA })).toBe(true);
        await saveTurn(store, 3, { scopes: [adding(ADA)] });
        expect(await store.readScopes({ scopes: [ADA] })).toEqual([{ n: 1 }]);
      });
    }
  }

  it('a record of a newer version is refused, and not changed', async () => {
    const { folder } = await begun();
    const path = fileOf(folder, ADA);
    const newer = readFileSync(path, 'utf8').replace('"format":1', '"format":3');
    writeFileSync(path, newer);
    const refusal = { status: 'FAILED_PRECONDITION', message: expect.stringContaining('format 3') };
    const store = openStore(folder);
    await expect(store.readScopes({ scopes: [ADA] })).rejects.toMatchObject(refusal);
    await expect(saveTurn(store, 2, { scopes: [adding(ADA)] })).rejects.toMatchObject(refusal);
    await expect(store.deleteScope({ scope: ADA })).rejects.toMatchObject(refusal);
    expect(readFileSync(path, 'utf8')).toBe(newer);
  });
});

describe('private files:', () => {
  it('a symbolic link in the place of the folder of records is refused', async () => {
    const { folder } = await begun();
    const elsewhere = temporaryFolder();
    const records = join(folder, 'global/.scopes');
    rmSync(records, { recursive: true });
    symlinkSync(elsewhere, records);
    const store = openStore(folder);
    const refusal = { status: 'FAILED_PRECONDITION', message: expect.not.stringContaining(folder) };
    await expect(store.readScopes({ scopes: [ADA] })).rejects.toMatchObject(refusal);
    await expect(saveTurn(store, 2, { scopes: [adding(ADA)] })).rejects.toMatchObject(refusal);
    await expect(store.deleteScope({ scope: ADA })).rejects.toMatchObject(refusal);
    expect(await store.getSnapshot({ snapshotId: 't2' })).toBeUndefined();
    expect(entriesBelow(elsewhere)).toEqual([]);
  });
});

describe('reading while others save', () => {
  it('a snapshot and its record appear at the same time, and neither is reverted', async () => {
    const folder = temporaryFolder();
    const [writer, reader] = [openStore(folder), openStore(folder)];
    const leaf = async (): Promise<number> =>
      Number((await reader.getSnapshotMetadata({ sessionId: SESSION }))?.snapshotId.slice(1) ?? 0);
    const counts = async (): Promise<number[]> =>
      (await reader.readScopes({ scopes: [ADA, APP] })).map((record) => Number(record['n'] ?? 0));
    const turns = 60;
    const writing = { isDone: false };
    const saves = (async () => {
      for (let turn = 1; turn <= turns; turn++) await saveTurn(writer, turn, { scopes: [adding(ADA), adding(APP)] });
      writing.isDone = true;
    })();
    let last = 0;
    while (!writing.isDone) {
      const before = await leaf();
      const found = await counts();
      const after = await leaf();
      for (const count of found) {
        expect(count, 'a snapshot is there and not its record').toBeGreaterThanOrEqual(Math.max(before, last));
        expect(count, 'a record is there and not its snapshot').toBeLessThanOrEqual(after);
      }
      last = Math.min(...found);
      await setImmediate();
    }
    await saves;
    expect(await counts()).toEqual([turns, turns]);
  });
});
