import { appendFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { describe, expect, it } from 'vitest';
import { readJson } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { RecordingFileSystem } from '../support/recording.ts';
import { openStore, saveTurn, saveTurns, SESSION, type Store } from '../support/scenarios.ts';

const LOG = 'global/.sessions/a-session/log.jsonl';

/** A session of six turns with a branch, and another one. */
async function filled(): Promise<string> {
  const folder = temporaryFolder();
  const store = openStore(folder, { checkpointInterval: 25 });
  await saveTurns(store, 5);
  await saveTurn(store, 6, { parent: 't3' });
  await store.saveSnapshot('o1', () => ({ sessionId: 'other', createdAt: '2026-01-01T00:00:00.000Z', state: {} }));
  await store.close();
  return folder;
}

/** The rest of the tenant still works: lists, `prune`, reads and saves of other sessions. */
async function expectOthersGoOn(store: Store, place: string): Promise<void> {
  expect((await store.getSnapshot({ sessionId: 'other' }))?.snapshotId, place).toBe('o1');
  const listed = (await store.listSessions()).items.map((item) => item.sessionId);
  expect(listed.toSorted(), place).toEqual([SESSION, 'other']);
  expect((await store.prune({ maxChainLength: 100 }, { dryRun: true })).dryRun, place).toBe(true);
  await store.prune({ maxChainLength: 100 });
  await store.saveSnapshot('o1', (current) => ({ ...current!, updatedAt: '2026-01-02T00:00:00.000Z' }));
}

/** An answer, or a typed error. */
async function typed<T>(call: Promise<T>): Promise<T | GenkitError> {
  return call.catch((error: unknown) => {
    expect(error).toBeInstanceOf(GenkitError);
    return error as GenkitError;
  });
}

describe('damaged index: ', () => {
  const lines = [
    '{}',
    '[]',
    '7',
    'null',
    '"text"',
    '{"save":"x","id":7}',
    '{"save":7}',
    '{"save":8,"id":"t9","at":1}',
    '{"remove":[1,99]}',
    '{"remove":"all"}',
    '{"rewrite":99,"at":1}',
    '{"save":2,"id":"t2","at":1,"parent":7}',
    '{"done":1}',
    '{"next":-1}',
  ];

  it('a line that is JSON but not an entry, anywhere: the session reads as before, the tenant still works', async () => {
    const folder = await filled();
    const log = readFileSync(join(folder, LOG), 'utf8').split('\n');
    for (const line of lines) {
      for (const at of [0, 1, 6, log.length - 1]) {
        const copy = temporaryFolder();
        cpSync(folder, copy, { recursive: true });
        writeFileSync(join(copy, LOG), log.toSpliced(at, 0, line).join('\n'));
        const place = `${line} before line ${at}`;
        const store = openStore(copy);
        expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId, place).toBe('t6');
        const { items } = await store.listSnapshots({ sessionId: SESSION });
        expect(
          items.map((item) => item.snapshotId),
          place,
        ).toEqual(['t1', 't2', 't3', 't4', 't5', 't6']);
        await expectOthersGoOn(store, place);
        await saveTurn(store, 7, { parent: 't6' });
        expect((await openStore(copy).getSnapshot({ sessionId: SESSION }))?.snapshotId, place).toBe('t7');
      }
    }
  });

  it('the line of a dead writer is cut off by the next save, also in a process that once could not read it', async () => {
    const folder = await filled();
    const log = join(folder, LOG);
    const lines = () => readFileSync(log, 'utf8').trimEnd().split('\n');
    const last = lines()
      .map((line) => JSON.parse(line) as { save?: number })
      .findLast(({ save }) => save !== undefined)!;
    appendFileSync(log, `${JSON.stringify({ ...last, save: last.save! + 1, id: 'dead' })}\n`);
    const disk = new RecordingFileSystem();
    const store = openStore(folder, {}, disk.fileSystem);
    expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t6');
    let faults = 0;
    disk.intercept = (_, path) => {
      if (!path.includes('dead') || faults++ > 0) return;
      throw Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'open' });
    };
    await typed(store.getSnapshot({ sessionId: SESSION }));
    expect(faults).toBe(1);
    await saveTurn(store, 7, { parent: 't6' });
    expect(lines().filter((line) => line.includes('dead'))).toEqual([]);
    expect((await openStore(folder).getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t7');
  });

  it('any one line missing, doubled, or swapped with the next: an answer as before or a typed error, the tenant still works', async () => {
    const folder = await filled();
    const log = readFileSync(join(folder, LOG), 'utf8').split('\n').slice(0, -1);
    const damages: Readonly<Record<string, (at: number) => string[]>> = {
      gone: (at) => log.toSpliced(at, 1),
      twice: (at) => log.toSpliced(at, 0, log[at]!),
      swapped: (at) => log.toSpliced(at, 2, ...log.slice(at, at + 2).toReversed()),
    };
    for (const [name, damage] of Object.entries(damages)) {
      for (const at of log.keys()) {
        const copy = temporaryFolder();
        cpSync(folder, copy, { recursive: true });
        writeFileSync(join(copy, LOG), `${damage(at).join('\n')}\n`);
        const place = `line ${at} ${name}`;
        const store = openStore(copy);
        for (let turn = 1; turn <= 6; turn++) {
          const read = await typed(store.getSnapshot({ snapshotId: `t${turn}` }));
          if (!(read instanceof GenkitError)) expect(read?.state?.custom?.turn, place).toBe(turn);
        }
        await expectOthersGoOn(store, place);
        await saveTurn(store, 7, { parent: 't6' });
        expect((await openStore(copy).getSnapshot({ sessionId: SESSION }))?.snapshotId, place).toBe('t7');
      }
    }
  });

  it('a missing log is rebuilt in the exact order of the first saves', async () => {
    const folder = await filled();
    rmSync(join(folder, LOG));
    const store = openStore(folder);
    expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t6');
    await saveTurn(store, 7, { parent: 't6' });
    const { items } = await openStore(folder).listSnapshots({ sessionId: SESSION });
    expect(items.map((item) => item.snapshotId)).toEqual(['t1', 't2', 't3', 't4', 't5', 't6', 't7']);
  });

  it('a truncated log is restored when one of the lost snapshots is read by its id and saved again, or by prune', async () => {
    for (const repair of [
      (store: Store) => store.saveSnapshot('t6', (current) => ({ ...current!, updatedAt: '2026-01-02T00:00:00.000Z' })),
      (store: Store) => store.prune({ maxChainLength: 100 }),
    ]) {
      const folder = await filled();
      const log = readFileSync(join(folder, LOG), 'utf8').split('\n');
      writeFileSync(join(folder, LOG), `${log.slice(0, 9).join('\n')}\n`);
      expect((await openStore(folder).getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t4');
      expect((await openStore(folder).getSnapshot({ snapshotId: 't5' }))?.state?.custom?.turn).toBe(5);
      await repair(openStore(folder));
      expect((await openStore(folder).getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t6');
    }
  });

  const bases: Readonly<
    Record<string, (own: { state: [string, number] }, other: { state: [string, number] }) => object>
  > = {
    itself: (own) => ({ base: { id: 't4', version: own.state[0] } }),
    'a later one': (_own, other) => ({ base: { id: 't5', version: other.state[0] } }),
    'itself, one diff less': (own) => ({
      base: { id: 't4', version: own.state[0] },
      state: [own.state[0], own.state[1] + 1],
    }),
    nothing: () => ({ base: { id: 'none', version: '0' } }),
  };
  for (const [name, base] of Object.entries(bases)) {
    it(`a snapshot that names ${name} as its base answers DATA_LOSS at once, the tenant still works`, async () => {
      const folder = await filled();
      const path = join(folder, 'global/t4.json');
      const own = readJson(path)['genkitx-agents'] as { state: [string, number] };
      const later = readJson(join(folder, 'global/t5.json'))['genkitx-agents'] as { state: [string, number] };
      const [head, body] = readFileSync(path, 'utf8').split('\n') as [string, string];
      const text = head.replace(JSON.stringify(own), JSON.stringify({ ...own, ...base(own, later) }));
      expect(text).not.toBe(head);
      writeFileSync(path, `${text}\n${body}\n`);
      const store = openStore(folder);
      await expect(store.getSnapshot({ snapshotId: 't4' })).rejects.toMatchObject({ status: 'DATA_LOSS' });
      expect((await store.getSnapshot({ snapshotId: 't3' }))?.state?.custom?.turn).toBe(3);
      await expectOthersGoOn(store, name);
    });
  }
});
