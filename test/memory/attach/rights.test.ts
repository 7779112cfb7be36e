/** A user's rights with an agent's memory: the exported data, and that erasure leaves no data on the medium. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineAgent, FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { FileMemoryStore, processMemoryJobs } from 'genkitx-agents/memory';
import { eraseUser, exportUser } from 'genkitx-agents/privacy';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { echoTexts } from '../pipeline/corroborate.ts';
import { ADA, agentWithMemory, BOB } from './support.ts';

const folders: string[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

/** The files of a folder that contain a text in their bytes or their names. A lock that is released in the meantime is ignored. */
async function filesWith(folder: string, text: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (path.includes(text) || (entry.isFile() && (await readFile(path).catch(() => Buffer.alloc(0))).includes(text)))
      found.push(path);
  }
  return found;
}

async function setUp(scope: 'user' | 'session') {
  const folder = await mkdtemp(join(tmpdir(), 'memory-rights-'));
  folders.push(folder);
  const memories = new FileMemoryStore(join(folder, 'memories'));
  const sessions = new FileSessionStore(join(folder, 'sessions'));
  const setting = agentWithMemory({
    memory: {
      model: undefined,
      extract: ({ messages }: { messages: readonly { content: { text?: string }[] }[] }) => [
        `It was said: ${messages[0]!.content[0]!.text}`,
      ],
      generate: { everyTurns: 1 },
      store: memories,
    },
    attach: { scope },
    store: sessions,
  });
  for (const [context, word] of [
    [ADA, 'zanzibar'],
    [BOB, 'timbuktu'],
  ] as const) {
    await setting.agent.chat({}, { context }).send(`I was in ${word}.`);
  }
  await vi.waitFor(() => expect(setting.reports.map(({ type }) => type)).toEqual(['committed', 'committed']));
  const close = async () => {
    await setting.memory.close();
    await memories.close();
    await sessions.close();
  };
  return { ...setting, folder, sessions, close };
}

describe.each(['user', 'session'] as const)('with memories of a %s', (scope) => {
  test('eraseUser leaves no byte of them, and those of others as they were', async () => {
    const { folder, memory, sessions, close } = await setUp(scope);
    expect((await filesWith(folder, 'zanzibar')).length).toBeGreaterThan(1);
    const receipt = await eraseUser(sessions, { userId: 'ada', memory });
    expect(receipt).toMatchObject({ sessions: 1, memories: 1 });
    expect(await eraseUser(sessions, { userId: 'ada', memory })).toMatchObject({ sessions: 0, memories: 0 });
    await close();
    expect(await filesWith(folder, 'zanzibar')).toEqual([]);
    expect((await filesWith(join(folder, 'memories'), 'timbuktu')).length).toBeGreaterThan(0);
  });

  test('exportUser has them, and none of others', async () => {
    const { memory, sessions, close } = await setUp(scope);
    const lines: string[] = [];
    for await (const line of exportUser(sessions, { userId: 'ada', memory })) lines.push(line);
    const remembered = lines
      .map((line) => JSON.parse(line) as { kind: string; line?: object })
      .filter(({ kind }) => kind === 'memory');
    expect(JSON.stringify(remembered)).toContain('It was said: I was in zanzibar.');
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ kind: 'end', sessions: 1, memories: remembered.length });
    expect(lines.join('')).not.toContain('timbuktu');
    await close();
  });
});

test('a store that agents share is listed once', async () => {
  const { ai, attached, memory, scope, sessions, said } = agentWithMemory();
  defineAgent(ai, { name: 'other', model: said.name, store: sessions, memory: attached });
  const list = vi.spyOn(sessions, 'listSessions');
  await memory.erase({ scope });
  expect(list).toHaveBeenCalledTimes(1);
  await processMemoryJobs(memory);
  expect(list).toHaveBeenCalledTimes(2);
});

