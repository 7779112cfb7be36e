/** The support agent remembers its customers: with the offline model. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { genkit, InMemorySessionStore } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { InMemoryMemoryStore } from 'genkitx-agents/memory';
import { afterEach, expect, test, vi } from 'vitest';
import { customerMemory } from '../../samples/support/agent/customer-memory.ts';
import { defineAgents } from '../../samples/support/agent/define-agents.ts';
import { FileOrderBook } from '../../samples/support/agent/file-order-book.ts';
import type { ReportState } from '../../samples/support/agent/report-agent.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { offlineModel } from '../../samples/support/models/choose-model.ts';
import { findMemories } from '../../samples/support/models/offline-memories.ts';
import type { BegunSession, SessionList, SnapshotList } from '../../samples/support/server/api-types.ts';
import { startSample, type Sample } from '../browser/support/sample-process.ts';

const atEnd: (() => unknown)[] = [];

afterEach(async () => {
  for (const work of atEnd.splice(0).toReversed()) await work();
});

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'support-memory-'));
  atEnd.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const ANA = { context: { auth: { uid: 'ana', email: 'ana@example.com' } } };
const BEN = { context: { auth: { uid: 'ben', email: 'ben@example.com' } } };
const RECALL = 'What do you remember about me?';

/** @param model Default: the offline model, which learns after each turn. */
async function open(model = offlineModel(0)) {
  const ai = genkit({ plugins: model.plugins });
  const store = new InMemoryMemoryStore();
  const memory = customerMemory(ai, { store, model, redact: async (text) => text });
  atEnd.push(() => memory.close());
  const { support } = defineAgents(ai, {
    book: await FileOrderBook.open(await makeFolder()),
    model,
    memory,
    store: new InMemorySessionStore<SupportState>(),
    reports: new InMemorySessionStore<ReportState>(),
    stepMs: 0,
  });
  const recall = async (who = ANA) => (await support.chat({}, who).send(RECALL)).text;
  const kept = async () => {
    const { items } = await store.listScopes();
    const pages = await Promise.all(items.map((scope) => store.query(scope, { filter: { includeInvalid: true } })));
    return pages.flatMap((page) => page.items.map((found) => found.memory.text));
  };
  return { support, memory, recall, kept };
}

test('remembers a customer, says what and why, and forgets on request, in the same conversation too', async () => {
  const { support, memory, recall, kept } = await open();
  const chat = support.chat({}, ANA);
  expect((await chat.send('Remember that I prefer express delivery.')).text).toBe(
    'It will be remembered, unless a check keeps it back.',
  );
  await chat.send('I always pay by card. Where is order 1042?');
  await vi.waitFor(async () => expect((await recall()).match(/^- .*$/gm)).toHaveLength(2));
  const told = await recall();
  expect(told).toMatch(
    /- The customer says: "I prefer express delivery\." You asked me to remember it on \d{4}-\d\d-\d\d\./,
  );
  expect(told).toMatch(/- The customer says: "I always pay by card\." You said so in a conversation on /);
  expect(await recall(BEN)).toBe('I remember nothing of you.');

  expect((await chat.send('Forget that I always pay by card.')).text).toBe('It is forgotten.');
  expect((await chat.send('Forget my order.')).text).toContain(
    'The most similar ones:\n- The customer says: "I prefer',
  );
  await memory.settled();
  expect((await recall()).match(/^- .*$/gm)).toEqual([expect.stringContaining('express delivery')]);

  expect((await chat.send('Forget me')).text).toContain('I have forgotten all');
  await chat.send('Where is order 1042?');
  await memory.settled();
  expect(await recall()).toBe('I remember nothing of you.');
  expect(await kept()).toEqual([]);
});

