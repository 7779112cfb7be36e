/** Sessions of agents: the model's input, background runs, and new turns from a snapshot. */
import { defineAgent, genkit, InMemorySessionStore, type AgentConfig, type SessionSnapshotInput } from 'genkitx-agents';
import { contextWindow, lastTurns, summarize } from 'genkitx-agents/context';
import { InMemoryMemoryStore, memoryManager } from 'genkitx-agents/memory';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { SeenView } from '../../src/inspector/api.ts';
import { deferred } from '../agent/support/helpers.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { open, type Visitor } from './support/open.ts';
import { message, turn } from './support/sessions.ts';

let ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(ends.map((end) => end()));
  ends = [];
});

async function setUp(config: Partial<AgentConfig> = {}) {
  const ai = genkit();
  const scripted = scriptedModel(ai, { otherwise: ({ index }) => `answer ${index + 1}` });
  const store = new InMemorySessionStore();
  const agent = defineAgent(ai, { name: 'support', model: scripted.name, store, ...config });
  const { visitor, close } = await open({ store, agents: [agent] });
  ends.push(close);
  return { agent, scripted, store, visitor };
}

const textsOf = (messages: readonly { content: readonly { text?: string }[] }[]) =>
  messages.map(({ content }) => content.map(({ text }) => text).join(''));

/** The sent messages of a turn that the page shows. */
async function sentIn(visitor: Visitor, snapshotId: string): Promise<{ seen: SeenView; texts: string[] }> {
  const seen = await visitor.get('seen', { snapshotId });
  const { messages } = await visitor.get('snapshot', { snapshotId });
  const sent = seen.ranges.filter(({ as }) => as === 'sent' || as === 'turn');
  return { seen, texts: textsOf(sent.flatMap(({ from, to }) => messages.slice(from, to))) };
}

describe('the input of the model', () => {
  it('of a turn is the sent messages, without the dropped ones', async () => {
    const { agent, scripted, visitor } = await setUp({
      context: contextWindow({ history: [lastTurns(2, { step: 1 })] }),
    });
    const chat = agent.chat();
    for (let i = 1; i <= 7; i++) await chat.send(`question ${i}`);
    const { seen, texts } = await sentIn(visitor, chat.snapshotId!);
    expect(seen.ranges).toEqual([
      { from: 0, to: 8, as: 'dropped' },
      { from: 8, to: 12, as: 'sent' },
      { from: 12, to: 14, as: 'turn' },
    ]);
    // The reply belongs to the turn, and was not sent.
    expect(texts.slice(0, -1)).toEqual(textsOf(scripted.requests.at(-1)!.messages));
    expect(seen.report).toMatchObject({ calls: 1, sections: { history: { items: 4 } } });
    expect((await visitor.get('tree', { sessionId: chat.sessionId! })).nodes.at(-1)).toMatchObject({
      hasReport: true,
      status: 'completed',
    });
  });

  it('has the text of the current summary, and the range that it covers', async () => {
    const summarizer = async () => 'They talked about parcels.';
    const history = [summarize({ everyTurns: 2, overlapTurns: 0, summarizer }), lastTurns(2, { step: 1 })];
    const { agent, scripted, visitor } = await setUp({ context: contextWindow({ history }) });
    const chat = agent.chat();
    const isSummed = () => JSON.stringify(scripted.requests.at(-1)!.messages).includes('parcels');
    for (let i = 1; i <= 30 && !(i > 1 && isSummed()); i++) await chat.send(`question ${i}`);
    const { seen } = await sentIn(visitor, chat.snapshotId!);
    expect(seen.summary).toMatchObject({ text: 'They talked about parcels.', model: 'custom' });
    const { to } = seen.summary!;
    expect(to).toBeGreaterThan(0);
    expect(seen.ranges.some(({ from, as }) => from === 0 && as === 'covered')).toBe(true);
    expect(seen.ranges.at(-1)).toMatchObject({ as: 'turn' });
    for (const [i, { from }] of seen.ranges.entries()) expect(from).toBe(seen.ranges[i - 1]?.to ?? 0);
  });

  it('without a window is the whole conversation', async () => {
    const { agent, visitor } = await setUp();
    const chat = agent.chat();
    for (let i = 1; i <= 3; i++) await chat.send(`question ${i}`);
    const { seen, texts } = await sentIn(visitor, chat.snapshotId!);
    expect(seen).toEqual({
      ranges: [
        { from: 0, to: 4, as: 'sent' },
        { from: 4, to: 6, as: 'turn' },
      ],
    });
    expect(texts).toHaveLength(6);
  });
});

