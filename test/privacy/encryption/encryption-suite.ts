import { copySessions } from 'genkitx-agents';
import { envelope, eraseUser, localKeys, type Encryption } from 'genkitx-agents/privacy';
import { expect, it } from 'vitest';
import type { ScopeChange, SessionStore } from '../../../src/store/contract.ts';
import { scale } from '../../support/scale.ts';
import { agentOn } from '../rights/erase-suite.ts';
import {
  ADA,
  CANARY,
  completed,
  encryptionWith,
  fillGolden,
  saveWithoutSession,
  fillSession,
  keyStoreOf,
  readGolden,
  readSession,
  saveWorkload,
  secret,
  type Store,
} from './support.ts';

/** Where an encrypted store keeps its data: a folder or a database of its own. */
export interface EncryptedMedium {
  /** The store of another process, which divides small states into shards. Default: without encryption. */
  open(encryption?: Encryption): Store;
  /** A store with the default options. */
  openDefault(encryption?: Encryption): SessionStore;
  /** The places of a text, in names or in content. */
  placesWith(text: string): Promise<string[]>;
  bytes(): Promise<number>;
  /** Writes the data of the first version. */
  loadGolden(): Promise<void>;
}

export interface EncryptionSuiteOptions {
  medium: () => EncryptedMedium;
  /** Whether a store without the key prunes sessions, or keeps and reports them. */
  prunesWithoutKey: boolean;
}

