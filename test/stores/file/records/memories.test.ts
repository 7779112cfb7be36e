import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileMemoryStore } from 'genkitx-agents/memory';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { ADA, note, put, START } from '../../../conformance/memory/support/drafts.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'memories-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (fileSystem?: FileSystem): FileMemoryStore =>
  new FileMemoryStore(folder, { durability: 'fast' }, fileSystem);

/** The files below the folder whose paths end so. */
function files(ending: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name));
}

it('a commit that was interrupted at any byte is not valid, and the next one is made', async () => {
  const store = open();
  await store.commit(ADA, [put('one')]);
  const [log] = files('log.jsonl') as [string];
  const before = statSync(log).size;
  await store.commit(ADA, [put('two', {}, [1, 0])]);
  const whole = readFileSync(log);
  for (const size of [before + 1, before + 50, whole.lastIndexOf(10, whole.length - 2) + 1, whole.length - 1]) {
    writeFileSync(log, whole);
    truncateSync(log, size);
    const [reader, writer] = [open(), open()];
    expect([await reader.revision(ADA), (await reader.query(ADA)).items.length]).toEqual([1, 1]);
    expect(await writer.commit(ADA, [put('three')])).toEqual({ revision: 2 });
    expect((await reader.changes(ADA, { since: 1 })).changed.map(({ id }) => id)).toEqual(['three']);
    expect((await open().query(ADA)).items.map(({ memory }) => memory.id)).toEqual(['three', 'one']);
    expect(await writer.commit(ADA, [{ op: 'remove', id: 'three' }])).toEqual({ revision: 3 });
    await Promise.all([reader.close(), writer.close()]);
  }
  await store.close();
});

it('a note of a commit that was not made is not valid, and is removed', async () => {
  const store = open();
  await store.commit(ADA, [note('profile', 'it', 'first')]);
  const [current] = files('-1.json') as [string];
  const orphan = current.replace('-1.json', '-2.json');
  writeFileSync(orphan, readFileSync(current, 'utf8').replace('first', 'CANARY'));
  expect((await open().notes(ADA, 'profile')).notes).toMatchObject([{ value: 'first' }]);
  await open().commit(ADA, [put('one')]);
  expect((await open().notes(ADA, 'profile')).notes).toMatchObject([{ value: 'first' }]);
  expect(files('-2.json')).toEqual([]);
  // A sweep also removes a replaced file if no commit did.
  await store.commit(ADA, [note('profile', 'it', 'second')]);
  writeFileSync(current, '{"format":1,"note":["profile","it","CANARY"]}\n');
  await store.sweep();
  expect((await store.notes(ADA, 'profile')).notes).toMatchObject([{ value: 'second' }]);
  expect(files('-1.json')).toEqual([]);
  await store.close();
});

it('a job whose commit was made by a process that died before it removed it is not done again', async () => {
  const store = open();
  await store.addJob({ id: 'one', scope: ADA, input: 1, sourceId: 's' }, { maxJobs: 9, now: START });
  await store.claimJob({ owner: 'w', leaseMs: 1000, now: START });
  const [job] = files('.json').filter((path) => path.includes('.memory-jobs')) as [string];
  const copy = join(folder, 'copy');
  copyFileSync(job, copy);
  await store.commit(ADA, [put('x')], { job: { id: 'one', owner: 'w' } });
  copyFileSync(copy, job);
  rmSync(copy);
  expect(await open().claimJob({ owner: 'v', leaseMs: 1000 })).toBeUndefined();
  expect((await open().listJobs()).items).toEqual([]);
  expect(await store.addJob({ id: 'one', scope: ADA, input: 1, sourceId: 's' }, { maxJobs: 9 })).toBe('added');
  expect(await store.claimJob({ owner: 'v', leaseMs: 1000 })).toMatchObject({ id: 'one', attempts: 1 });
  await store.close();
});

it('a commit appends, and a new process reads the changes, not the scope', async () => {
  let [read, written] = [0, 0];
  const counting: FileSystem = {
    ...nodeFileSystem,
    read(fd, into, position) {
      const count = nodeFileSystem.read(fd, into, position);
      read += count;
      return count;
    },
    async readLater(fd, into, position) {
      const count = await nodeFileSystem.readLater(fd, into, position);
      read += count;
      return count;
    },
    write(fd, bytes) {
      nodeFileSystem.write(fd, bytes);
      written += bytes.length;
    },
  };
  const store = open(counting);
  const text = 'x'.repeat(1000);
  for (let i = 0; i < 20; i++)
    await store.commit(
      ADA,
      Array.from({ length: 100 }, (_, k) => put(`${i} ${k}`, { text })),
    );
  await store.commit(ADA, [note('summary', 'it', 'short')]);
  written = 0;
  const { revision } = await store.commit(ADA, [put('0 0', { text: 'changed' })]);
  expect(written).toBeLessThan(2000);
  read = 0;
  const fresh = open(counting);
  expect(await fresh.revision(ADA)).toBe(revision);
  expect((await fresh.changes(ADA, { since: revision - 1 })).changed).toMatchObject([{ id: '0 0', text: 'changed' }]);
  expect((await fresh.notes(ADA, 'summary')).notes).toHaveLength(1);
  expect(read).toBeLessThan(10_000);
  await Promise.all([store.close(), fresh.close()]);
});

it('files are their owner’s alone, and a newer format is refused', async () => {
  const store = open();
  await store.commit(ADA, [put('one'), note('profile', 'it', 1)]);
  await store.addJob({ id: 'one', scope: ADA, input: 1, sourceId: 's' }, { maxJobs: 9 });
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const { mode } = statSync(join(folder, name));
    expect([name, mode & 0o077]).toEqual([name, 0]);
  }
  const [log] = files('log.jsonl') as [string];
  const text = readFileSync(log, 'utf8');
  writeFileSync(log, text.replace('{"format":1', '{"format":9'));
  await expect(open().query(ADA)).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  // Still JSON.
  writeFileSync(log, text.replace('"text":', '"tixt":'));
  await expect(open().query(ADA)).rejects.toMatchObject({ status: 'DATA_LOSS' });
  writeFileSync(log, 'no log\n');
  await expect(open().query(ADA)).rejects.toMatchObject({ status: 'DATA_LOSS' });
  appendFileSync(log, 'x');
  await expect(open().commit(ADA, [put('two')])).rejects.toMatchObject({ status: 'DATA_LOSS' });
  await store.close();
});
