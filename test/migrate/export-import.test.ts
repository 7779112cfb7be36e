import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  copySessions,
  type CopyResult,
  type SnapshotStore,
  type ExportedLine,
  exportSessions,
  FileSessionStore,
  importSessions,
  InMemorySessionStore,
} from 'genkitx-agents';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/temporary-folder.ts';

const createdAt = '2026-01-02T03:04:05.000Z';
const ADA = { scope: 'user', appName: 'shop', userId: 'ada' } as const;

async function filled(): Promise<InMemorySessionStore> {
  const store = new InMemorySessionStore();
  const state = { custom: { zero: -0, ['__proto__']: 1, emoji: '🪢', lone: '\uD800' } };
  for (const sessionId of ['a', 'b']) {
    await store.saveSnapshot(`${sessionId}1`, () => ({ sessionId, createdAt, status: 'completed', state }), {
      session: { ownerId: 'ada', agent: 'support' },
      scopes: [{ id: ADA, change: () => ({ likes: sessionId }) }],
    });
    for (const n of [2, 3]) {
      const parentId = `${sessionId}1`;
      await store.saveSnapshot(`${sessionId}${n}`, () => ({ sessionId, parentId, createdAt, status: 'failed', state }));
    }
    await store.writeRecord({ sessionId, kind: 'note', key: 'k', value: { of: sessionId } });
  }
  return store;
}

async function textOf(lines: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const line of lines) text += line;
  return text;
}

/** The text as bytes in chunks, cut inside characters and lines. */
async function* bytesOf(text: string, size = 7): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