describe('runs', () => {
  it('are running, waiting, expired, handed over or given up, and can be aborted', async () => {
    const { agent, scripted, store, visitor } = await setUp({
      background: { heartbeatIntervalMs: 20, leaseMs: 60_000 },
    });
    const begun = deferred();
    scripted.reply(
      ({ abortSignal }) =>
        new Promise((_resolve, reject) => {
          begun.resolve();
          abortSignal.addEventListener('abort', () => reject(new Error('stopped')));
        }),
    );
    const task = await agent.chat({ sessionId: 'live' }).detach('work');
    await begun.promise;
    const dead = new Date(Date.now() - 3_600_000).toISOString();
    const run = { id: 'q2', agent: 'support', owner: 'w-1', generation: 2, leaseMs: 60_000 };
    const save = (id: string, session: string, more: Partial<SessionSnapshotInput> & object) =>
      store.saveSnapshot(id, () => turn(session, { status: 'pending', ...more }));
    await save('q1', 'queue', { heartbeatAt: new Date().toISOString(), backgroundRun: run } as object);
    await save('q2', 'queue', { parentId: 'q1', heartbeatAt: new Date().toISOString(), backgroundRun: run } as object);
    await save('e1', 'dead', { heartbeatAt: dead, backgroundRun: { ...run, id: 'e1' } } as object);
    const released = { heartbeatAt: new Date(0).toISOString(), backgroundRun: { ...run, id: 'h1', owner: '' } };
    await save('h1', 'handed over', released);
    const error = { status: 'ABORTED' as const, message: 'This run was given up.' };
    await save('g1', 'gone', { status: 'failed', error, backgroundRun: { ...run, id: 'g1' } } as object);
    await save('f1', 'failed in the foreground', { status: 'failed', error });
    await save('b1', 'branches', { status: 'completed' });
    await save('b2', 'branches', { parentId: 'b1', heartbeatAt: dead });
    await save('b3', 'branches', { status: 'completed', parentId: 'b1' });

    const { items, now } = await visitor.get('runs', {});
    expect(Date.parse(now)).toBeGreaterThan(0);
    const states = Object.fromEntries(items.map(({ snapshotId, state }) => [snapshotId, state]));
    expect(states).toEqual({
      [task.snapshotId]: 'running',
      q1: 'running',
      q2: 'waiting',
      e1: 'expired',
      h1: 'released',
      g1: 'given-up',
      b2: 'expired',
    });
    expect(items.find(({ snapshotId }) => snapshotId === 'q2')).toMatchObject(run);
    expect(items.find(({ snapshotId }) => snapshotId === 'g1')).toMatchObject({ error: 'This run was given up.' });
    expect((await visitor.get('tree', { sessionId: 'dead' })).nodes).toMatchObject([
      { status: 'expired', run: { owner: 'w-1' } },
    ]);

    expect(await visitor.post('abort', { snapshotId: task.snapshotId })).toEqual({ status: 'pending' });
    await vi.waitUntil(async () => (await agent.getSnapshot(task.snapshotId))?.status === 'aborted');
    expect(await visitor.post('abort', { snapshotId: task.snapshotId })).toEqual({ status: 'aborted' });
    expect(await visitor.post('abort', { snapshotId: 'nothing' })).toEqual({});
  });
});

