import { completedSnapshot, Workload } from '../../../bench/workload.ts';
import type { BaseSessionStore } from '../../../src/store/base-session-store.ts';
import type { Json } from '../../../src/json/value.ts';
import type { ScopeId, SessionSnapshotInput, SessionStore } from '../../../src/store/contract.ts';
import { genkit, InMemorySessionStore } from 'genkitx-agents';
import { memoryManager, type MemoryStore } from 'genkitx-agents/memory';
import { envelope, eraseUser, localKeys, type Encryption, type KeyStore } from 'genkitx-agents/privacy';
import { expect } from 'vitest';

/** A store under test. */
export type Store = BaseSessionStore<Record<string, Json>>;

/** The text that must not be on the medium. */
export const CANARY = 'xylophone-4111';

export const ADA: ScopeId = { scope: 'user', appName: 'shop', userId: 'ada' };

export function secret(name: string): string {
  return `a secret for tests, called ${name}`.padEnd(40, '.');
}

/** A separate encryption, as another process has; the first secret encrypts. */
export function encryptionWith(...names: string[]): Encryption {
  return envelope({ keys: localKeys(names.map(secret)) });
}

function stateOf(
  session: string,
  turn: number,
  isLarge: boolean,
): { messages: never[]; custom: Record<string, Json>; artifacts: never[] } {
  const message = (index: number): Json => ({
    role: index % 2 === 0 ? 'user' : 'model',
    content: [
      { text: `${CANARY} ${session} ${index} ${'filler '.repeat(60)}` },
      { toolRequest: { name: 'pay', ref: '1', input: { card: CANARY } } },
      { toolResponse: { name: 'pay', ref: '1', output: JSON.stringify({ [CANARY]: CANARY }) } },
    ],
  });
  return {
    messages: Array.from({ length: 12 * turn }, (_, index) => message(index)) as never[],
    custom: { [CANARY]: CANARY, turn, long: `${CANARY} `.repeat(isLarge ? 3000 : 3) },
    artifacts: [{ name: CANARY, parts: [{ text: CANARY }] }] as never[],
  };
}

/** Snapshots of every status with text in every field, session records, and records of a user and an app. */
export async function fillSession(store: Store, sessionId: string, turns = 6, isLarge = true): Promise<void> {
  for (let turn = 1; turn <= turns; turn++) {
    const parentId = turn > 1 ? `${sessionId}-${turn - 1}` : undefined;
    await store.saveSnapshot(
      `${sessionId}-${turn}`,
      () => ({
        sessionId,
        ...(parentId && { parentId }),
        createdAt: `2026-01-01T00:00:0${turn}.000Z`,
        status: turn === turns ? 'pending' : 'completed',
        usage: { inputTokens: 10, custom: { [CANARY]: 1 } },
        finishReason: CANARY as never,
        backgroundRun: { input: CANARY },
        resumption: { [CANARY]: [CANARY] },
        state: stateOf(sessionId, turn, isLarge),
      }),
      {
        session: { ownerId: 'ada', agent: 'support', title: CANARY },
        scopes: [{ id: ADA, change: (record) => ({ ...record, [`${CANARY}-${turn}`]: CANARY }) }],
      },
    );
  }
  const leaf = `${sessionId}-${turns}`;
  await store.saveSnapshot(leaf, (current) => ({
    ...current!,
    status: 'failed',
    error: { status: 'INTERNAL', message: CANARY, details: { [CANARY]: CANARY } },
  }));
  for (const key of ['first', 'second']) {
    await store.writeRecord({ sessionId, kind: 'summary', key, value: { text: CANARY, key } });
  }
}

/** A key store in memory; names in `keys` begin with those of the owners. */
export function keyStoreOf(keys: Map<string, Uint8Array>): KeyStore {
  return {
    write: async (owner, name, wrapped) => void keys.set(owner + name, wrapped),
    read: async (owner, name) => keys.get(owner + name),
    delete: async (owner) => {
      for (const name of keys.keys()) if (name.startsWith(owner)) keys.delete(name);
    },
  };
}

/** The key store of a process that may die: `beforeChange` throws after its death. */
export function mortalKeyStore(keyStore: KeyStore, beforeChange: () => void): KeyStore {
  return {
    read: async (owner, name) => keyStore.read(owner, name),
    write: async (owner, name, wrapped) => {
      beforeChange();
      return keyStore.write(owner, name, wrapped);
    },
    delete: async (owner) => {
      beforeChange();
      return keyStore.delete(owner);
    },
  };
}

/** A mutator that returns a completed snapshot. */
export function completed(
  snapshot: Omit<SessionSnapshotInput<Record<string, Json>>, 'createdAt'>,
): () => SessionSnapshotInput<Record<string, Json>> {
  return () => ({ createdAt: '2026-02-01T00:00:00.000Z', status: 'completed', ...snapshot });
}