describe('exportSessions and importSessions', () => {
  it('move whole trees with ids, order, values, details and records; again changes nothing', async () => {
    const text = await textOf(exportSessions(await filled()));
    const store = new FileSessionStore(temporaryFolder(), { durability: 'fast' });
    const counts = { sessions: 2, snapshots: 6, records: 2, scopes: 1, diverged: [], partial: [] };
    expect(await importSessions(store, bytesOf(text))).toEqual(counts);
    expect(await textOf(exportSessions(store))).toBe(text);
    expect(await importSessions(store, bytesOf(text))).toEqual({ ...counts, snapshots: 0, records: 0, scopes: 0 });
    expect((await store.getSnapshot({ snapshotId: 'a1' }))?.state?.custom).toEqual({
      zero: -0,
      ['__proto__']: 1,
      emoji: '🪢',
      lone: '\uD800',
    });
    await store.close();
  });

  it('continue an interrupted import, and keep sessions that continued since', async () => {
    const text = await textOf(exportSessions(await filled()));
    const store = new InMemorySessionStore();
    const cut = text.slice(0, text.indexOf('"b2"'));
    await expect(importSessions(store, bytesOf(cut))).rejects.toThrow('The export was cut off after line 8');
    await store.saveSnapshot('a4', () => ({ sessionId: 'a', parentId: 'a3', createdAt, status: 'completed' }));
    expect(await importSessions(store, bytesOf(text))).toMatchObject({ sessions: 2, snapshots: 2, diverged: [] });
    expect((await store.listSnapshots({ sessionId: 'a' })).items.map((one) => one.snapshotId)).toEqual([
      'a1',
      'a2',
      'a3',
      'a4',
    ]);
  });

  it('report a session with other snapshots, and do not write more of it', async () => {
    const store = new InMemorySessionStore();
    await store.saveSnapshot('other', () => ({ sessionId: 'a', createdAt, status: 'completed' }));
    const result = await importSessions(store, bytesOf(await textOf(exportSessions(await filled()))));
    expect(result).toMatchObject({ sessions: 1, snapshots: 3, records: 1, diverged: ['a'] });
    expect((await store.listSnapshots({ sessionId: 'a' })).items).toHaveLength(1);
    expect(await store.readRecords({ sessionId: 'a' })).toEqual([]);
  });

  it('take single sessions, and report a missing one', async () => {
    const store = await filled();
    const lines = (await textOf(exportSessions(store, { sessionIds: ['b'] }))).trim().split('\n');
    expect(lines.map((line) => (JSON.parse(line) as { kind: string }).kind)).toEqual([
      'session',
      'record',
      'snapshot',
      'snapshot',
      'snapshot',
      'end',
    ]);
    await expect(textOf(exportSessions(store, { sessionIds: ['c'] }))).rejects.toThrow('There is no session "c"');
  });

  it.each([
    ['one snapshot', ['a2.json'], 'session "a"', { sessionId: 'a', snapshotId: 'a2' }, 5, 4],
    [
      'a whole session',
      ['a1.json', 'a2.json', 'a3.json', '.sessions/a/log.jsonl'],
      'global/.sessions/a',
      { place: 'global/.sessions/a' },
      3,
      3,
    ],
  ])('name data that can’t be read, after everything else: %s', async (_, damaged, name, item, snapshots, copied) => {
    const folder = temporaryFolder();
    const full = new FileSessionStore(folder, { durability: 'fast' });
    await importSessions(full, bytesOf(await textOf(exportSessions(await filled()))));
    await full.close();
    const backup = damaged
      .map((path) => join(folder, 'global', path))
      .map((path) => [path, readFileSync(path)] as const);
    for (const [path] of backup) writeFileSync(path, 'damaged');

    const from = new FileSessionStore(folder, { durability: 'fast' });
    const lines = (await textOf(exportSessions(from)))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as ExportedLine);
    expect(lines.filter(({ kind }) => kind === 'snapshot')).toHaveLength(snapshots);
    expect(lines).toContainEqual(expect.objectContaining({ kind: 'unreadable', ...item }));
    expect(lines.at(-1)).toMatchObject({ kind: 'end', scopes: 1, unreadable: 1 });
    const rest = new InMemorySessionStore();
    expect(await importSessions(rest, exportSessions(from))).toMatchObject({ snapshots });

    const to = new InMemorySessionStore();
    const progress: CopyResult[] = [];
    const copying = copySessions(from, to, { onProgress: (result) => progress.push(result) });
    await expect(copying).rejects.toThrow(
      `DATA_LOSS: The copy is incomplete, because the store has data that can't be read: ${name}.`,
    );
    expect(progress.at(-1)).toMatchObject({ sessions: 1, snapshots: copied, scopes: 1, partial: [], diverged: [] });
    expect(await textOf(exportSessions(from, { sessionIds: ['b'] }))).toContain('"kind":"end"');
    await from.close();

    for (const [path, text] of backup) writeFileSync(path, text);
    const restored = new FileSessionStore(folder, { durability: 'fast' });
    expect(await copySessions(restored, to)).toMatchObject({ sessions: 2, snapshots: 6 - copied });
    const ids = async (store: SnapshotStore) =>
      (await store.listSnapshots({ sessionId: 'a' })).items.map(({ snapshotId }) => snapshotId);
    expect(await ids(to)).toEqual(await ids(restored));
    await restored.close();
  });

  it.each([
    ['not JSON', 'hello\n', /INVALID_ARGUMENT: Line 1 is not a line of an export/],
    ['another kind of line', '{"kind":"memory"}\n', /Line 1 is not a line of an export/],
    [
      'a snapshot before its session',
      '{"kind":"snapshot","snapshot":{"sessionId":"a"}}\n',
      /Line 1 belongs to another/,
    ],
    ['no last line', '', /FAILED_PRECONDITION: The export was cut off after line 0/],
    ['a line that is cut off', '{"kind":"scope","scope":{"ki', /The export was cut off after line 0/],
    ['a cut line in the middle', '{"kind":"scope","scope":{"ki\n{"kind":"end"}\n', /Line 1 is not a line of an export/],
    ['another file without a line end', 'hello', /Line 1 is not a line of an export/],
    ['a line after the last one', '{"kind":"end"}\n{"kind":"end"}\n', /Line 2 comes after the last line/],
  ])('refuse %s', async (_name, text, message) => {
    await expect(importSessions(new InMemorySessionStore(), bytesOf(text))).rejects.toThrow(message);
  });
});
