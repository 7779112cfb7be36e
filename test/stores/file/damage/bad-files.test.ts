import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { describe, expect, it } from 'vitest';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { scale } from '../../../support/scale.ts';
import { entriesBelow, flip } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { openStore, saveTurn, saveTurns, SESSION, stateOf } from '../support/scenarios.ts';

/** Eight kinds of files that are not snapshots, under the names of snapshots. */
const BROKEN: Readonly<Record<string, (path: string) => void>> = {
  'an empty file': (path) => writeFileSync(path, ''),
  'half a snapshot': (path) => writeFileSync(path, '{"snapshotId":"broken-1","state":{"messages":[{"ro'),
  'another JSON value': (path) => writeFileSync(path, '[1, 2, 3]'),
  'a snapshot without an id': (path) => writeFileSync(path, '{"createdAt":"2026-01-01T00:00:00.000Z","state":{}}'),
  'random bytes': (path) => writeFileSync(path, Buffer.from([0, 255, 254, 1, 2, 128, 10, 13])),
  'an invalid state': (path) => writeFileSync(path, '{"snapshotId":"broken-5","state":7}'),
  'a folder': (path) => mkdirSync(path),
  'a symbolic link': (path) => symlinkSync('/etc/hostname', path),
};

describe('bad files:', () => {
  const others = scale(500, 10_000);

  it(`8 kinds of broken file among ${others} snapshots: each answers DATA_LOSS by its id, no session is affected`, async () => {
    const folder = temporaryFolder();
    const store = new FileSessionStore(folder, { durability: 'fast' });
    for (let i = 0; i < others; i++) {
      const meta = { sessionId: `s${i % 50}`, createdAt: '2026-01-01T00:00:00.000Z', status: 'completed' as const };
      await store.saveSnapshot(`n${i}`, () => ({
        ...meta,
        ...(i >= 50 && { parentId: `n${i - 50}` }),
        state: { custom: i },
      }));
    }
    const kinds = Object.values(BROKEN);
    for (const [i, make] of kinds.entries()) make(join(folder, 'global', `broken-${i}.json`));
    await expectUnaffected(new FileSessionStore(folder), others, kinds.length);
  });

  it('a damaged log is rebuilt from the snapshots', async () => {
    const folder = temporaryFolder();
    await saveTurns(openStore(folder), 7, true);
    const log = join(folder, 'global/.sessions/a-session/log.jsonl');
    for (const damage of [
      (bytes: Buffer) => bytes.fill(0, 300, 400),
      (bytes: Buffer) => bytes.subarray(100),
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('{"op":"nonsense"}\n')]),
      (bytes: Buffer) => bytes.subarray(0, 0),
    ]) {
      const copy = temporaryFolder();
      cpSync(folder, copy, { recursive: true });
      writeFileSync(join(copy, 'global/.sessions/a-session/log.jsonl'), damage(readFileSync(log)));
      const store = openStore(copy);
      expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t7');
      expect((await store.listSnapshots({ sessionId: SESSION })).items).toHaveLength(7);
      await saveTurn(store, 8, { wide: true });
      expect((await openStore(copy).listSnapshots({ sessionId: SESSION })).items).toHaveLength(8);
    }
  });

  it('a partial line of a log is ignored, and the next save cuts it off', async () => {
    const folder = temporaryFolder();
    await saveTurns(openStore(folder), 3);
    const log = join(folder, 'global/.sessions/a-session/log.jsonl');
    writeFileSync(log, '{"save":4,"id":"me', { flag: 'a' });
    const store = openStore(folder);
    expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t3');
    await saveTurn(store, 4);
    expect(readFileSync(log, 'utf8')).not.toContain('"me{');
    expect((await openStore(folder).getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t4');
  });
});