/** The tests of every store with the option `encryption`. */
export function encryptsAtRest({ medium, prunesWithoutKey }: EncryptionSuiteOptions): void {
  it('read as they were saved in another process, lists, watchers and records included', async () => {
    const [sealed, clear] = [medium(), medium()];
    const plain = clear.open();
    for (const store of [sealed.open(encryptionWith('a')), plain]) {
      await fillSession(store, 'chat');
      await saveWithoutSession(store, 'alone');
    }
    const other = sealed.open(encryptionWith('a'));
    expect(await readSession(other, 'chat')).toEqual(await readSession(plain, 'chat'));
    expect(await other.getSnapshot({ snapshotId: 'alone' })).toEqual(await plain.getSnapshot({ snapshotId: 'alone' }));
    expect(await other.readScopes({ scopes: [ADA] })).toEqual(await plain.readScopes({ scopes: [ADA] }));
    expect((await other.listSessions({ ownerId: 'ada' })).items).toEqual((await plain.listSessions()).items);
    const listed = await other.listSnapshots({ sessionId: 'chat' });
    expect(listed.items).toEqual((await plain.listSnapshots({ sessionId: 'chat' })).items);
    const heard = await new Promise((resolve) => {
      const store = sealed.open(encryptionWith('a'));
      const stop = store.onSnapshotStateChange('chat-6', (snapshot) => resolve([snapshot, stop()]));
    });
    expect(heard).toEqual([await plain.getSnapshot({ snapshotId: 'chat-6' }), undefined]);
    for (const store of [other, plain])
      expect(await store.prune({ maxChainLength: 2 })).toMatchObject({ snapshots: 4 });
    const pruned = sealed.open(encryptionWith('a'));
    expect(await readSession(pruned, 'chat')).toEqual(await readSession(plain, 'chat'));
  });

  it('of the first version are read as they were written', async () => {
    const [golden, clear] = [medium(), medium()];
    await golden.loadGolden();
    const plain = clear.open();
    await fillGolden(plain);
    expect(await readGolden(golden.open(encryptionWith('golden')))).toEqual(await readGolden(plain));
  });

  const turns = scale(60, 200);
  it(`take at most 1.1 times the bytes of clear ones, in a session of ${turns} turns`, async () => {
    const bytes: number[] = [];
    for (const encryption of [undefined, encryptionWith('a')]) {
      const own = medium();
      await saveWorkload(own.openDefault(encryption), turns);
      bytes.push(await own.bytes());
    }
    expect(bytes[1]! / bytes[0]!).toBeLessThan(1.1);
  });

  it.each([
    ['without encryption', undefined],
    ['with another key', encryptionWith('b')],
  ])(
    "%s are refused with the key's id and the session, lists continue, and other sessions are not affected",
    async (_, encryption) => {
      const own = medium();
      const writer = own.open(encryptionWith('a'));
      await fillSession(writer, 'chat');
      await saveWithoutSession(writer, 'alone');
      const store = own.open(encryption);
      const keyId = localKeys(secret('a')).currentId;
      const refused = (what: string): unknown =>
        expect.objectContaining({
          status: 'FAILED_PRECONDITION',
          message: expect.stringMatching(`${what}.*"${keyId}"`) as unknown,
        });

      const snapshots = await readSession(store, 'chat');
      for (const [name, answer] of Object.entries(snapshots)) expect(answer, name).toEqual(refused('Session "chat"'));
      expect(Object.keys(snapshots)).toHaveLength(14);
      await expect(store.getSnapshot({ snapshotId: 'alone' })).rejects.toEqual(refused('Snapshot "alone"'));
      await expect(store.readScopes({ scopes: [ADA] })).rejects.toEqual(refused('A record of a user or an app'));
      const onTop = store.saveSnapshot(undefined, completed({ sessionId: 'chat', parentId: 'chat-6', state: {} }));
      await expect(onTop).rejects.toEqual(refused('Session "chat"'));

      for (const [turn, parentId] of [[1], [2, 'other-1'], [3, 'other-2']] as const) {
        const next = completed({ sessionId: 'other', ...(parentId && { parentId }), state: { custom: { turn } } });
        await store.saveSnapshot(`other-${turn}`, next);
      }
      expect((await store.getSnapshot({ sessionId: 'other' }))?.state).toEqual({ custom: { turn: 3 } });
      const { items } = await store.listSessions();
      expect(items.map((item) => [item.sessionId, item.leafId, item.ownerId, item.title])).toEqual([
        ['other', 'other-3', undefined, undefined],
        ['chat', 'chat-6', 'ada', undefined],
      ]);
      expect(items[1]?.usage).toEqual({ inputTokens: 60 });
      expect((await store.listSnapshots({ sessionId: 'chat' })).items.map((item) => item.status)).toContain('failed');

      const pruning = store.prune({ maxChainLength: 2 });
      if (prunesWithoutKey) expect(await pruning).toMatchObject({ sessions: 0, snapshots: 5 });
      else await expect(pruning).rejects.toEqual(refused('Session "chat"'));
      expect((await store.listSnapshots({ sessionId: 'other' })).items).toHaveLength(2);
      const leaf = await own.open(encryptionWith('a')).getSnapshot({ sessionId: 'chat' });
      expect(leaf).toEqual(await writer.getSnapshot({ sessionId: 'chat' }));
      expect(await store.deleteSession({ sessionId: 'chat' })).toMatchObject({ snapshots: prunesWithoutKey ? 2 : 6 });
      expect((await store.listSessions()).items.map((item) => item.sessionId)).toEqual(['other']);
      expect(await own.placesWith('chat')).toEqual([]);
    },
  );

  it('rotate: begun in clear, then three keys in use, each session continues under the newest, and a key is not needed once its data is gone', async () => {
    const own = medium();
    const expected: Record<string, unknown> = {};
    for (const [at, names] of [[], ['a'], ['b', 'a'], ['c', 'b', 'a']].entries()) {
      const store = own.open(names.length > 0 ? encryptionWith(...names) : undefined);
      const session = `chat-${names[0] ?? 'clear'}`;
      await fillSession(store, session, 4);
      expected[session] = await readSession(store, session);
      const { snapshotId: parentId } = (await store.getSnapshot({ sessionId: 'chat-clear' }))!;
      const more = completed({ sessionId: 'chat-clear', parentId, state: { custom: { at } } });
      if (at > 0) await store.saveSnapshot(`more-${at}`, more);
      await store.close();
    }
    const all = own.open(encryptionWith('c', 'b', 'a'));
    for (const id of ['chat-a', 'chat-b', 'chat-c']) expect(await readSession(all, id)).toEqual(expected[id]);
    const goesOn = { ...(expected['chat-clear'] as object), leaf: { snapshotId: 'more-3' } };
    expect(await readSession(all, 'chat-clear')).toMatchObject(goesOn);

    // From the first checkpoint under the new key on, a chain needs no older data.
    let parentId = 'chat-a-3';
    const { state } = (await all.getSnapshot({ snapshotId: parentId }))!;
    for (let turn = 1; turn <= 5; turn++) {
      const next = completed({ sessionId: 'chat-a', parentId, state: { ...state, custom: { turn } } });
      parentId = (await all.saveSnapshot(undefined, next, { session: { title: CANARY } }))!;
    }
    const newest = own.open(encryptionWith('c'));
    const last = { ...state, custom: { turn: 5 } };
    expect((await newest.getSnapshot({ snapshotId: parentId }))?.state).toEqual(last);
    expect((await newest.listSessions({ limit: 1 })).items[0]?.title).toBe(CANARY);
    const old = newest.getSnapshot({ snapshotId: 'chat-a-1' });
    await expect(old).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await expect(newest.getSnapshot({ sessionId: 'chat-b' })).rejects.toThrow(`"${localKeys(secret('b')).currentId}"`);
    expect(await readSession(newest, 'chat-c')).toEqual(expected['chat-c']);

    await all.prune({ maxChainLength: 1 });
    expect((await own.open(encryptionWith('c')).getSnapshot({ snapshotId: parentId }))?.state).toEqual(last);
  });

  it('copied into another store need the old key no longer; until then a check with the new key alone names the sessions that need it', async () => {
    const [old, next] = [medium(), medium()];
    const writer = old.open(encryptionWith('a'));
    await fillSession(writer, 'chat');
    const before = await readSession(writer, 'chat');
    const findings = (store: Store) => store.check().then((found) => found.findings);
    const problems = (await findings(old.open(encryptionWith('b')))).map(({ kind, problem }) => `${kind}: ${problem}`);
    for (const what of ['Session "chat"', 'A record of a user or an app'])
      expect(problems).toContainEqual(expect.stringMatching(`^unreadable: ${what} is encrypted under the key`));

    await copySessions(old.open(encryptionWith('b', 'a')), next.open(encryptionWith('b')));
    const alone = next.open(encryptionWith('b'));
    expect(await findings(alone)).toEqual([]);
    expect(await readSession(alone, 'chat')).toEqual(before);
    expect(await alone.readScopes({ scopes: [ADA] })).toEqual(await writer.readScopes({ scopes: [ADA] }));
  });

  it('a user who was erased under a key that is gone may begin again, and be erased again', async () => {
    const own = medium();
    const before = own.open(encryptionWith('a'));
    await agentOn(before).turn('ada', 'text', { sessionId: 'chat' });
    await eraseUser(before, { userId: 'ada' });
    await before.close();
    const after = own.open(encryptionWith('b'));
    expect((await after.check()).findings).toEqual([]);
    await agentOn(after).turn('ada', 'text', { sessionId: 'anew' });
    expect(await eraseUser(after, { userId: 'ada' })).toMatchObject({ sessions: 1, scopes: 1 });
  });

  it.each([
    ['written', ['a'], ['a']],
    ['read under an older key', ['a'], ['b', 'a']],
  ])(
    'that the process has %s do not continue once their keys are gone from the key store; begun again they do',
    async (_, first, then) => {
      const own = medium();
      const keys = new Map<string, Uint8Array>();
      const open = (names: string[]) =>
        own.open(envelope({ keys: localKeys(names.map(secret)), keyStore: keyStoreOf(keys) }));
      const state = { custom: { text: CANARY } };
      const onTop = (store: Store) =>
        store.saveSnapshot(undefined, completed({ sessionId: 'chat', parentId: 'one', state }));
      const scopes: ScopeChange[] = [{ id: ADA, change: ({ n = 0 }) => ({ n: Number(n) + 1 }) }];
      const ofAda = (store: Store) =>
        store.saveSnapshot(undefined, completed({ sessionId: 'other', state }), { scopes });
      await open(first).saveSnapshot('one', completed({ sessionId: 'chat', state }), { scopes });
      const store = open(then);
      await store.getSnapshot({ sessionId: 'chat' });
      await store.readScopes({ scopes: [ADA] });
      if (first.length === then.length) await onTop(store);
      keys.clear();
      const refused = (what: string) => ({
        status: 'FAILED_PRECONDITION',
        message: expect.stringMatching(`${what} is encrypted under the key`) as unknown,
      });
      for (let tries = 0; tries < 3; tries++) {
        await expect(onTop(store)).rejects.toMatchObject(refused('Session "chat"'));
        await expect(ofAda(store)).rejects.toMatchObject(refused('A record of a user or an app'));
      }
      await store.saveSnapshot(undefined, completed({ sessionId: 'third', state }));
      await expect(onTop(store)).rejects.toMatchObject(refused('Session "chat"'));

      const another = open(then);
      await another.deleteScope({ scope: ADA });
      await ofAda(store);
      expect(await open(then).readScopes({ scopes: [ADA] })).toEqual([{ n: 1 }]);
      await another.deleteSession({ sessionId: 'chat' });
      await another.saveSnapshot('anew', completed({ sessionId: 'chat', state }));
      await store.writeRecord({ sessionId: 'chat', kind: 'note', key: 'a', value: CANARY });
      await store.saveSnapshot('next', completed({ sessionId: 'chat', parentId: 'anew', state }));
      const fresh = open(then);
      expect((await fresh.getSnapshot({ sessionId: 'chat' }))?.snapshotId).toBe('next');
      expect(await fresh.readRecords({ sessionId: 'chat' })).toMatchObject([{ value: CANARY }]);
    },
  );
}