describe.each(['one store', 'two store objects on one folder'])('two agents on %s', (on) => {
  async function setUpTwo(scope: 'user' | 'session') {
    const folder = await mkdtemp(join(tmpdir(), 'memory-rights-'));
    folders.push(folder);
    const sessions = [new FileSessionStore(folder), new FileSessionStore(folder)];
    const setting = agentWithMemory({
      memory: { model: undefined, extract: () => ['The user likes tea.'], generate: { everyTurns: 100 } },
      attach: { scope },
      store: sessions[0]!,
    });
    const { ai, attached, chat, memory, said } = setting;
    const store = sessions[on === 'one store' ? 0 : 1]!;
    defineAgent(ai, { name: 'other', model: said.name, store, memory: attached });
    const talk = chat();
    await talk.send('I like tea.');
    const sessionId = talk.sessionId!;
    const learn = async () => (await attached.endSession({ sessionId, context: ADA, wait: true })).status;
    expect(await learn()).toBe('committed');
    const close = () => Promise.all([memory.close(), ...sessions.map((one) => one.close())]);
    return { ...setting, store, talk, sessionId, learn, close };
  }

  test('erase marks the session as read', async () => {
    const { memory, scope, learn, close } = await setUpTwo('user');
    expect(await memory.erase({ scope })).toMatchObject({ memories: 1 });
    expect(await learn()).toBe('known');
    await close();
  });

  test('forgetSource removes what was learned from the session', async () => {
    const { memory, scope, sessionId, learn, close } = await setUpTwo('user');
    expect(await memory.forgetSource({ scope, source: sessionId })).toMatchObject({ removed: 1 });
    expect(await learn()).toBe('known');
    await close();
  });

  test('consent that is given again leaves out what was said in between', async () => {
    const { memory, scope, talk, learn, close } = await setUpTwo('user');
    await memory.consent.set(scope, 'off');
    await talk.send('I like rum.');
    await memory.consent.set(scope, 'on');
    expect(await memory.consent.get(scope)).toBe('on');
    expect(await learn()).toBe('known');
    await close();
  });

  test('eraseUser removes the memories of sessions', async () => {
    const { memory, store, close } = await setUpTwo('session');
    expect(await eraseUser(store, { userId: 'ada', memory })).toMatchObject({ sessions: 1, memories: 1 });
    await close();
  });
});

test('exportUser has, and eraseUser removes, what waits to be learned or approved for all users of an app, without that of others', async () => {
  const { memory, agent, sessions } = agentWithMemory({
    memory: {
      model: undefined,
      extract: ({ messages }) => [`It was said: ${messages[0]!.content[0]!.text}`],
      generate: { everyTurns: 1 },
      app: true,
      worker: false,
    },
    attach: { scope: ['app', 'user'] },
  });
  const app = memory.scopeFor('app', { context: {} });
  const talks = [
    [ADA, 'Zanzibar'],
    [BOB, 'Timbuktu'],
  ] as const;
  const waiting = async () =>
    JSON.stringify([await memory.jobs.list(), await memory.quarantine.list({ scope: app })]).match(
      /Zanzibar|Timbuktu/g,
    );
  const all = talks.map(([context, word]) => ({ talk: agent.chat({}, { context }), word }));
  for (const { talk, word } of all) await talk.send(`I was in ${word}.`);
  await memory.settled();
  await processMemoryJobs(memory);
  for (const { talk, word } of all) await talk.send(`I liked ${word}.`);
  await memory.settled();
  expect(await waiting()).toEqual(expect.arrayContaining(['Zanzibar', 'Timbuktu']));
  const exported: string[] = [];
  for await (const line of exportUser(sessions, { userId: 'ada', memory })) {
    const { kind, line: own } = JSON.parse(line) as { kind: string; line: { kind: string } };
    if (kind === 'memory') exported.push(`${own.kind}: ${/Zanzibar|Timbuktu/.exec(line)?.[0]}`);
  }
  expect(exported).toEqual(['job: Zanzibar', 'quarantine: Zanzibar']);
  await eraseUser(sessions, { userId: 'ada', memory });
  expect(new Set(await waiting())).toEqual(new Set(['Timbuktu']));
  await processMemoryJobs(memory);
  expect(new Set(await waiting())).toEqual(new Set(['Timbuktu']));
});

test('eraseUser removes what is enqueued for the app while it runs, and leaves the profile of the app', async () => {
  const { memory, memories, agent, sessions } = agentWithMemory({
    memory: { extract: () => [], generate: { everyTurns: 1 }, app: true, worker: false },
    attach: { scope: 'app' },
  });
  const profile = { op: 'note', kind: 'index:organized', key: 'profile', value: { opens: 'nine' } } as const;
  await memories.commit({ scope: 'app', appName: 'default' }, [profile]);
  const talk = agent.chat({}, { context: ADA });
  await talk.send('I was in Zanzibar.');
  await memory.settled();
  const deleteSession = sessions.deleteSession.bind(sessions);
  vi.spyOn(sessions, 'deleteSession').mockImplementationOnce(async (options) => {
    await talk.send('I was in Timbuktu.');
    await memory.settled();
    return deleteSession(options);
  });
  await eraseUser(sessions, { userId: 'ada', memory });
  expect(await memory.jobs.list()).toEqual([]);
  expect(await memory.profile({ scope: memory.scopeFor('app', { context: {} }) })).toEqual({ opens: 'nine' });
});

