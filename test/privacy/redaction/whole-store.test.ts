/** All functions of a store work through a redacting one, and an erased session is not restored. */
import { existsSync } from 'node:fs';
import { z, type Part } from 'genkit';
import { genkit } from 'genkit/beta';
import { defineAgent, FileSessionStore, InMemorySessionStore, type SessionStore } from 'genkitx-agents';
import {
  applyRetention,
  eraseUser,
  exportUser,
  holdSession,
  redacting,
  type ArchivedSession,
  type PrivacyRule,
} from 'genkitx-agents/privacy';
import { describe, expect, it, test, vi } from 'vitest';
import { call, user } from '../../agent/support/helpers.ts';
import { storeAround } from '../../session/store-around.ts';
import { contentsBelow, killOwners } from '../../stores/file/support/folders.ts';
import { MortalFileSystem } from '../../stores/file/support/mortal.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { erasesUsers, type FullStore } from '../rights/erase-suite.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { openStore, optionsWith, Plants, SECRET } from './support.ts';
import { collect } from '../../support/collect.ts';

/** Finds the text of the erasure tests, except in ids. */
const canaries: PrivacyRule = {
  name: 'canaries',
  maxLength: 11,
  find: (text, { label }) =>
    label === undefined
      ? []
      : [...text.matchAll(/canary-7d1f/g)].map(({ index }) => ({ kind: 'canary', start: index, end: index + 11 })),
};

describe('eraseUser over a redacting store', () => {
  erasesUsers(async () => {
    const folder = temporaryFolder();
    const open = (fileSystem?: MortalFileSystem['fileSystem']): FullStore => {
      const Store = FileSessionStore as new (...args: unknown[]) => FullStore;
      return redacting(new Store(folder, { durability: 'fast' }, fileSystem), { rules: [canaries], secret: SECRET });
    };
    return {
      open,
      look: async () => {
        const entries = Object.entries(existsSync(folder) ? contentsBelow(folder) : {});
        // A turn that is refused in another user's session leaves its numbers there, as hashes.
        const isNumbers = (name: string, bytes: string) =>
          name.includes('.records/eve') && !bytes.includes('canary-7d1f');
        return new Map(entries.filter(([name, bytes]) => !isNumbers(name, bytes)));
      },
      dying: async (changes, work) => {
        const mortal = new MortalFileSystem();
        const store = open(mortal.fileSystem);
        mortal.dieAfter(changes);
        await work(store).catch(() => {});
        const died = mortal.dead;
        mortal.dead = true;
        killOwners(folder);
        return died;
      },
    };
  });
});

const completed = (sessionId: string, text: string, more: object = {}) => ({
  sessionId,
  createdAt: new Date().toISOString(),
  status: 'completed' as const,
  state: { messages: [user(text)] },
  ...more,
});

const everything = async (folder: string): Promise<string[]> =>
  Object.keys(contentsBelow(folder)).filter((name) => !name.startsWith('.locks'));

