import { FileSessionStore, genkit, InMemorySessionStore } from 'genkitx-agents';
import { FileMemoryStore, InMemoryMemoryStore, memoryManager } from 'genkitx-agents/memory';
import { envelope, eraseUser, exportUser, localKeys } from 'genkitx-agents/privacy';
import { describe, expect, it, vi } from 'vitest';
import { contentsBelow, killOwners } from '../../stores/file/support/folders.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { MortalFileSystem } from '../../stores/file/support/mortal.ts';
import { eraseTwice, keyStoreOf, mortalKeyStore, secret } from '../encryption/support.ts';
import { agentOn, erasesKeys, erasesUsers, type FullStore, type Medium } from './erase-suite.ts';
import { collect } from '../../support/collect.ts';

/** A folder as the medium; keys are kept in `keys`, if there are some. */
function medium(keys?: Map<string, Uint8Array>): Medium {
  const folder = temporaryFolder();
  const open = (mortal?: MortalFileSystem): FullStore => {
    const keyStore = keys && mortalKeyStore(keyStoreOf(keys), () => mortal?.step('unlink'));
    const encryption = keyStore && { encryption: envelope({ keys: localKeys(secret('a')), keyStore }) };
    return new (FileSessionStore as new (...args: unknown[]) => FullStore)(
      folder,
      { durability: 'fast', ...encryption },
      mortal?.fileSystem,
    );
  };
  return {
    open,
    look: async () => new Map(Object.entries(contentsBelow(folder))),
    dying: async (changes, work) => {
      const mortal = new MortalFileSystem();
      const store = open(mortal);
      mortal.dieAfter(changes);
      await work(store).catch(() => {});
      const died = mortal.dead;
      mortal.dead = true;
      killOwners(folder);
      return died;
    },
  };
}

describe('eraseUser on files', () => {
  erasesUsers(async () => medium());
});

describe('eraseUser on encrypted files with a key store', () => {
  let keys: Map<string, Uint8Array>;
  erasesKeys(
    async () => medium((keys = new Map())),
    () => keys,
  );
});

describe('eraseUser', () => {
  it('without the key counts the records that it removes', async () => {
    const folder = temporaryFolder();
    const open = (name: string) =>
      new FileSessionStore(folder, { encryption: envelope({ keys: localKeys(secret(name)) }) });
    const store = open('a');
    const createdAt = new Date().toISOString();
    await store.saveSnapshot('one', () => ({ sessionId: 'chat', createdAt, status: 'completed' }), {
      session: { ownerId: 'ada' },
    });
    for (const key of ['k', 'l']) await store.writeRecord({ sessionId: 'chat', kind: 'k', key, value: 1 });
    await store.close();
    const keyless = open('b');
    expect(await eraseUser(keyless, { userId: 'ada' })).toMatchObject({ sessions: 1, snapshots: 1, records: 2 });
    await keyless.close();
    expect(JSON.stringify(contentsBelow(folder))).not.toContain('chat');
  });

  it('with a memory whose key could not be removed removes it the next time', async () => {
    const folder = temporaryFolder();
    expect(await eraseTwice((encryption) => new FileMemoryStore(folder, { encryption }))).toEqual([]);
    expect(JSON.stringify(contentsBelow(folder))).not.toMatch(/lovelace/i);
  });

  it('without the key of the memories removes them', async () => {
    const folder = temporaryFolder();
    const open = (name: string) => {
      const encryption = envelope({ keys: localKeys(secret(name)) });
      const extract = () => {
        throw new Error('down');
      };
      return memoryManager(genkit(), { store: new FileMemoryStore(folder, { encryption }), extract });
    };
    const [memory, keyless] = [open('a'), open('b')];
    const scope = memory.scopeFor('user', { context: { auth: { uid: 'lovelace' } } });
    await memory.create({ scope, memory: 'Lovelace lives in Paris.' });
    await memory.ingest({
      scope,
      source: { id: 'chat' },
      messages: [{ role: 'user', content: [{ text: 'Hi.' }] }],
      wait: true,
    });
    expect(await memory.jobs.list({ scope })).toHaveLength(1);
    await expect(keyless.list({ scope })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await eraseUser(new InMemorySessionStore(), { userId: 'lovelace', memory: keyless });
    expect(await memory.list({ scope })).toEqual({ items: [] });
    expect(JSON.stringify(contentsBelow(folder))).not.toMatch(/lovelace/i);
    await Promise.all([memory.close(), keyless.close()]);
  });

  it('and exportUser list the scopes of memories as rarely as they can: each may be a billed read', async () => {
    const store = new InMemorySessionStore();
    const memory = memoryManager(genkit(), {
      store: new InMemoryMemoryStore(),
      extract: () => [],
      app: true,
      worker: false,
    });
    const { turn } = agentOn(store);
    await turn('ada', 'hello', { sessionId: 'chat' });
    const context = { auth: { uid: 'ada' } };
    const app = memory.scopeFor('app', { context });
    for (const id of ['chat', 'other']) {
      const messages = [{ role: 'user' as const, content: [{ text: 'Hi.' }] }];
      await memory.ingest({ scope: app, source: { id }, messages });
    }
    const session = memory.scopeFor('session', { context, sessionId: 'chat' });
    await memory.create({ scope: session, memory: 'The user says hello.' });
    const lists = vi.spyOn(memory, 'listScopes');
    const kinds = (await collect(exportUser(store, { userId: 'ada', memory }))).map((line) => JSON.parse(line).kind);
    expect([lists.mock.calls.length, kinds.filter((kind) => kind === 'memory').length > 1]).toEqual([1, true]);
    expect(await eraseUser(store, { userId: 'ada', memory })).toMatchObject({ sessions: 1, memories: 1 });
    expect(lists).toHaveBeenCalledTimes(1 + 3);
    expect((await memory.jobs.list()).map(({ sourceId }) => sourceId)).toEqual(['other']);
    await memory.close();
  });

  it('on a store in memory: a running turn restores nothing', async () => {
    const store = new InMemorySessionStore();
    let end: () => void = () => {};
    let begun: () => void = () => {};
    const isRunning = new Promise<void>((resolve) => (begun = resolve));
    const { turn } = agentOn(store, () => {
      begun();
      return new Promise((resolve) => (end = resolve));
    });
    const running = turn('ada', 'hello', { sessionId: 'new' });
    await isRunning;
    expect(await eraseUser(store, { userId: 'ada' })).toMatchObject({ sessions: 0, scopes: 0 });
    end();
    const { output } = await running;
    expect(output.error).toMatchObject({ status: 'ABORTED' });
    expect((await store.listSessions()).items).toEqual([]);
  });

  it('and exportUser refuse a store that can’t find a user’s data, and calls that name no user', async () => {
    const store = { getSnapshot: async () => undefined, saveSnapshot: async () => null } as never;
    await expect(eraseUser(store, { userId: 'ada' })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await expect(exportUser(store, { userId: 'ada' }).next()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    const own = new InMemorySessionStore();
    for (const options of [{}, { userId: ' ' }, { userId: 'ada', user: 'ada' }] as never[]) {
      await expect(eraseUser(own, options)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
      await expect(exportUser(own, options).next()).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    }
  });
});