async function expectUnaffected(
  store: FileSessionStore<number>,
  others: number,
  broken: number,
  except: ReadonlySet<string> = new Set(),
): Promise<void> {
  for (let s = 0; s < 50; s++) {
    if (except.has(`s${s}`)) continue;
    const leaf = await store.getSnapshot({ sessionId: `s${s}` });
    expect(leaf?.snapshotId).toBe(`n${others - 50 + s}`);
    expect(leaf?.state?.custom).toBe(others - 50 + s);
  }
  for (let i = 0; i < broken; i++) {
    const id = `broken-${i}`;
    await expect(store.getSnapshot({ snapshotId: id })).rejects.toMatchObject({
      status: 'DATA_LOSS',
      message: expect.stringContaining(id),
    });
    const save = store.saveSnapshot(id, () => ({ sessionId: 'x', createdAt: '2026-01-01T00:00:00.000Z' }));
    await expect(save).rejects.toMatchObject({ status: 'DATA_LOSS' });
  }
  expect((await store.listSessions({ limit: 1000 })).items).toHaveLength(50);
}

describe('missing piece:', () => {
  for (const [options, wide] of [
    [{}, true],
    [{ maxPersistedChainLength: 3 }, true],
    [{ checkpointInterval: 1 }, false],
  ] as const) {
    it(`${JSON.stringify(options)}: with any one file gone a snapshot reads as before or answers DATA_LOSS, and nothing is saved on top`, async () => {
      const folder = temporaryFolder();
      const whole = openStore(folder, options);
      await saveTurns(whole, 8, wide);
      const listed = (await whole.listSnapshots({ sessionId: SESSION })).items.map((item) => item.snapshotId);
      const states = new Map<string, unknown>();
      for (const id of listed) states.set(id, await whole.getSnapshot({ snapshotId: id }));
      await whole.close();
      const files = entriesBelow(join(folder, 'global')).filter(
        (path) => /\.[^/]*$|\/[^/]*$/.test(path) && !isFolder(path),
      );
      let lost = 0;
      for (const file of files) {
        const copy = temporaryFolder();
        cpSync(folder, copy, { recursive: true });
        rmSync(join(copy, 'global', file));
        const store = openStore(copy, options);
        for (const id of listed) {
          const read = await store.getSnapshot({ snapshotId: id }).catch((error: unknown) => error);
          // A new store can't find it by its id; its session has it.
          if (read === undefined && file === `${id}.json`) continue;
          if (!(read instanceof GenkitError)) {
            expect(read, `${id} without ${file}`).toEqual(states.get(id));
            continue;
          }
          lost++;
          expect(read.status, `${id} without ${file}`).toBe('DATA_LOSS');
          expect(read.message).toContain(`"${id}"`);
          const onTop = store.saveSnapshot('on-top', () => ({
            sessionId: SESSION,
            createdAt: '2026-03-01T00:00:00.000Z',
            parentId: id,
            state: {},
          }));
          await expect(onTop, `on ${id} without ${file}`).rejects.toMatchObject({ status: 'DATA_LOSS' });
        }
        const leaf = await store.getSnapshot({ sessionId: SESSION }).catch((error: unknown) => error);
        if (leaf instanceof GenkitError) {
          lost++;
          expect(leaf.status).toBe('DATA_LOSS');
        } else expect(leaf, `the session without ${file}`).toEqual(states.get('t8'));
      }
      expect(lost).toBeGreaterThan(0);
    });
  }

  it('a store that has cached the state also notices that the file is missing', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder);
    await saveTurns(store, 3);
    rmSync(join(folder, 'global/t3.json'));
    await expect(store.getSnapshot({ sessionId: SESSION })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    await expect(store.getSnapshotMetadata({ snapshotId: 't3' })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    await expect(saveTurn(store, 4)).rejects.toMatchObject({ status: 'DATA_LOSS' });
    // The session can continue on another branch.
    await saveTurn(store, 4, { parent: 't2' });
    expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t4');
  });

  it('a store that has cached the state refuses children when the base of the state is missing', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { checkpointInterval: 25 });
    await saveTurns(store, 5, true);
    const hidden = readFileSync(join(folder, 'global/t2.json'));
    rmSync(join(folder, 'global/t2.json'));
    const refusal = { status: 'DATA_LOSS', message: expect.stringContaining('"t5"') };
    await expect(saveTurn(store, 6, { wide: true })).rejects.toMatchObject(refusal);
    await expect(store.saveSnapshot('t5', (current) => ({ ...current!, updatedAt: 'x' }))).rejects.toMatchObject(
      refusal,
    );
    // Other snapshots are not affected.
    await saveTurn(store, 7, { wide: true, parent: 't1' });
    writeFileSync(join(folder, 'global/t2.json'), hidden);
    await saveTurn(store, 6, { wide: true });
    const shards = join(folder, 'global/.sessions/a-session');
    for (const name of readdirSync(shards).filter((one) => one.length === 64)) {
      const content = readFileSync(join(shards, name));
      rmSync(join(shards, name));
      await expect(saveTurn(store, 8, { wide: true, parent: 't6' }), name).rejects.toMatchObject({
        status: 'DATA_LOSS',
      });
      writeFileSync(join(shards, name), content);
    }
    await saveTurn(store, 8, { wide: true, parent: 't6' });
    const cold = openStore(folder);
    for (const turn of [6, 7, 8])
      expect((await cold.getSnapshot({ snapshotId: `t${turn}` }))?.state).toEqual(stateOf(turn, true));
  });

  it('a damaged shard is written again by a save of the same content', async () => {
    const folder = temporaryFolder();
    await saveTurns(openStore(folder), 1, true);
    const shards = join(folder, 'global/.sessions/a-session');
    for (const name of readdirSync(shards).filter((one) => one.length === 64)) flip(join(shards, name));
    const store = openStore(folder);
    await expect(store.getSnapshot({ snapshotId: 't1' })).rejects.toMatchObject({ status: 'DATA_LOSS' });
    await store.saveSnapshot('another', () => ({ sessionId: SESSION, createdAt: 'x', state: stateOf(1, true) }));
    for (const id of ['another', 't1']) {
      expect((await openStore(folder).getSnapshot({ snapshotId: id }))?.state).toEqual(stateOf(1, true));
    }
  });

  it('a truncated shard is reported as damaged', async () => {
    const folder = temporaryFolder();
    await saveTurns(openStore(folder), 4, true);
    const shards = entriesBelow(join(folder, 'global/.sessions/a-session')).filter((name) => name.length === 64);
    expect(shards.length).toBeGreaterThan(0);
    for (const shard of shards) truncateSync(join(folder, 'global/.sessions/a-session', shard), 100);
    await expect(openStore(folder).getSnapshot({ snapshotId: 't4' })).rejects.toMatchObject({ status: 'DATA_LOSS' });
  });
});

