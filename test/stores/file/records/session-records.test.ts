import { readdirSync, readFileSync, rmdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Json } from '../../../../src/json/value.ts';
import { nodeFileSystem } from '../../../../stores/file/disk/file-system.ts';
import { recordName } from '../../../../stores/file/format/session-record-file.ts';
import { Fleet } from '../processes/support/fleet.ts';
import { storeOf } from '../processes/support/stores.ts';
import { entriesBelow, flip, killOwners, leftovers } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { MortalFileSystem } from '../support/mortal.ts';
import { RecordingFileSystem, type Operation } from '../support/recording.ts';
import { openStore, saveTurn, saveTurns, SESSION, type Store } from '../support/scenarios.ts';

const FAST = { durability: 'fast' } as const;
const SUMMARY = { sessionId: SESSION, kind: 'summary', key: 'latest' };
const PATH = join('global/.records', SESSION, recordName('summary', 'latest'));

async function summaryIn(store: Store): Promise<Json | undefined> {
  return (await store.readRecords({ ...SUMMARY, keys: ['latest'] }))[0]?.value;
}

function pathsIn(operations: readonly Operation[]): string[] {
  return operations.flatMap((operation) => ('path' in operation ? [operation.path] : []));
}

describe('records of a session', () => {
  it('a save does not read them', async () => {
    const folder = temporaryFolder();
    await saveTurn(openStore(folder, FAST), 1);
    await openStore(folder, FAST).writeRecord({ ...SUMMARY, value: 'one' });
    const recording = new RecordingFileSystem();
    await saveTurn(openStore(folder, FAST, recording.fileSystem), 2);
    expect(pathsIn(recording.operations).filter((path) => path.includes('.records'))).toEqual([]);
  });

  it('reading by key opens one file, however many records there are', async () => {
    const folder = temporaryFolder();
    const writer = openStore(folder, FAST);
    for (let key = 0; key < 20; key++) await writer.writeRecord({ ...SUMMARY, key: `k${key}`, value: key });
    const recording = new RecordingFileSystem();
    const reader = openStore(folder, FAST, recording.fileSystem);
    expect(await reader.readRecords({ ...SUMMARY, keys: ['k7'] })).toMatchObject([{ key: 'k7', value: 7 }]);
    const opened = recording.operations.filter(({ call }) => call === 'open');
    expect(opened).toEqual([
      { call: 'open', path: join(folder, 'global/.records', SESSION, recordName('summary', 'k7')) },
    ]);
  });

  it('a deletion that was killed at any change leaves a session that begins again without records', async () => {
    for (let changes = 0, isDone = false; !isDone; changes++) {
      const folder = temporaryFolder();
      const store = openStore(folder, FAST);
      await saveTurns(store, 2);
      for (const key of ['latest', 'older']) await store.writeRecord({ ...SUMMARY, key, value: 'old' });
      const mortal = new MortalFileSystem();
      const deleter = openStore(folder, FAST, mortal.fileSystem);
      mortal.dieAfter(changes);
      await deleter.deleteSession({ sessionId: SESSION }).catch(() => {});
      isDone = !mortal.dead;
      mortal.dead = true;
      killOwners(folder);
      const next = openStore(folder, FAST);
      const isThere = (await next.getSnapshot({ sessionId: SESSION })) !== undefined;
      expect(await next.readRecords({ ...SUMMARY }), `${changes} changes`).toHaveLength(isThere ? 2 : 0);
      if (isThere) continue;
      await saveTurn(next, 1);
      expect(await next.readRecords({ ...SUMMARY }), `${changes} changes`).toEqual([]);
    }
  });

  it('deleting a session that has only records leaves none of their bytes', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, FAST);
    await store.writeRecord({ ...SUMMARY, value: 'one' });
    expect(await store.deleteSession({ sessionId: SESSION })).toEqual({ snapshots: 0, shards: 0, records: 1 });
    expect(entriesBelow(folder).filter((path) => path.includes(SESSION))).toEqual([]);
  });

  it('prune removes records of a session that did not begin for an hour, and no others', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, FAST);
    await saveTurn(store, 1);
    for (const sessionId of [SESSION, 'old', 'new']) await store.writeRecord({ ...SUMMARY, sessionId, value: 1 });
    const longAgo = Date.now() / 1000 - 3700;
    for (const path of entriesBelow(join(folder, 'global/.records'))) {
      if (!path.startsWith('new')) utimesSync(join(folder, 'global/.records', path), longAgo, longAgo);
    }
    await store.prune({ idleMs: 1e12 }, { dryRun: true });
    expect(readdirSync(join(folder, 'global/.records')).toSorted()).toEqual([SESSION, 'new', 'old']);
    await store.prune({ idleMs: 1e12 });
    expect(readdirSync(join(folder, 'global/.records')).toSorted()).toEqual([SESSION, 'new']);
  });

  it('a damaged file is DATA_LOSS until the record is written again', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, FAST);
    const revision = await store.writeRecord({ ...SUMMARY, value: 'one' });
    await store.writeRecord({ ...SUMMARY, key: 'other', value: 'two' });
    writeFileSync(join(folder, PATH), '{"format":1');
    const loss = { status: 'DATA_LOSS', message: expect.not.stringContaining(folder) };
    await expect(store.readRecords(SUMMARY)).rejects.toMatchObject(loss);
    await expect(store.writeRecord({ ...SUMMARY, value: 2, expectedRevision: revision })).rejects.toMatchObject(loss);
    expect(await store.readRecords({ ...SUMMARY, keys: ['other'] })).toHaveLength(1);
    await store.writeRecord({ ...SUMMARY, value: 'anew' });
    expect(await summaryIn(store)).toBe('anew');
    flip(join(folder, PATH));
    await store.writeRecord({ ...SUMMARY, value: undefined });
    expect(await summaryIn(store)).toBeUndefined();
  });

  it('a record of a newer version is refused with a message', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, FAST);
    await store.writeRecord({ ...SUMMARY, value: 'one' });
    const path = join(folder, PATH);
    writeFileSync(path, readFileSync(path, 'utf8').replace('"format":1', '"format":9'));
    await expect(summaryIn(store)).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('newer version'),
    });
  });

  it('a record whose flush took so long that another process may hold the lock is not written', async () => {
    const folder = temporaryFolder();
    await openStore(folder, FAST).writeRecord({ ...SUMMARY, value: 'old' });
    const now = Date.now;
    let flushes = 0;
    Date.now = () => now() + flushes * 16_000;
    const flush = async (fd: number): Promise<void> => {
      await nodeFileSystem.flush(fd);
      flushes++;
    };
    const slow = openStore(folder, { durability: 'full' }, { ...nodeFileSystem, flush });
    const written = slow.writeRecord({ ...SUMMARY, value: 'new' }).finally(() => (Date.now = now));
    await expect(written).rejects.toMatchObject({ status: 'ABORTED' });
    expect(await summaryIn(openStore(folder, FAST))).toBe('old');
    expect(leftovers(folder)).toEqual([]);
  });

  for (const place of ['.records', join('.records', SESSION)]) {
    it(`a symbolic link in the place of ${place} is refused`, async () => {
      const [folder, elsewhere] = [temporaryFolder(), temporaryFolder()];
      for (const each of [folder, elsewhere])
        await openStore(each, FAST).writeRecord({ ...SUMMARY, key: 'k', value: 1 });
      const store = openStore(folder, FAST);
      await store.deleteSession({ sessionId: SESSION });
      if (place === '.records') rmdirSync(join(folder, 'global/.records'));
      symlinkSync(join(elsewhere, 'global', place), join(folder, 'global', place));
      const before = entriesBelow(elsewhere);
      const refusal = { status: 'FAILED_PRECONDITION', message: expect.not.stringContaining(folder) };
      await expect(store.writeRecord({ ...SUMMARY, value: 1 })).rejects.toMatchObject(refusal);
      await expect(store.readRecords(SUMMARY)).rejects.toMatchObject(refusal);
      await expect(store.deleteSession({ sessionId: SESSION })).rejects.toMatchObject(refusal);
      expect(entriesBelow(elsewhere)).toEqual(before);
    });
  }
});

describe('records of a session that processes share', () => {
  const fleet = new Fleet();
  afterAll(() => fleet.end());

  it('of eight processes that create one record at once exactly one does', async () => {
    const children = await fleet.launch(8);
    const store = { folder: fleet.folder() };
    for (let round = 0; round < 20; round++) {
      const sessionId = `s${round}`;
      const outcomes = await Promise.all(
        children.map((child, by) => child.call('begin', { store, sessionId, by: `process ${by}` })),
      );
      const winner = outcomes.findIndex(({ kind }) => kind === 'saved');
      expect(outcomes.filter((outcome) => outcome.kind === 'refused' && outcome.status === 'ABORTED')).toHaveLength(7);
      const found = await storeOf(store).readRecords({ sessionId, kind: 'lease' });
      expect(found.map(({ value }) => value)).toEqual([`process ${winner}`]);
    }
  });
});