test('erase removes everything although a session can not be read, and says so', async () => {
  const { memory, memories, scope, sessions, chat } = agentWithMemory({
    memory: { model: undefined, extract: () => ['The user likes tea.'], generate: { everyTurns: 1 } },
  });
  const [first, second] = [chat(), chat()];
  for (const talk of [first, second]) await talk.send('I like tea.');
  await memory.settled();
  const getSnapshot = sessions.getSnapshot.bind(sessions);
  vi.spyOn(sessions, 'getSnapshot').mockImplementation(async (options) => {
    if ('snapshotId' in options && options.snapshotId === first.snapshotId) throw new Error('It is damaged.');
    return getSnapshot(options);
  });
  await expect(memory.erase({ scope })).rejects.toThrow('It is damaged.');
  expect((await memories.query({ scope: 'user', appName: 'default', userId: 'ada' })).items).toEqual([]);
  // The other session counts as read.
  expect(await memory.ingest({ scope, sessionId: second.sessionId!, wait: true })).toMatchObject({ status: 'known' });
});

test.each(['erase', 'forgetSource'] as const)('%s marks sessions of equal ids in two stores', async (call) => {
  const { ai, attached, memory, scope, said, chat } = agentWithMemory({
    memory: { model: undefined, extract: echoTexts, generate: { everyTurns: 100 } },
  });
  const store = new InMemorySessionStore();
  const other = defineAgent(ai, { name: 'other', model: said.name, store, memory: attached });
  const talk = chat();
  await talk.send('I like tea.');
  const sessionId = talk.sessionId!;
  for (const text of ['I like rum.', 'I like ale.']) await other.chat({ sessionId }, { context: ADA }).send(text);
  await (call === 'erase' ? memory.erase({ scope }) : memory.forgetSource({ scope, source: sessionId }));
  expect(await memory.backfill({ store, scopeOf: () => scope, context: ADA })).toMatchObject({
    sessions: 1,
    enqueued: 0,
  });
  expect(await attached.endSession({ sessionId, context: ADA, wait: true })).toMatchObject({ status: 'known' });
});

test('erase marks the sessions of a store as read although another one can not be listed, and says so', async () => {
  const { ai, attached, memory, scope, said, sessions } = agentWithMemory({
    memory: { model: undefined, extract: echoTexts, generate: { everyTurns: 100 } },
  });
  const store = new InMemorySessionStore();
  const other = defineAgent(ai, { name: 'other', model: said.name, store, memory: attached });
  const talk = other.chat({}, { context: ADA });
  await talk.send('I like rum.');
  vi.spyOn(sessions, 'listSessions').mockRejectedValue(new Error('It is down.'));
  await expect(memory.erase({ scope })).rejects.toThrow('It is down.');
  const ended = await attached.endSession({ sessionId: talk.sessionId!, context: ADA, wait: true });
  expect(ended).toMatchObject({ status: 'known' });
});

test('erase of an app reads no session that is learned into another scope', async () => {
  const { memory, sessions, chat } = agentWithMemory({ memory: { app: true } });
  await chat().send('I like tea.');
  const read = vi.spyOn(sessions, 'getSnapshot');
  await memory.erase({ scope: memory.scopeFor('app', { context: {} }) });
  expect(read).not.toHaveBeenCalled();
});

test('nothing is learned from a session that is erased while it waits for its idle time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { memories, memory, chat, sessions } = agentWithMemory({
    memory: { model: undefined, extract: 'verbatim', generate: { everyTurns: 100, onIdleMs: 1_000 } },
  });
  await chat().send('I was in zanzibar.');
  await eraseUser(sessions, { userId: 'ada', memory });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await memories.listScopes()).toEqual({ items: [] });
  expect((await memories.listJobs()).items).toEqual([]);
});

test.each(['endSession', 'ingest'])(
  'a session that is erased when it is about to be learned from by %s is not',
  async (by) => {
    const { memory, memories, scope, attached, sessions, chat } = agentWithMemory({
      memory: { model: undefined, extract: () => ['The user likes tea.'], generate: { everyTurns: 100 } },
    });
    const talk = chat();
    await talk.send('I like tea.');
    const notes = memories.notes.bind(memories);
    const first = vi.spyOn(memories, 'notes').mockImplementationOnce(async (...of) => {
      await eraseUser(sessions, { userId: 'ada', memory });
      return notes(...of);
    });
    const sessionId = talk.sessionId!;
    const ended =
      by === 'ingest'
        ? await memory.ingest({ scope, sessionId, wait: true })
        : await attached.endSession({ sessionId, context: ADA, wait: true });
    expect(first).toHaveBeenCalled();
    expect(ended).toEqual({ status: 'known', jobIds: [] });
    expect(await memory.jobs.list()).toEqual([]);
  },
);