describe('another try from a snapshot', () => {
  it('is a branch, with another message, of the user whose session it is', async () => {
    const { agent, visitor, store } = await setUp();
    const chat = agent.chat({ sessionId: 's' }, { context: { auth: { uid: 'ada' } } });
    await chat.send('one');
    const first = chat.snapshotId!;
    await chat.send('two');
    const forked = await visitor.post('fork', { agent: 'support', snapshotId: first, text: 'two, otherwise' });
    expect(forked).toMatchObject({ finishReason: 'stop' });
    const { nodes } = await visitor.get('tree', { sessionId: 's' });
    expect(nodes.filter(({ parentId }) => parentId === first)).toHaveLength(2);
    const diff = await visitor.get('diff', { from: chat.snapshotId!, to: forked.snapshotId! });
    expect(diff.messages.same).toBe(2);
    expect(textsOf(diff.messages.added)).toEqual(['two, otherwise', 'answer 3']);
    const { items } = await store.listSessions({ ownerId: 'ada' });
    expect(items).toMatchObject([{ sessionId: 's', leafCount: 2 }]);
    // Without a snapshot a session begins.
    const begun = await visitor.post('fork', { agent: 'support', text: 'new' });
    expect((await visitor.get('snapshot', { snapshotId: begun.snapshotId! })).messages).toHaveLength(2);
  });

  it('needs a message, except to run an aborted turn again', async () => {
    const { agent, scripted, store, visitor } = await setUp({ onAbort: 'keep' });
    const chat = agent.chat({ sessionId: 's' });
    await chat.send('one');
    const { snapshotId } = chat;
    for (const text of [undefined, '', ' \n']) {
      await expect(visitor.post('fork', { agent: 'support', snapshotId, text })).rejects.toThrow('text is missing');
      await expect(visitor.post('fork', { agent: 'support', text })).rejects.toThrow('text is missing');
    }
    expect(scripted.requests).toHaveLength(1);
    const messages = [message('two')];
    await store.saveSnapshot('stopped', () =>
      turn('s', { status: 'aborted', parentId: snapshotId!, state: { messages } }),
    );
    const again = await visitor.post('fork', { agent: 'support', snapshotId: 'stopped' });
    expect(again.finishReason).toBe('stop');
    expect(textsOf(scripted.requests.at(-1)!.messages)).toEqual(['two']);
  });

  it('runs as the owner of the session, with their memories', async () => {
    const ai = genkit();
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    const store = new InMemorySessionStore();
    const memory = memoryManager(ai, { store: new InMemoryMemoryStore(), extract: () => [] });
    const remembering = { name: 'support', model: scripted.name, store, memory: memory.attach({}) };
    const agent = defineAgent(ai, remembering);
    const context = { auth: { uid: 'ada' } };
    await memory.create({ scope: memory.scopeFor('user', { context }), memory: 'The user likes green tea.' });
    const chat = agent.chat({}, { context });
    await chat.send('Hello');
    const { visitor, close } = await open({ store, agents: [agent] });
    ends.push(close, () => memory.close());
    const { agent: author } = await visitor.get('snapshot', { snapshotId: chat.snapshotId! });
    expect(author).toBe('support');
    await visitor.post('fork', { agent: author!, snapshotId: chat.snapshotId!, text: 'Which tea do I like?' });
    expect(JSON.stringify(scripted.requests.at(-1)!.messages.at(-1))).toContain('green tea');
  });

  it('takes another model where the agent allows it, and says why not elsewhere', async () => {
    const { agent, visitor } = await setUp();
    const chat = agent.chat();
    await chat.send('one');
    const asked = { agent: 'support', snapshotId: chat.snapshotId!, text: 'again', model: 'other' };
    const refused = await visitor.post('fork', asked).then(
      ({ error }) => error?.message ?? '',
      (error: Error) => error.message,
    );
    expect(refused).toContain('turnOverrides');
    await expect(visitor.post('fork', { ...asked, agent: 'sales' })).rejects.toThrow('it has support');
    const open = await setUp({ turnOverrides: { models: true } });
    const chatted = open.agent.chat();
    await chatted.send('one');
    const forked = await open.visitor.post('fork', {
      ...asked,
      snapshotId: chatted.snapshotId!,
      model: open.scripted.name,
    });
    expect(forked.error).toBeUndefined();
  });
});