test('forgets what was said in a conversation that was not learned from yet', async () => {
  const offline = offlineModel(0);
  // As with a language model: learned from every 5 turns.
  const { support, memory, recall, kept } = await open({ ...offline, memories: { extract: findMemories } });
  const monday = support.chat({}, ANA);
  await monday.send('I prefer oolong tea.');
  await monday.send('Where is order 1042?');
  const bens = support.chat({}, BEN);
  await bens.send('I prefer green tea.');

  const tuesday = support.chat({}, ANA);
  await tuesday.send('I love long mails.');
  expect((await tuesday.send('Forget me')).text).toContain('I have forgotten all');
  for (const chat of [monday, tuesday, bens]) {
    for (let turn = 0; turn < 4; turn++) await chat.send('Where is order 1042?');
  }
  await vi.waitFor(async () => expect(await kept()).toEqual(['The customer says: "I prefer green tea."']));
  await memory.settled();
  expect(await recall()).toBe('I remember nothing of you.');

  // What is said later is learned again.
  for (const said of ['I prefer black tea.', ...Array.from({ length: 4 }, () => 'Where is order 1042?')])
    await tuesday.send(said);
  await vi.waitFor(async () => expect(await recall()).toContain('black tea'));
  expect(await recall()).not.toMatch(/oolong|long mails|green/);
});

test('two customers of one data folder have memories and conversations of their own', async () => {
  const folder = await makeFolder();
  const start = async (customer: string): Promise<Sample> => {
    const sample = await startSample({ DATA_DIR: folder, CUSTOMER: customer });
    atEnd.push(() => sample.end('SIGKILL'));
    return sample;
  };
  const agentOf = ({ url }: Sample) => remoteAgent<SupportState>({ url: `${url}/api/support` });
  const get = async <T>({ url }: Sample, path: string) => (await (await fetch(url + path)).json()) as T;
  const recall = async (sample: Sample) => (await agentOf(sample).chat().send(RECALL)).text;

  const first = await start('ana@example.com');
  // As the page begins a conversation.
  const begun = await fetch(`${first.url}/api/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ sessionId: 'anas' }),
  });
  const { snapshotId } = (await begun.json()) as BegunSession;
  const chat = await agentOf(first).loadChat({ snapshotId });
  await chat.send('Remember that I prefer express delivery.');
  await chat.send('I always pay by card. Where is order 1042?');
  await vi.waitFor(async () => expect((await recall(first)).match(/^- .*$/gm)).toHaveLength(2), 5_000);
  expect(await first.end('SIGTERM')).toMatchObject({ code: 0 });

  const second = await start('ben@example.com');
  expect(await recall(second)).toBe('I remember nothing of you.');
  expect((await get<SessionList>(second, '/api/sessions')).items).toHaveLength(1);
  expect((await get<SnapshotList>(second, '/api/snapshots?sessionId=anas')).items).toEqual([]);
  const deleted = await fetch(`${second.url}/api/sessions?sessionId=anas`, { method: 'DELETE' });
  expect(await deleted.json()).toEqual({ snapshots: 0, shards: 0 });
  await expect(agentOf(second).loadChat({ sessionId: 'anas' })).rejects.toThrow();
  expect((await agentOf(second).chat().send('Forget me')).text).toContain('I have forgotten all');
  expect(await second.end('SIGTERM')).toMatchObject({ code: 0 });

  const third = await start('ana@example.com');
  expect(await recall(third)).toContain('express delivery');
  expect((await get<SnapshotList>(third, '/api/snapshots?sessionId=anas')).items).toHaveLength(3);
});

test('the offline rules keep what customers say about themselves, and no question or request', async () => {
  const kept = (text: string) =>
    findMemories({ messages: [{ role: 'user', content: [{ text }] }], positions: [0] } as never) as { text: string }[];
  for (const said of ['I live in Paris.', 'My dog is called Rex.', "I don't drink coffee.", 'I am allergic to nuts!'])
    expect(kept(`Hello!\n${said} Thanks.`)).toMatchObject([{ text: expect.stringContaining(said.slice(0, -1)) }]);
  const others = ['Do I like tea', 'what is my name', 'Where do I live?', 'Can you forget that my dog is called Rex.'];
  for (const said of [...others, 'Do not remember that I live in Paris.', 'I only want a refund.'])
    expect(kept(said)).toEqual([]);
});