function isFolder(path: string): boolean {
  return /^\.sessions(?:\/[^/]+)?$/.test(path);
}

describe('data of a newer version', () => {
  it('is refused with a message that says so, and never changed', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder);
    await saveTurns(store, 2);
    const path = join(folder, 'global/t2.json');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"format":1', '"format":3'));
    const refusal = { status: 'FAILED_PRECONDITION', message: expect.stringContaining('format 3') };
    await expect(openStore(folder).getSnapshot({ snapshotId: 't2' })).rejects.toMatchObject(refusal);
    await expect(openStore(folder).getSnapshot({ sessionId: SESSION })).rejects.toMatchObject(refusal);
    await expect(saveTurn(openStore(folder), 3)).rejects.toMatchObject(refusal);
    expect((await openStore(folder).getSnapshot({ snapshotId: 't1' }))?.snapshotId).toBe('t1');
  });

  it('so is a log of a newer version', async () => {
    const folder = temporaryFolder();
    await saveTurns(openStore(folder), 2);
    const path = join(folder, 'global/.sessions/a-session/log.jsonl');
    const newer = readFileSync(path, 'utf8').replace('"format":1', '"format":2');
    writeFileSync(path, newer);
    const refusal = { status: 'FAILED_PRECONDITION', message: expect.stringContaining('format 2') };
    await expect(openStore(folder).getSnapshot({ sessionId: SESSION })).rejects.toMatchObject(refusal);
    await expect(saveTurn(openStore(folder), 3)).rejects.toMatchObject(refusal);
    expect(readFileSync(path, 'utf8')).toBe(newer);
  });
});