/** A snapshot without a session. */
export async function saveWithoutSession(store: Store, snapshotId: string): Promise<void> {
  await store.saveSnapshot(
    snapshotId,
    completed({
      updatedAt: '2026-02-02T00:00:00.000Z',
      error: { status: 'INTERNAL', message: CANARY },
      state: { custom: { CANARY } },
    }),
  );
}

/** The standard workload of the benchmarks. */
export async function saveWorkload(store: SessionStore, turns: number): Promise<void> {
  const workload = new Workload();
  let parentId: string | undefined;
  for (let turn = 1; turn <= turns; turn++) {
    const next = completedSnapshot(workload.next(), parentId);
    parentId = (await store.saveSnapshot(`turn-${turn}`, () => next))!;
  }
}

/** Writes the content of `test/golden/file-encrypted-2` and `test/golden/firestore-encrypted-2.json`, under the key `golden`. Never change them. */
export async function fillGolden(store: Store): Promise<void> {
  await fillSession(store, 'chat', 5, false);
  await saveWithoutSession(store, 'alone');
}

/** All readable data that {@link fillGolden} saved. */
export async function readGolden(store: Store): Promise<Record<string, unknown>> {
  const { items } = await store.listSessions();
  const alone = await store.getSnapshot({ snapshotId: 'alone' });
  return { ...(await readSession(store, 'chat')), items, alone, ada: await store.readScopes({ scopes: [ADA] }) };
}

/**
 * All readable data of a session, or the error of reading it.
 *
 * @param ids Its snapshots. Default: those that are listed.
 */
export async function readSession(
  store: Store,
  sessionId: string,
  ids?: readonly string[],
): Promise<Record<string, unknown>> {
  const read = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error: unknown) => error);
  const all: Record<string, unknown> = { leaf: await read(store.getSnapshot({ sessionId })) };
  const listed = ids ?? (await store.listSnapshots({ sessionId })).items.map((item) => item.snapshotId);
  for (const snapshotId of listed) {
    all[snapshotId] = await read(store.getSnapshot({ snapshotId }));
    all[`metadata of ${snapshotId}`] = await read(store.getSnapshotMetadata({ snapshotId }));
  }
  const records = store.readRecords({ sessionId });
  all['records'] = await read(records.then((found) => found.map((record) => ({ ...record, revision: 'any' }))));
  return all;
}

/** `eraseUser` with a memory, whose key can't be removed the first time. Returns the keys that are left after the second time. */
export async function eraseTwice(openMemories: (encryption: Encryption) => MemoryStore): Promise<string[]> {
  const keys = new Map<string, Uint8Array>();
  let isDown = true;
  const keyStore = mortalKeyStore(keyStoreOf(keys), () => {
    if (isDown && keys.size > 0) throw new Error('The key store is down.');
  });
  const store = openMemories(envelope({ keys: localKeys(secret('a')), keyStore }));
  const memory = memoryManager(genkit(), { store, extract: () => [] });
  const scope = memory.scopeFor('user', { context: { auth: { uid: 'lovelace' } } });
  await memory.create({ scope, memory: 'Lovelace lives in Paris.' });
  const erase = () => eraseUser(new InMemorySessionStore(), { userId: 'lovelace', memory });
  await expect(erase()).rejects.toThrow('The key store is down.');
  expect(keys.size).toBe(1);
  isDown = false;
  await erase();
  expect(await memory.listScopes({ filter: () => true, context: undefined })).toEqual([]);
  await memory.close();
  return [...keys.keys()];
}

/** Memories that continue once their keys are gone from the key store, and then are erased by another process. */
export async function expectNoMemoriesWithoutKeys(
  openMemories: (encryption: Encryption) => MemoryStore,
): Promise<void> {
  const keys = new Map<string, Uint8Array>();
  const open = () => {
    const store = openMemories(envelope({ keys: localKeys(secret('a')), keyStore: keyStoreOf(keys) }));
    const memory = memoryManager(genkit(), { store, extract: () => [] });
    const scope = memory.scopeFor('user', { context: { auth: { uid: 'lovelace' } } });
    return {
      close: () => memory.close(),
      erase: () => memory.erase({ scope }),
      create: (text: string) => memory.create({ scope, memory: text }),
      texts: async () => (await memory.list({ scope })).items.map(({ text }) => text).toSorted(),
    };
  };
  const [one, two] = [open(), open()];
  await one.create('Lovelace lives in Paris.');
  expect(await two.texts()).toEqual(['Lovelace lives in Paris.']);
  keys.clear();
  for (const { create } of [one, two, one, two]) {
    await expect(create('Lovelace likes tea.')).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  }
  await one.erase();
  for (const [at, { create }] of [two, one].entries()) await create(`Lovelace likes horse ${at}.`);
  const three = open();
  expect(await three.texts()).toEqual(['Lovelace likes horse 0.', 'Lovelace likes horse 1.']);
  for (const { close } of [one, two, three]) await close();
}