describe('an erased session is not restored', () => {
  it.each([
    ['beside a save that continues it', { ifSnapshot: 'a' }, undefined],
    ['beside a save that rewrites its snapshot', {}, 'a'],
  ])('%s', async (_, options, snapshotId) => {
    const folder = temporaryFolder();
    const inner = new FileSessionStore(folder);
    // The session is deleted between the search and the record of its findings.
    let isArmed = false;
    const gone = storeAround(inner, async (name, args, make) => {
      if (isArmed && name === 'writeRecord') {
        isArmed = false;
        await inner.deleteSession({ sessionId: 's' });
      }
      return make();
    });
    const store = redacting(gone, optionsWith());
    await store.saveSnapshot('a', () => completed('s', 'hello', { status: 'pending' }));
    isArmed = true;
    const saved = store.saveSnapshot(
      snapshotId,
      (current) => completed('s', 'plant-0001-x', { status: 'pending', ...(!current && { parentId: 'a' }) }),
      options,
    );
    await expect(saved).rejects.toMatchObject({ status: 'ABORTED' });
    expect(await inner.readRecords({ sessionId: 's' })).toEqual([]);
    expect((await inner.listSessions()).items).toEqual([]);
    await store.close();
  });

  it('by a record whose snapshot no longer exists', async () => {
    const inner = new InMemorySessionStore();
    const store = redacting(inner, optionsWith());
    await store.saveSnapshot('a', () => completed('s', 'hello'));
    await store.deleteSession({ sessionId: 's' });
    const written = store.writeRecord({ sessionId: 's', kind: 'k', key: 'k', value: 'plant-0001-x', ifSnapshot: 'a' });
    await expect(written).rejects.toMatchObject({ status: 'ABORTED' });
    expect(await inner.readRecords({ sessionId: 's' })).toEqual([]);
  });

  it.each([false, true])('by the model’s request of a turn (in its first turn: %s)', async (isFirst) => {
    const inner = new InMemorySessionStore();
    const store = redacting(inner, optionsWith({ beforeModel: true }));
    const ai = genkit({});
    ai.defineTool({ name: 'erase', description: 'Erases.', inputSchema: z.any() }, async () => {
      await eraseUser(store, { userId: 'ada' });
      return 'plant-0002-x';
    });
    const erase: Part = { toolRequest: { name: 'erase', ref: '1', input: {} } };
    const scripted = scriptedModel(ai, { replies: isFirst ? [[erase]] : ['hello', [erase]], otherwise: 'done' });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store, tools: ['erase'], userId: () => 'ada' });
    if (!isFirst) await call(agent, ['plant-0001-x'], { sessionId: 's' });
    const { output } = await call(agent, ['plant-0001-x'], { sessionId: 's' });
    expect(output.finishReason).toBe('failed');
    expect(output.error).toMatchObject({ status: 'ABORTED' });
    expect(await inner.readRecords({ sessionId: 's' })).toEqual([]);
    expect((await inner.listSessions()).items).toEqual([]);
  });
});

it('a session that begins again after another process deleted it has new numbers', async () => {
  const folder = temporaryFolder();
  const [a, b] = [openStore(folder), openStore(folder)];
  await a.saveSnapshot('1', () => completed('s', 'plant-0001-x'));
  await b.deleteSession({ sessionId: 's' });
  await a.saveSnapshot('2', () => completed('s', 'plant-0002-x'));
  await a.saveSnapshot('3', () => completed('s', 'plant-0001-x', { parentId: '2' }));
  const texts = await Promise.all(['2', '3'].map(async (snapshotId) => (await b.getSnapshot({ snapshotId }))?.state));
  expect(texts.map((state) => state?.messages?.[0]?.content[0]?.text)).toEqual(['[PLANT_1]', '[PLANT_2]']);
});

