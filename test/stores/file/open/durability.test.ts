import { cpSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { GenkitError } from 'genkit';
import { describe, expect, it } from 'vitest';
import { isTorture, scale, seed } from '../../../support/scale.ts';
import { CrashingDisk, type Survival } from '../support/crashing-disk.ts';
import { leftovers } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { Random } from '../../../support/random.ts';
import { RecordingFileSystem, type Operation } from '../support/recording.ts';
import { openStore, readAll, saveTurn, saveTurns, SCENARIOS, SESSION, type Scenario } from '../support/scenarios.ts';

describe('flush order:', () => {
  for (const scenario of SCENARIOS.filter(({ name }) => !/pruning|deleting/.test(name))) {
    it(`${scenario.name}: the file and the log are flushed, then it is moved into place, then its folder is flushed`, async () => {
      const folder = temporaryFolder();
      await scenario.before(openStore(folder, scenario.options), folder);
      const recording = new RecordingFileSystem();
      const store = openStore(folder, scenario.options, recording.fileSystem);
      await scenario.operate(store);
      assertFlushed(recording.operations, join(folder, 'global'));
    });
  }

  it("with durability 'fast' nothing is flushed", async () => {
    const folder = temporaryFolder();
    const recording = new RecordingFileSystem();
    await saveTurns(openStore(folder, { durability: 'fast' }, recording.fileSystem), 8, true);
    expect(recording.operations.filter(({ call }) => call === 'flush')).toEqual([]);
  });
});

/** Checks that each file was flushed before it was moved into its place, and the place's folder after; the log also before. */
function assertFlushed(operations: readonly Operation[], tenant: string): void {
  const dirtyFiles = new Set<string>();
  const dirtyFolders = new Set<string>();
  let published = 0;
  for (const operation of operations) {
    if (operation.call === 'write') dirtyFiles.add(operation.path);
    else if (operation.call === 'flush') {
      dirtyFiles.delete(operation.path);
      dirtyFolders.delete(operation.path);
    } else if (operation.call === 'rename' && /\.(?:scopes|records)\//.test(operation.to)) {
      expect(dirtyFiles, 'written and not flushed when the record was moved into place').not.toContain(operation.from);
      dirtyFolders.add(dirname(operation.to));
      published++;
    } else if (
      (operation.call === 'rename' || operation.call === 'link') &&
      /global\/[^./][^/]*\.json$/.test(operation.to)
    ) {
      expect(dirtyFiles, 'written and not flushed when the snapshot was moved into place').not.toContain(
        operation.from,
      );
      const log = [...dirtyFiles].filter((path) => path.endsWith('.jsonl'));
      expect(log, 'the log was not flushed when the snapshot was moved into place').toEqual([]);
      expect([...dirtyFolders], 'the drafts of records were not flushed by then').not.toContain(
        join(tenant, '.scopes'),
      );
      dirtyFolders.add(tenant);
      published++;
    }
  }
  expect(published).toBeGreaterThan(0);
  expect([...dirtyFolders], 'not flushed at the end').toEqual([]);
}

describe(`crash points: (seed ${seed})`, () => {
  const survivals: readonly Survival[] = ['dropped', 'metadata-only', 'mixed'];
  for (const scenario of SCENARIOS) {
    it(`${scenario.name}: a power failure at any point leaves the state before or after`, async () => {
      const random = new Random(seed);
      const { start, operations, before, after } = await record(scenario);
      let crashes = 0;
      for (let length = 0; length <= operations.length; length++) {
        const last = operations[length - 1];
        if (length < operations.length && (last?.call === 'look' || last?.call === 'close')) continue;
        for (const survival of isTorture ? survivals : survivals.slice(0, length % 3 === 0 ? 3 : 1)) {
          for (let i = 0; i < (survival === 'mixed' ? scale(1, 5) : 1); i++) {
            const place = `after ${length} of ${operations.length} operations, ${survival}`;
            const folder = temporaryFolder();
            const disk = new CrashingDisk(start);
            for (const operation of operations.slice(0, length)) disk.apply(operation);
            disk.crash(folder, survival, random);
            const store = openStore(folder, scenario.options);
            const found = await readAll(store);
            if (length === operations.length) expect(found, place).toEqual(after);
            else expect([before, after], place).toContainEqual(found);
            await goesOn(store, scenario);
            crashes++;
          }
        }
      }
      expect(crashes).toBeGreaterThan(10);
    });
  }
});

/** Runs the operation on the real disk and returns its system calls. */
async function record(
  scenario: Scenario,
): Promise<{ start: string; operations: Operation[]; before: unknown; after: unknown }> {
  const folder = temporaryFolder();
  const maker = openStore(folder, scenario.options);
  await scenario.before(maker, folder);
  await maker.close();
  const before = await readAll(openStore(folder, scenario.options));
  const start = temporaryFolder();
  cpSync(folder, start, { recursive: true });
  const recording = new RecordingFileSystem();
  await scenario.operate(openStore(folder, scenario.options, recording.fileSystem));
  const after = await readAll(openStore(folder, scenario.options));
  const operations = JSON.parse(JSON.stringify(recording.operations).replaceAll(folder, start)) as Operation[];
  for (const operation of operations) {
    if (operation.call === 'write') Object.assign(operation, { bytes: Buffer.from(operation.bytes) });
  }
  return { start, operations, before, after };
}

/** Checks that the session can be saved to, and that the failure has left no files. */
async function goesOn(store: ReturnType<typeof openStore>, { name }: Scenario): Promise<void> {
  const leaf = await store.getSnapshot({ sessionId: SESSION });
  await store.saveSnapshot('next', () => ({
    sessionId: SESSION,
    createdAt: '2026-03-01T00:00:00.000Z',
    status: 'completed',
    ...(leaf && { parentId: leaf.snapshotId, state: leaf.state }),
  }));
  expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId, name).toBe('next');
  await store.close();
}

