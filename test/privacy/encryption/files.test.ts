import { cpSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { envelope, localKeys, type Encryption, type KeyStore } from 'genkitx-agents/privacy';
import { FileSessionStore } from '../../../stores/file/file-session-store.ts';
import { FileMemoryStore } from '../../../stores/file/memory/file-memory-store.ts';
import { entriesBelow } from '../../stores/file/support/folders.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { encryptsAtRest, type EncryptedMedium } from './encryption-suite.ts';
import {
  ADA,
  CANARY,
  completed,
  encryptionWith,
  expectNoMemoriesWithoutKeys,
  saveWithoutSession,
  fillSession,
  keyStoreOf,
  readSession,
  secret,
  type Store,
} from './support.ts';

function open(folder: string, encryption?: Encryption, checkpointInterval = 3): Store {
  return new FileSessionStore(folder, { checkpointInterval, durability: 'fast', ...(encryption && { encryption }) });
}

/** Files that contain a text, in any encoding, or have it in their names. */
function filesWith(folder: string, text: string): string[] {
  const needles = [Buffer.from(text), Buffer.from(text, 'utf16le')];
  return entriesBelow(folder).filter((path) => {
    if (path.includes(text)) return true;
    const at = join(folder, path);
    return statSync(at).isFile() && needles.some((needle) => readFileSync(at).includes(needle));
  });
}

/** A folder of its own. */
function medium(): EncryptedMedium {
  const folder = temporaryFolder();
  return {
    open: (encryption) => open(folder, encryption),
    openDefault: (encryption) =>
      new FileSessionStore(folder, { durability: 'fast', ...(encryption && { encryption }) }),
    placesWith: async (text) => filesWith(folder, text),
    bytes: async () => {
      const sizes = entriesBelow(folder).map((path) => statSync(join(folder, path)));
      return sizes.reduce((sum, stats) => sum + (stats.isFile() ? stats.size : 0), 0);
    },
    loadGolden: async () => {
      const golden = new URL('../../golden/file-encrypted-2', import.meta.url);
      cpSync(fileURLToPath(golden), folder, { recursive: true });
    },
  };
}

describe('encrypted files', () => {
  encryptsAtRest({ medium, prunesWithoutKey: true });

  it('need an encryption that encrypts', () => {
    for (const encryption of [{}, { cipher: () => {} }, 'aes', null] as never[]) {
      for (const make of [
        () => new FileSessionStore(temporaryFolder(), { encryption }),
        () => new FileMemoryStore(temporaryFolder(), { encryption }),
      ])
        expect(make).toThrow(
          /(FileSessionStore|FileMemoryStore): encryption must be an Encryption, for example from envelope\(\)/,
        );
    }
  });

  it('hold no clear text: a raw scan of the directory finds a canary of every field nowhere, and in clear files of every kind', async () => {
    const found: string[][] = [];
    for (const encryption of [undefined, encryptionWith('a')]) {
      for (const interval of [1, 3]) {
        const folder = temporaryFolder();
        const store = open(folder, encryption, interval);
        await fillSession(store, 'chat');
        await saveWithoutSession(store, 'alone');
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

  it('follow files in clear: those are read, and new data is encrypted, including shards', async () => {
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

    // Data in clear is removed with the snapshots that need it.
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

  it('of equal sessions have different names, and a session that continues stores its shards once', async () => {
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

  it('with a key store: deleting a session removes its keys, so that a backup of it is unreadable', async () => {
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

    // Other processes have the old key in memory, and must not use it for a new session.
    const late = encryption();
    const remembers = open(folder, late);
    expect((await remembers.getSnapshot({ sessionId: 'other' }))?.snapshotId).toBe('other-6');
    await again.deleteSession({ sessionId: 'other' });
    await remembers.saveSnapshot('new', completed({ sessionId: 'other', state: {} }));
    expect((await open(folder, encryption()).getSnapshot({ sessionId: 'other' }))?.snapshotId).toBe('new');
  });

  it('are UNAVAILABLE while the key store does not answer, and none is reported as damaged', async () => {
    const folder = temporaryFolder();
    const kept = keyStoreOf(new Map());
    let isDown = false;
    const outage = new Error('connect ECONNREFUSED 10.0.0.5:5432');
    const ask = async <T>(call: () => Promise<T>): Promise<T> => (isDown ? Promise.reject(outage) : call());
    const keyStore: KeyStore = {
      write: (...args) => ask(() => kept.write(...args)),
      read: (...args) => ask(() => kept.read(...args)),
      delete: (...args) => ask(() => kept.delete(...args)),
    };
    const store = open(folder, envelope({ keys: localKeys(secret('a')), keyStore }));
    const reader = open(folder, envelope({ keys: localKeys(secret('a')), keyStore }));
    for (const sessionId of ['chat', 'other']) await fillSession(store, sessionId, 3);
    isDown = true;
    const calls: Record<string, () => Promise<unknown>> = {
      read: () => reader.getSnapshot({ sessionId: 'chat' }),
      records: () => reader.readRecords({ sessionId: 'chat' }),
      user: () => reader.readScopes({ scopes: [ADA] }),
      check: () => reader.check(),
      'the next turn': () => store.saveSnapshot('chat-4', completed({ sessionId: 'chat', parentId: 'chat-3' })),
      'a new session': () => reader.saveSnapshot('new', completed({ sessionId: 'new' })),
      'a deletion': () => store.deleteSession({ sessionId: 'other' }),
    };
    for (const [name, call] of Object.entries(calls)) {
      const error: unknown = await call().catch((thrown: unknown) => thrown);
      expect(error, name).toMatchObject({ status: 'UNAVAILABLE', cause: outage });
      expect((error as Error).message, name).toMatch(/key store can't be reached.*ECONNREFUSED/);
    }
    isDown = false;
    for (const name of ['read', 'check', 'the next turn']) await expect(calls[name]!(), name).resolves.toBeTruthy();
  });

  it('of memories do not continue once their keys are gone from the key store; erased, they begin again', async () => {
    const folder = temporaryFolder();
    await expectNoMemoriesWithoutKeys((encryption) => new FileMemoryStore(folder, { encryption }));
  });
});
