import { cpSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { envelope, localKeys, type Encryption } from 'genkitx-agents/privacy';
import { FileSessionStore } from '../../../stores/file/file-session-store.ts';
import { entriesBelow, temporaryFolder } from '../../stores/file/support/folders.ts';
import {
  ADA,
  CANARY,
  completed,
  encryptionWith,
  fillGolden,
  fillLoner,
  fillSession,
  keyStoreOf,
  readGolden,
  readSession,
  saveWorkload,
  secret,
  type Store,
} from './support.ts';

function open(folder: string, encryption?: Encryption, checkpointInterval = 3): Store {
  return new FileSessionStore(folder, { checkpointInterval, durability: 'fast', ...(encryption && { encryption }) });
}

/** Files that have a text in them, in any of the ways in which bytes hold it, or in their names. */
function filesWith(folder: string, text: string): string[] {
  const needles = [Buffer.from(text), Buffer.from(text, 'utf16le')];
  return entriesBelow(folder).filter((path) => {
    if (path.includes(text)) return true;
    const at = join(folder, path);
    return statSync(at).isFile() && needles.some((needle) => readFileSync(at).includes(needle));
  });
}

describe('encrypted files', () => {
  it('hold no text of anybody: a raw scan of the directory finds a canary of every field nowhere, and in clear files of every kind', async () => {
    const found: string[][] = [];
    for (const encryption of [undefined, encryptionWith('a')]) {
      for (const interval of [1, 3]) {
        const folder = temporaryFolder();
        const store = open(folder, encryption, interval);
        await fillSession(store, 'chat');
        await fillLoner(store, 'alone');
        found.push(filesWith(folder, CANARY));
        await store.close();
      }
    }
    const [clear, clearParts, ...sealed] = found;
    expect(sealed).toEqual([[], []]);
    expect(clear).toContain('global/alone.json');
    for (const kind of [/\/chat-1\.json$/, /\.records\//, /\.scopes\//, /\.sessions\/chat\/[0-9a-f]{64}$/]) {
      expect(
        clearParts!.filter((path) => kind.test(path)),
        String(kind),
      ).not.toEqual([]);
    }
  });

  it('read as they were saved in another process, lists, watchers and records included', async () => {
    const [folder, plainFolder] = [temporaryFolder(), temporaryFolder()];
    const [one, plain] = [open(folder, encryptionWith('a')), open(plainFolder)];
    for (const store of [one, plain]) {
      await fillSession(store, 'chat');
      await fillLoner(store, 'alone');
    }
    const other = open(folder, encryptionWith('a'));
    expect(await readSession(other, 'chat')).toEqual(await readSession(plain, 'chat'));
    const loner = await other.getSnapshot({ snapshotId: 'alone' });
    expect(loner).toEqual(await plain.getSnapshot({ snapshotId: 'alone' }));
    expect(await other.readScopes({ scopes: [ADA] })).toEqual(await plain.readScopes({ scopes: [ADA] }));
    expect((await other.listSessions({ ownerId: 'ada' })).items).toEqual((await plain.listSessions()).items);
    const listed = await other.listSnapshots({ sessionId: 'chat' });
    expect(listed.items).toEqual((await plain.listSnapshots({ sessionId: 'chat' })).items);
    const heard = await new Promise((resolve) => {
      const stop = open(folder, encryptionWith('a')).onSnapshotStateChange('chat-6', (snapshot) =>
        resolve([snapshot, stop()]),
      );
    });
    expect(heard).toEqual([await plain.getSnapshot({ snapshotId: 'chat-6' }), undefined]);
  });

  it('of the first version are read as they were written', async () => {
    const [folder, plainFolder] = [temporaryFolder(), temporaryFolder()];
    cpSync(fileURLToPath(new URL('../../golden/file-encrypted-2', import.meta.url)), folder, { recursive: true });
    const plain = open(plainFolder);
    await fillGolden(plain);
    expect(await readGolden(open(folder, encryptionWith('golden')))).toEqual(await readGolden(plain));
  });

  it('take at most 1.1 times the bytes of clear ones, in a session of 200 turns', async () => {
    const bytes: number[] = [];
    for (const encryption of [undefined, encryptionWith('a')]) {
      const folder = temporaryFolder();
      const store = new FileSessionStore(folder, { durability: 'fast', ...(encryption && { encryption }) });
      await saveWorkload(store, 200);
      const sizes = entriesBelow(folder).map((path) => statSync(join(folder, path)));
      bytes.push(sizes.reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0));
    }
    expect(bytes[1]! / bytes[0]!).toBeLessThan(1.1);
  });

  for (const [without, encryption] of [
    ['without encryption', undefined],
    ['with another key', encryptionWith('b')],
  ] as const) {
    it(`${without} are refused with the key's id and the session, lists go on, and other sessions are not affected`, async () => {
      const folder = temporaryFolder();
      const writer = open(folder, encryptionWith('a'));
      await fillSession(writer, 'chat');
      await fillLoner(writer, 'alone');
      const own = open(folder, encryption);
      const keyId = localKeys(secret('a')).currentId;
      const refused = (what: string): unknown =>
        expect.objectContaining({
          status: 'FAILED_PRECONDITION',
          message: expect.stringMatching(`${what}.*"${keyId}"`) as unknown,
        });

      const snapshots = await readSession(own, 'chat');
      for (const [name, answer] of Object.entries(snapshots)) expect(answer, name).toEqual(refused('Session "chat"'));
      expect(Object.keys(snapshots)).toHaveLength(14);
      await expect(own.getSnapshot({ snapshotId: 'alone' })).rejects.toEqual(refused('Snapshot "alone"'));
      await expect(own.readScopes({ scopes: [ADA] })).rejects.toEqual(refused('A record of a user or an app'));
      const onTop = own.saveSnapshot(undefined, completed({ sessionId: 'chat', state: {} }));
      await expect(onTop).rejects.toEqual(refused('Session "chat"'));

      await own.saveSnapshot(
        'other-1',
        completed({
          sessionId: 'other',
          state: { custom: { n: 1 } },
        }),
      );
      expect((await own.getSnapshot({ sessionId: 'other' }))?.state).toEqual({ custom: { n: 1 } });
      const { items } = await own.listSessions();
      expect(items.map((item) => [item.sessionId, item.leafId, item.ownerId, item.title])).toEqual([
        ['other', 'other-1', undefined, undefined],
        ['chat', 'chat-6', 'ada', undefined],
      ]);
      expect(items[1]?.usage).toEqual({ inputTokens: 60 });
      expect((await own.listSnapshots({ sessionId: 'chat' })).items.map((item) => item.status)).toContain('failed');

      expect(await own.prune({ maxChainLength: 2 })).toMatchObject({ sessions: 0, snapshots: 4 });
      expect(
        Object.keys((await open(folder, encryptionWith('a')).getSnapshot({ sessionId: 'chat' }))!.state!),
      ).toContain('messages');
      expect(await own.deleteSession({ sessionId: 'chat' })).toMatchObject({ snapshots: 2 });
      expect(filesWith(folder, 'chat')).toEqual([]);
    });
  }

  it('begin where files in clear end: those are read, and what is saved from now on is encrypted, its pieces too', async () => {
    const folder = temporaryFolder();
    await fillSession(open(folder), 'chat', 4);
    const before = await readSession(open(folder), 'chat');
    const store = open(folder, encryptionWith('a'));
    expect(await readSession(store, 'chat')).toEqual(before);

    const clear = new Set(filesWith(folder, CANARY));
    const state = (await store.getSnapshot({ snapshotId: 'chat-3' }))!.state!;
    for (let turn = 5; turn <= 9; turn++) {
      const parentId = `chat-${turn - 1}`;
      await store.saveSnapshot(
        `chat-${turn}`,
        completed({
          sessionId: 'chat',
          parentId,
          state: { ...state, custom: { turn } },
        }),
      );
    }
    await store.saveSnapshot('chat-4', (current) => ({ ...current!, updatedAt: '2026-03-01T00:00:00.000Z' }));
    await store.writeRecord({ sessionId: 'chat', kind: 'summary', key: 'first', value: CANARY });
    const still = filesWith(folder, CANARY);
    expect(still.filter((path) => !clear.has(path))).toEqual([]);
    expect(still.some((path) => path.endsWith('chat-4.json'))).toBe(false);

    // What was saved in clear goes with the snapshots that need it.
    await store.deleteScope({ scope: ADA });
    await store.writeRecord({ sessionId: 'chat', kind: 'summary', key: 'second', value: undefined });
    await store.saveSnapshot(
      'chat-10',
      completed({
        sessionId: 'chat',
        parentId: 'chat-9',
        state: { ...state, custom: { turn: 10 } },
      }),
    );
    await store.prune({ maxChainLength: 1 });
    expect(filesWith(folder, CANARY)).toEqual([]);
    expect((await open(folder, encryptionWith('a')).getSnapshot({ snapshotId: 'chat-10' }))?.state).toEqual({
      ...state,
      custom: { turn: 10 },
    });
  });

  it('rotate: three keys in use, each session goes on under the newest, and a key is not needed once its data is gone', async () => {
    const folder = temporaryFolder();
    const expected: Record<string, unknown> = {};
    for (const [at, names] of [['a'], ['b', 'a'], ['c', 'b', 'a']].entries()) {
      const store = open(folder, encryptionWith(...names));
      await fillSession(store, `chat-${names[0]}`, 4);
      expected[`chat-${names[0]}`] = await readSession(store, `chat-${names[0]}`);
      const parentId = (await store.getSnapshot({ sessionId: 'chat-a' }))!.snapshotId;
      if (at > 0)
        await store.saveSnapshot(
          `more-${at}`,
          completed({
            sessionId: 'chat-a',
            state: { custom: { at, parentId } },
          }),
        );
      await store.close();
    }
    const all = open(folder, encryptionWith('c', 'b', 'a'));
    for (const id of ['chat-b', 'chat-c']) expect(await readSession(all, id)).toEqual(expected[id]);
    expect(await readSession(all, 'chat-a')).toMatchObject({
      ...(expected['chat-a'] as object),
      leaf: { snapshotId: 'more-2' },
    });

    // From the first checkpoint under the new key on, a chain stands on nothing that is older.
    let parentId: string | null = 'chat-a-3';
    const { state } = (await all.getSnapshot({ snapshotId: parentId }))!;
    for (let turn = 1; turn <= 5; turn++) {
      parentId = await all.saveSnapshot(
        undefined,
        completed({
          sessionId: 'chat-a',
          parentId: parentId!,
          state: { ...state, custom: { turn } },
        }),
      );
    }
    const newest = open(folder, encryptionWith('c'));
    expect((await newest.getSnapshot({ snapshotId: parentId! }))?.state).toEqual({ ...state, custom: { turn: 5 } });
    await expect(newest.getSnapshot({ snapshotId: 'chat-a-1' })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
    await expect(newest.getSnapshot({ sessionId: 'chat-b' })).rejects.toThrow(`"${localKeys(secret('b')).currentId}"`);
    expect(await readSession(newest, 'chat-c')).toEqual(expected['chat-c']);
  });

  it('of equal sessions are called differently, and a session that goes on stores its pieces once', async () => {
    const folder = temporaryFolder();
    const store = open(folder, encryptionWith('a'));
    const { state } = await (async () => {
      await fillSession(store, 'one');
      return (await store.getSnapshot({ snapshotId: 'one-5' }))!;
    })();
    for (const session of ['two', 'three']) {
      await store.saveSnapshot(`${session}-1`, completed({ sessionId: session, state: state! }));
    }
    const shards = (session: string): string[] =>
      readdirSync(join(folder, 'global/.sessions', session)).filter((name) => name.length > 70);
    expect(shards('two').length).toBeGreaterThan(1);
    expect(shards('two').length).toBe(shards('three').length);
    expect(new Set([...shards('two'), ...shards('three')].map((name) => name.slice(-64))).size).toBe(
      2 * shards('two').length,
    );

    const before = shards('two');
    let parentId: string | null = 'two-1';
    for (let turn = 1; turn <= 7; turn++) {
      parentId = await store.saveSnapshot(
        undefined,
        completed({
          sessionId: 'two',
          parentId: parentId!,
          state: { ...state!, custom: { turn } },
        }),
      );
    }
    expect(shards('two').filter((name) => before.includes(name))).toEqual(before);
    expect(shards('two')).toEqual(before);
  });

  it('with a key store: deleting a session removes its keys, and with them what a backup holds of it', async () => {
    const keys = new Map<string, Uint8Array>();
    const keyStore = keyStoreOf(keys);
    const encryption = (): Encryption => envelope({ keys: localKeys(secret('a')), keyStore });
    const [folder, backup] = [temporaryFolder(), temporaryFolder()];
    const store = open(folder, encryption());
    for (const session of ['chat', 'other']) await fillSession(store, session);
    const other = await readSession(store, 'other');
    await store.close();
    cpSync(folder, backup, { recursive: true });
    expect([...keys.keys()].toSorted()).toHaveLength(3);

    const again = open(folder, encryption());
    await again.deleteSession({ sessionId: 'chat' });
    await again.deleteScope({ scope: ADA });
    expect([...keys.keys()].filter((name) => !name.includes('other'))).toEqual([]);
    expect(filesWith(folder, 'chat')).toEqual([]);

    const restored = open(backup, encryption());
    await expect(restored.getSnapshot({ sessionId: 'chat' })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('"chat"'),
    });
    await expect(restored.readScopes({ scopes: [ADA] })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    expect(await readSession(restored, 'other')).toEqual(other);

    // Other processes remember the old key, and must not begin the session anew with it.
    const late = encryption();
    const remembers = open(folder, late);
    expect((await remembers.getSnapshot({ sessionId: 'other' }))?.snapshotId).toBe('other-6');
    await again.deleteSession({ sessionId: 'other' });
    await remembers.saveSnapshot('new', completed({ sessionId: 'other', state: {} }));
    expect((await open(folder, encryption()).getSnapshot({ sessionId: 'other' }))?.snapshotId).toBe('new');
  });
});