describe('n-th fault:', () => {
  const codes = ['ENOSPC', 'EIO', 'EROFS', 'EMFILE'];
  for (const scenario of SCENARIOS) {
    if (isTorture) {
      for (const code of codes)
        it(`${scenario.name}: ${code} once, at any system call`, () => failAt(scenario, () => code));
    } else {
      const inTurn = (nth: number): string => codes[nth % codes.length]!;
      it(`${scenario.name}: ${codes.join(', ')} in turn, once, at every third system call`, () =>
        failAt(scenario, inTurn));
    }
    it(`${scenario.name}: a full disk from some system call on`, () =>
      failAt(scenario, () => 'ENOSPC', { lasting: true }));
  }
});

/** Lets the n-th system call of an operation fail, for each n, and checks the result. */
async function failAt(
  scenario: Scenario,
  codeOf: (nth: number) => string,
  { lasting = false }: { lasting?: boolean } = {},
): Promise<void> {
  const template = temporaryFolder();
  await scenario.before(openStore(template, scenario.options), template);
  const before = await readAll(openStore(template, scenario.options));
  const done = temporaryFolder();
  cpSync(template, done, { recursive: true });
  await scenario.operate(openStore(done, scenario.options));
  const after = await readAll(openStore(done, scenario.options));
  const step = isTorture ? 1 : lasting ? 6 : 3;
  for (let nth = seed % step; ; nth += step) {
    const code = codeOf(nth);
    const folder = temporaryFolder();
    cpSync(template, folder, { recursive: true });
    const recording = new RecordingFileSystem();
    const store = openStore(folder, scenario.options, recording.fileSystem);
    let calls = 0;
    let failed = '';
    recording.intercept = (call, path) => {
      const isDue = lasting ? calls >= nth : calls === nth;
      calls++;
      if (!isDue || (lasting && /^(?:stat|read|close|unlink|rmdir|truncate)/.test(call))) return;
      failed = `${call} ${path.replace(folder, '')}`;
      throw Object.assign(new Error(`${code}: simulated, ${call} '${path}'`), { code, syscall: call, path });
    };
    const outcome = await scenario.operate(store).then(
      () => 'acknowledged' as const,
      (error: unknown) => error,
    );
    const place = `the failed call was number ${nth}, ${failed}`;
    recording.intercept = () => {};
    const found = await readAll(openStore(folder, scenario.options));
    if (outcome === 'acknowledged') expect(found, `${place}: acknowledged`).toEqual(after);
    else {
      expect(outcome, place).toBeInstanceOf(GenkitError);
      const { message, status } = outcome as GenkitError;
      expect(['RESOURCE_EXHAUSTED', 'UNAVAILABLE'], place).toContain(status);
      expect(message, place).not.toContain(`${folder}/`);
      // A removal that fails late may have happened completely.
      if (/may have been saved|Pruning|Deleting/.test(message)) expect([before, after], place).toContainEqual(found);
      else expect(found, `${place}: refused`).toEqual(before);
    }
    expect(leftovers(folder), place).toEqual([]);
    expect(recording.open.size, `${place}: files left open`).toBe(0);
    await saveTurn(store, 20, { parent: 't1' });
    expect((await openStore(folder, scenario.options).getSnapshot({ sessionId: SESSION }))?.snapshotId, place).toBe(
      't20',
    );
    await store.close();
    if (failed === '') return;
  }
}