describe('passes on', () => {
  test('the expectations of a save and of a deletion', async () => {
    const store = openStore(temporaryFolder());
    await store.saveSnapshot('a', () => completed('s', 'plant-0001-x'));
    const next = () => completed('s', 'plant-0002-x', { parentId: 'a' });
    const conflict = { name: 'SessionConflictError' };
    await expect(store.saveSnapshot('b', next, { expectedLeafId: null })).rejects.toMatchObject(conflict);
    await expect(store.saveSnapshot('b', next, { ifSnapshot: 'x' })).rejects.toMatchObject({ status: 'ABORTED' });
    await store.saveSnapshot('b', next, { expectedLeafId: 'a', ifSnapshot: 'a' });
    await expect(store.deleteSession({ sessionId: 's', expectedLeafId: 'a' })).rejects.toMatchObject(conflict);
    expect(await store.prune({ maxChainLength: 1 }, { sessionId: 'other' })).toMatchObject({ snapshots: 0 });
    expect(await store.prune({ maxChainLength: 1 }, { sessionId: 's' })).toMatchObject({ snapshots: 1 });
    expect(await store.deleteSession({ sessionId: 's', expectedLeafId: 'b' })).toMatchObject({ snapshots: 1 });
  });

  test('deleteSessions where the store has it, and only there', async () => {
    const inner = new InMemorySessionStore();
    expect(redacting(inner, optionsWith())).toHaveProperty('deleteSessions', undefined);
    const deleteSessions = vi.fn(async () => ({ sessions: 1, snapshots: 2, shards: 3, records: 4 }));
    const store = redacting(Object.assign(inner, { deleteSessions }), optionsWith());
    expect(await store.deleteSessions?.({ sessionIds: ['s'] })).toMatchObject({ records: 4 });
    expect(deleteSessions).toHaveBeenCalledExactlyOnceWith({ sessionIds: ['s'] });
  });

  test('details, scopes and watchers', async () => {
    const store = openStore(temporaryFolder());
    const id = { scope: 'user', appName: 'shop', userId: 'ada' } as const;
    const seen: (string | undefined)[] = [];
    const end = store.onSnapshotStateChange('a', (snapshot) =>
      seen.push(`${snapshot.status} ${snapshot.state?.messages?.[0]?.content[0]?.text}`),
    );
    await store.saveSnapshot('a', () => completed('s', 'plant-0001-x', { status: 'pending' }), {
      session: { ownerId: 'ada', agent: 'shop', title: 'Of plant-0001-x' },
      scopes: [{ id, change: (record) => ({ ...record, said: 'plant-0001-x' }) }],
    });
    // A reader of a running snapshot gets the value.
    await vi.waitUntil(() => seen.length > 0);
    await store.saveSnapshot('a', (current) => ({ ...current!, status: 'completed' }));
    await vi.waitUntil(() => seen.length > 1);
    end();
    expect(seen).toEqual(['pending plant-0001-x', 'completed [PLANT_1]']);
    const { items } = await store.listSessions({ ownerId: 'ada' });
    expect(items).toMatchObject([{ sessionId: 's', agent: 'shop', title: 'Of [PLANT_1]' }]);
    expect((await store.listScopes()).items).toEqual([id]);
    expect(await store.readScopes({ scopes: [id] })).toEqual([{ said: expect.stringMatching(/^\[PLANT_\d{5}\]$/) }]);
    expect(await store.deleteScope({ scope: id })).toBe(true);
  });
});

test('retention archives the stored data, and leaves no number or seal', async () => {
  const folder = temporaryFolder();
  const plants = new Plants();
  const store = openStore(folder);
  const createdAt = '2020-01-01T00:00:00.000Z';
  const pay = { role: 'model', content: [{ toolRequest: { name: 'pay', input: { to: plants.text() } } }] } as const;
  for (const sessionId of ['old', 'held']) {
    await (store as SessionStore).saveSnapshot(undefined, () => ({
      ...completed(sessionId, plants.values[0]!, { createdAt, updatedAt: createdAt }),
      state: { messages: [user(plants.values[0]!), { ...pay, content: [...pay.content] }] },
    }));
  }
  await holdSession(store, { sessionId: 'held', reason: `wrote ${plants.values[0]}` });
  const archived: string[] = [];
  const archive = async (session: ArchivedSession) => {
    archived.push(...(await collect(session.lines())));
  };
  const result = await applyRetention(store, { idleMs: 1000 }, { archive });
  expect(result).toMatchObject({ sessions: 1, held: 1, failed: 0 });
  expect(archived.join('')).toContain('[PLANT_1]');
  // The tool request waits, so its archive has the values that a reader gets.
  expect(archived.filter((line) => line.includes(plants.values[0]!))).toHaveLength(1);
  expect((await everything(folder)).filter((name) => name.includes('old'))).toEqual([]);
  expect(await collect(exportUser(store, { userId: 'ada' }))).toHaveLength(1);
});
