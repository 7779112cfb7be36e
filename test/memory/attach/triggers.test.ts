/** Learning from the sessions of an agent: in the background, after the turn was saved. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { defineAgent, defineCustomAgent, InMemorySessionStore } from 'genkitx-agents';
import { processMemoryJobs } from 'genkitx-agents/memory';
import { piiRules, redacting } from 'genkitx-agents/privacy';
import { GenkitError } from 'genkit';
import { logger } from 'genkit/logging';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { setUp, until } from '../pipeline/support.ts';
import { ADA, agentWithMemory, BOB, textsOf, user } from './support.ts';

afterEach(() => {
  vi.useRealTimers();
});

const MINUTE = 60_000;

/** Moves the clock of the session stores, without advancing timers. */
function pass(ms: number): void {
  const now = Date.now() + ms;
  if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(now);
}

/** Extracts each sentence with `like`. */
const likes = ({ messages }: { messages: readonly { content: { text?: string }[] }[] }) =>
  messages.flatMap(({ content }) =>
    content.flatMap(({ text = '' }) => (text.includes('like') ? [`The user said: ${text}`] : [])),
  );

function learning(generate: object, extra: object = {}) {
  return agentWithMemory({ memory: { model: undefined, extract: likes, generate, ...extra } });
}

describe('an agent learns', () => {
  test('every N turns, from what is new', async () => {
    const { memory, memories, chat, reports } = learning({ everyTurns: 2, onIdleMs: false });
    const talk = chat();
    await talk.send('I like tea.');
    await memory.settled();
    expect(await textsOf(memories)).toEqual([]);
    await talk.send('I like rum.');
    await vi.waitFor(async () => expect(await textsOf(memories)).toHaveLength(2));
    await talk.send('I like ale.');
    await talk.send('I like gin.');
    await vi.waitFor(async () => expect(await textsOf(memories)).toHaveLength(4));
    expect(reports.map(({ type }) => type)).toEqual(['committed', 'committed']);
    const id = { scope: 'user', appName: 'default', userId: 'ada' } as const;
    const { items } = await memories.query(id);
    expect(items.map(({ memory: { sources } }) => sources[0]!.sessionId)).toEqual(
      Array.from({ length: 4 }, () => talk.sessionId),
    );
  });

  test.each([1, 2, 3])('every %i turns of a session that its agent trims', async (everyTurns) => {
    const sizes: number[] = [];
    const extract = ({ messages }: { messages: readonly unknown[] }) => {
      sizes.push(messages.length);
      return [];
    };
    const { ai, memory, attached, said } = learning({ everyTurns, onIdleMs: false }, { extract });
    const store = new InMemorySessionStore();
    const trimming = defineCustomAgent(ai, { name: 'trimming', store, memory: attached }, async (sess) => {
      await sess.run(async () => {
        const { message } = await ai.generate({ model: said.name, messages: [...sess.getMessages()] });
        if (message) sess.addMessages([message.toJSON()]);
        sess.setMessages(sess.getMessages().slice(-2));
      });
      return {};
    });
    const talk = trimming.chat({}, { context: ADA });
    for (let turn = 1; turn <= 6; turn++) {
      await talk.send(`I like tea ${turn}.`);
      await memory.settled();
      expect(sizes).toHaveLength(Math.floor(turn / everyTurns));
    }
  });

  test('from a turn in the background once it has ended, as its store keeps it', async () => {
    let answer!: (text: string) => void;
    const store = redacting(new InMemorySessionStore(), { rules: piiRules(), secret: 'x'.repeat(40) });
    const { memory, memories, scope, attached, chat } = agentWithMemory({
      store,
      memory: { model: undefined, extract: likes, generate: { everyTurns: 10, onIdleMs: false } },
      replies: ['Hello.', () => new Promise<string>((resolve) => (answer = resolve))],
    });
    const talk = chat();
    await talk.send('I like tea.');
    const running = await talk.detach('I like mails to ann@example.com.');
    await vi.waitFor(() => expect(answer).toBeDefined());
    const { sessionId } = talk;
    expect(await attached.endSession({ sessionId: sessionId!, context: ADA, wait: true })).toMatchObject({
      status: 'committed',
    });
    expect(await memory.ingest({ scope, sessionId: sessionId! })).toMatchObject({ status: 'known' });
    expect(await memory.backfill({ store, scopeOf: () => scope })).toMatchObject({
      sessions: 1,
      enqueued: 0,
      failed: 0,
    });
    await memory.settled();
    expect(await textsOf(memories)).toEqual(['The user said: I like tea.']);
    answer('Fine.');
    await running.wait();
    await attached.endSession({ sessionId: sessionId!, context: ADA, wait: true });
    expect(await textsOf(memories)).toEqual(['The user said: I like mails to [EMAIL].', 'The user said: I like tea.']);
  });

  test('from an edited message with everyTurns: 1', async () => {
    const { memory, memories, agent, chat } = learning({ everyTurns: 1, onIdleMs: false });
    const talk = chat();
    const first = await talk.send('I like tea.');
    await talk.send('I like rum.');
    await agent.chat({ snapshotId: first.snapshotId! }, { context: ADA }).send('Sorry, I like ale.');
    await memory.settled();
    expect(await textsOf(memories)).toContain('The user said: Sorry, I like ale.');
  });

  test('every N turns, also if each begins at the same earlier snapshot', async () => {
    const { memory, memories, agent, chat } = learning({ everyTurns: 3, onIdleMs: false });
    const { snapshotId } = await chat().send('I like tea.');
    for (let i = 1; i <= 6; i++) {
      await agent.chat({ snapshotId: snapshotId! }, { context: ADA }).send(`I like rum ${i}.`);
      await memory.settled();
    }
    // The first turn also counts, and the message of each learned branch is the last of three turns.
    expect(await textsOf(memories)).toEqual(
      ['tea', 'rum 2', 'rum 5'].map((it) => `The user said: I like ${it}.`).toSorted(),
    );
  });

  test.each([1, 2])('from turn %i that was interrupted and then resumed, once it has ended', async (everyTurns) => {
    const { ai, memory, memories, chat, said, reports } = agentWithMemory({
      memory: { model: undefined, extract: likes, generate: { everyTurns, onIdleMs: false } },
      tools: ['confirm'],
    });
    ai.defineTool({ name: 'confirm', description: 'Asks.' }, async (_, { interrupt, resumed }) =>
      resumed ? 'yes' : interrupt(),
    );
    const talk = chat();
    for (let turn = 1; turn < everyTurns; turn++) await talk.send('Hello.');
    said.reply([{ toolRequest: { name: 'confirm', ref: '1', input: {} } }]);
    await talk.send('I like tea.');
    await memory.settled();
    expect(await textsOf(memories)).toEqual([]);
    await talk.resume({ restart: talk.interrupts.map((each) => each.restart()) });
    await memory.settled();
    expect(await textsOf(memories)).toEqual(['The user said: I like tea.']);
    // The interruption and its resumption are one turn.
    expect(reports.map(({ type }) => type)).toEqual(['committed']);
    await talk.send('I like rum.');
    await memory.settled();
    expect(await textsOf(memories)).toHaveLength(everyTurns === 1 ? 2 : 1);
  });

  test('N turns after it learned when no turn came for a while, of a session that does not grow', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { memory, memories, agent, chat } = learning({ everyTurns: 4, onIdleMs: MINUTE });
    const { snapshotId } = await chat().send('I like tea.');
    const again = (text: string) => agent.chat({ snapshotId: snapshotId! }, { context: ADA }).send(text);
    await again('I like rum.');
    await vi.advanceTimersByTimeAsync(MINUTE);
    await memory.settled();
    expect(await textsOf(memories)).toHaveLength(2);
    for (let i = 1; i <= 4; i++) {
      await again(`I like ale ${i}.`);
      await memory.settled();
      expect(await textsOf(memories)).toHaveLength(i < 4 ? 2 : 3);
    }
  });

  test('at a multiple of N turns, if other processes have served the turns before', async () => {
    const { memory, memories, attached } = learning({ everyTurns: 5, onIdleMs: false });
    const messages = Array.from({ length: 10 }, (_, i) => user(`I like tea ${i}.`));
    for (const count of [3, 6, 9, 10]) {
      const turn = { sessionId: 's', context: ADA, isOwn: true, store: undefined };
      void attached.afterTurn({ ...turn, messages: messages.slice(0, count) });
      await memory.settled();
      expect(await textsOf(memories)).toHaveLength({ 3: 0, 6: 6, 9: 6, 10: 10 }[count]!);
    }
  });

  test('and settled waits for a turn that has just ended', async () => {
    const { memory, memories, attached } = learning({ everyTurns: 1, onIdleMs: false });
    const messages = [user('I like tea.')];
    const turn = { sessionId: 's', context: ADA, isOwn: true, store: undefined, messages };
    void attached.afterTurn(turn);
    await memory.settled();
    expect(await textsOf(memories)).toHaveLength(1);
  });

  test('after the turn was saved: the job has the snapshot of the turn', async () => {
    const { memory, memories, chat, sessions } = learning({ everyTurns: 1 }, { worker: false });
    const talk = chat();
    const save = sessions.saveSnapshot.bind(sessions);
    const jobsAtSave: number[] = [];
    sessions.saveSnapshot = async (...args) => {
      jobsAtSave.push((await memories.listJobs()).items.length);
      return save(...args);
    };
    await talk.send('I like tea.');
    await vi.waitFor(async () => expect(await memory.jobs.list({})).toHaveLength(1));
    const [job] = await memory.jobs.list({});
    expect(jobsAtSave).toEqual([0]);
    expect(job).toMatchObject({
      state: 'waiting',
      sourceId: talk.sessionId,
      input: { source: { snapshotId: talk.snapshotId } },
    });
  });

  test('when no turn came for a while', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { memories, chat } = learning({ everyTurns: 100, onIdleMs: 60_000 });
    const talk = chat();
    await talk.send('I like tea.');
    await vi.advanceTimersByTimeAsync(50_000);
    await talk.send('I like rum.');
    await vi.advanceTimersByTimeAsync(59_000);
    expect(await textsOf(memories)).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await textsOf(memories)).toHaveLength(2);
  });

  describe('again after its job was not added', () => {
    const down = new GenkitError({ status: 'UNAVAILABLE', message: 'It is down.' });

    test.each([
      ['at a multiple of N turns', 2, () => Promise.reject(down)],
      ['when no turn came for a while', 100, () => Promise.reject(down)],
      ['because the queue was full', 2, () => Promise.resolve('full' as const)],
    ])('%s: at the next idle time', async (_, everyTurns, refuse) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const { memory, memories, chat } = learning({ everyTurns, onIdleMs: MINUTE });
      const add = vi.spyOn(memories, 'addJob').mockImplementation(refuse);
      const talk = chat();
      for (const drink of ['tea', 'rum']) await talk.send(`I like ${drink}.`);
      for (let i = 1; i <= 3; i++) {
        await vi.advanceTimersByTimeAsync(MINUTE);
        expect(add.mock.calls.length).toBeGreaterThanOrEqual(i);
      }
      add.mockRestore();
      await vi.advanceTimersByTimeAsync(MINUTE);
      await memory.settled();
      expect(await textsOf(memories)).toHaveLength(2);
      expect(vi.getTimerCount()).toBe(0);
    });

    test('with the next turn', async () => {
      const { memory, memories, chat } = learning({ everyTurns: 3, onIdleMs: false });
      const add = vi.spyOn(memories, 'addJob').mockRejectedValueOnce(down);
      const talk = chat();
      for (const drink of ['tea', 'rum', 'ale', 'gin', 'port']) {
        await talk.send(`I like ${drink}.`);
        await memory.settled();
      }
      // The turns after that are counted as ever.
      expect(add).toHaveBeenCalledTimes(2);
      expect(await textsOf(memories)).toHaveLength(4);
    });
  });

  test('outside of the context and the trace of the turn that woke the worker, and of the caller that waits', async () => {
    const caller = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    let goOn!: () => void;
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    const { ai, memory, chat, scope } = learning(
      { everyTurns: 1 },
      {
        extract: async () => {
          await mayGoOn;
          seen.push(caller.getStore(), ai.currentContext());
          return [];
        },
      },
    );
    // More users than the worker has loops: a loop that a user's turn has started takes the job of another user.
    const users = Array.from({ length: 6 }, (_, i) => ({ auth: { uid: `user${i}` } }));
    for (const context of users) await caller.run(context.auth.uid, () => chat(context).send('I like tea.'));
    const waiting = caller.run('waiting', () =>
      memory.ingest({ scope, source: { id: 'notes' }, messages: [user('I like rum.')], wait: true }),
    );
    goOn();
    expect(await waiting).toMatchObject({ status: 'committed' });
    await memory.settled();
    expect(seen).toEqual(Array(14).fill(undefined));
  });

  test('outside of the context of a turn when its session is idle, or has been replaced by newer sessions', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const caller = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const redact = (text: string) => {
      seen.push(caller.getStore());
      return text;
    };
    const { memory, attached } = learning({ everyTurns: 100, onIdleMs: MINUTE }, { redact, worker: false });
    const turnOf = (sessionId: string) =>
      caller.run(sessionId, () => {
        const messages = [user(`I like tea in ${sessionId}.`)];
        void attached.afterTurn({ sessionId, context: ADA, isOwn: true, store: undefined, messages });
      });
    turnOf('idle');
    await vi.advanceTimersByTimeAsync(MINUTE);
    await memory.settled();
    expect(seen).toEqual([undefined]);
    for (let i = 0; i < 1_000; i++) turnOf(`session${i}`);
    await until(() => seen.length > 1);
    expect(seen).toEqual([undefined, undefined]);
  });

  test('no more when the manager is closed: nothing is tried and nothing logged', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const warn = vi.spyOn(logger, 'warn');
    const { memory, memories, chat } = learning({ everyTurns: 100, onIdleMs: 60_000 });
    await chat().send('I like tea.');
    await memory.close();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(warn).not.toHaveBeenCalled();
    expect(await textsOf(memories)).toEqual([]);
  });

  test('when the application says that the session is over, and only from sessions of the caller', async () => {
    const { attached, memories, chat } = learning({ everyTurns: 100 });
    const talk = chat();
    await talk.send('I like tea.');
    const { sessionId } = talk;
    await expect(attached.endSession({ sessionId: sessionId!, context: BOB })).rejects.toMatchObject({
      status: 'NOT_FOUND',
    });
    expect(await attached.endSession({ sessionId: sessionId!, context: ADA, wait: true })).toMatchObject({
      status: 'committed',
    });
    expect(await attached.endSession({ sessionId: sessionId!, context: ADA, wait: true })).toMatchObject({
      status: 'known',
    });
    expect(await textsOf(memories)).toEqual(['The user said: I like tea.']);
    expect(await textsOf(memories, 'bob')).toEqual([]);
  });

  test('at once, when the application names a session; its turns are learned from as before', async () => {
    const { memory, memories, sessions, chat, scope } = learning({ everyTurns: 2, onIdleMs: false });
    const talk = chat();
    await talk.send('I like tea.');
    const { sessionId, snapshotId } = talk;
    const at = (await sessions.getSnapshot({ sessionId: sessionId! }))!.createdAt;
    const ingest = () => memory.ingest({ scope, sessionId: sessionId!, wait: true });
    expect(await ingest()).toMatchObject({ status: 'committed' });
    expect(await ingest()).toEqual({ status: 'known', jobIds: [] });
    const [hit] = (await memories.query({ scope: 'user', appName: 'default', userId: 'ada' })).items;
    expect(hit!.memory.sources).toMatchObject([{ id: sessionId, sessionId, snapshotId, at, from: 0, to: 2 }]);
    await talk.send('I like rum.');
    await vi.waitFor(async () => expect(await textsOf(memories)).toHaveLength(2));
    await memory.settled();
    expect(await ingest()).toEqual({ status: 'known', jobIds: [] });
  });

  test('word for word, or as another source, when the application names a session and says so', async () => {
    const { memory, memories, chat, scope } = agentWithMemory({ attach: { learn: false } });
    const talk = chat();
    await talk.send('I like tea.');
    const { sessionId, snapshotId } = talk;
    const source = { id: 'import', trust: 0.2 };
    await memory.ingest({ scope, source, sessionId: sessionId!, extract: 'verbatim', wait: true });
    expect(await textsOf(memories)).toEqual(['I like tea.', 'ok']);
    const [hit] = (await memories.query({ scope: 'user', appName: 'default', userId: 'ada' })).items;
    expect(hit!.memory.sources).toMatchObject([{ id: 'import', trust: 0.2, sessionId, snapshotId }]);
  });

  test('only from sessions that the scope has', async () => {
    const { memory, memories, chat, scope } = learning({ everyTurns: 100 });
    const talk = chat();
    await talk.send('I like tea.');
    const sessionId = talk.sessionId!;
    const bob = memory.scopeFor('user', { context: BOB });
    const another = memory.scopeFor('session', { context: ADA, sessionId: 'another' });
    for (const of of [
      { scope: bob, sessionId },
      { scope: another, sessionId },
      { scope, sessionId: 'missing' },
    ])
      await expect(memory.ingest(of)).rejects.toMatchObject({ status: 'NOT_FOUND' });
    for (const more of [{ memories: ['The user likes tea.'] }, { messages: [] }])
      await expect(memory.ingest({ scope, sessionId, ...more })).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    const { memory: alone } = setUp();
    await expect(alone.ingest({ scope: alone.scopeFor('user', { context: ADA }), sessionId })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
    expect(await memories.listScopes()).toEqual({ items: [] });
    const own = memory.scopeFor('session', { context: ADA, sessionId });
    expect(await memory.ingest({ scope: own, sessionId, wait: true })).toMatchObject({ status: 'committed' });
  });

  test('from a session that was never enqueued, by the scheduler', async () => {
    const { ai, memories, chat } = learning({ everyTurns: 100, onIdleMs: false });
    await chat().send('I like tea.');
    expect(await processMemoryJobs(ai)).toMatchObject({ found: 0 });
    pass(15 * MINUTE);
    expect(await processMemoryJobs(ai)).toMatchObject({ found: 1 });
    await vi.waitFor(async () => expect(await textsOf(memories)).toEqual(['The user said: I like tea.']));
  });

  test('not from sessions of other agents in the same store, by the scheduler', async () => {
    const { ai, memory, memories, said, sessions: store, chat } = learning({ everyTurns: 100, onIdleMs: false });
    const others = [
      { name: 'no memory' },
      { name: 'mute', memory: memory.attach({ learn: false }) },
      { name: 'other memory', memory: setUp({ extract: likes }).memory.attach() },
    ];
    const agents = others.map((one) => defineAgent(ai, { model: said.name, store, ...one }));
    await chat().send('I like tea.');
    for (const one of agents) await one.chat({}, { context: ADA }).send('I like rum.');
    pass(15 * MINUTE);
    expect(await processMemoryJobs(memory)).toMatchObject({ found: 1 });
    expect(await textsOf(memories)).toEqual(['The user said: I like tea.']);
  });

  test('only if the agent and its memory find the user in the same way', async () => {
    const userId = ({ auth }: { auth?: { uid?: string } }) => `acme:${auth?.uid}`;
    expect(() => learning({ everyTurns: 1 }, { userId })).toThrow(/"support" .* Pass the same userId/);
    const { ai, attached, said } = learning({ everyTurns: 1 });
    const store = new InMemorySessionStore();
    const agent = { name: 'other', model: said.name, memory: attached, store, userId };
    expect(() => defineAgent(ai, agent)).toThrow(expect.objectContaining({ status: 'FAILED_PRECONDITION' }));
    const own = setUp({ extract: likes, userId, generate: { everyTurns: 1 } });
    const both = defineAgent(ai, { ...agent, memory: own.memory.attach() });
    defineAgent(ai, { ...agent, name: 'silent', memory: own.memory.attach({ learn: false }), userId: undefined });
    await both.chat({}, { context: ADA }).send('I like tea.');
    await own.memory.settled();
    const { items } = await own.memory.list({ scope: own.memory.scopeFor('user', { context: ADA }) });
    expect(items.map(({ text }) => text)).toEqual(['The user said: I like tea.']);
  });

  test('no earlier because of a scheduler, while the session goes on', async () => {
    const sizes: number[] = [];
    const extract = ({ messages }: { messages: readonly unknown[] }) => {
      sizes.push(messages.length);
      return [];
    };
    const { ai, memory, chat } = learning({ everyTurns: 5, onIdleMs: 2 * MINUTE }, { extract });
    const talk = chat();
    for (let turn = 1; turn <= 12; turn++) {
      await talk.send(`I like tea ${turn}.`);
      await memory.settled();
      pass(MINUTE);
      expect(await processMemoryJobs(ai)).toMatchObject({ found: 0 });
    }
    expect(sizes).toEqual([10, 10]);
    pass(MINUTE);
    // It became idle within the last 30 seconds.
    expect(await processMemoryJobs(ai, { sessionsWithinMs: MINUTE / 2 })).toMatchObject({ found: 1 });
    await memory.settled();
    expect(sizes).toEqual([10, 10, 4]);
  });

  test('by a scheduler that reads a session once, and again after it has changed', async () => {
    const { ai, memory, memories, chat, sessions, scope } = learning({ everyTurns: 100, onIdleMs: false });
    const talks = Array.from({ length: 51 }, () => chat());
    for (const talk of talks) await talk.send('I like tea.');
    const get = vi.spyOn(sessions, 'getSnapshot');
    const reads = async () => {
      pass(15 * MINUTE);
      get.mockClear();
      const { found } = await processMemoryJobs(ai);
      return { found, reads: get.mock.calls.length };
    };
    expect(await reads()).toEqual({ found: 51, reads: 51 });
    expect(await reads()).toEqual({ found: 0, reads: 0 });
    await talks[7]!.send('I like rum.');
    expect(await reads()).toEqual({ found: 1, reads: 1 });
    expect(await reads()).toEqual({ found: 0, reads: 0 });
    await memory.settled();
    expect(await textsOf(memories)).toEqual(['The user said: I like rum.', 'The user said: I like tea.']);
    // Refused sessions are checked again.
    await memory.consent.set(scope, 'off');
    await talks[8]!.send('I like ale.');
    for (let i = 0; i < 2; i++) expect(await reads()).toEqual({ found: 0, reads: 1 });
  });

  test('later where the pipeline stalls and its queue is full: turns are as ever, what is refused is counted, and found again', async () => {
    let goOn: (() => void) | undefined;
    const stalled = new Promise<void>((resolve) => (goOn = resolve));
    const { ai, memory, memories, chat, reports } = agentWithMemory({
      memory: {
        model: undefined,
        extract: async (request) => {
          await stalled;
          return likes(request);
        },
        generate: { everyTurns: 1, onIdleMs: false },
        limits: { maxJobs: 2 },
      },
    });
    for (let i = 1; i <= 5; i++) expect((await chat().send(`I like tea ${i}.`)).text).toBe('ok');
    const full = [1, 2, 3].map((refused) => ({ type: 'full', refused }));
    await vi.waitFor(() => expect(reports).toMatchObject(full));
    expect(await memory.jobs.list()).toHaveLength(2);
    expect(await textsOf(memories)).toEqual([]);
    goOn!();
    await memory.settled();
    expect(await textsOf(memories)).toHaveLength(2);
    // The scheduler finds the sessions as fast as the queue accepts them.
    pass(15 * MINUTE);
    await vi.waitFor(async () => {
      await processMemoryJobs(ai);
      await memory.settled();
      expect(await textsOf(memories)).toHaveLength(5);
    });
  });

  test('and close waits until a job is added', async () => {
    const { memory, memories, chat } = learning({ everyTurns: 1 });
    const add = memories.addJob.bind(memories);
    let isClosed = false;
    let isAdding = false;
    memories.addJob = async (...args) => {
      isAdding = true;
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(isClosed).toBe(false);
      return add(...args);
    };
    await chat().send('I like tea.');
    await vi.waitFor(() => expect(isAdding).toBe(true), { interval: 1 });
    await memory.close();
    isClosed = true;
    expect(await memories.listJobs()).toMatchObject({ items: [{ state: 'waiting', attempts: 0 }] });
  });

  test('not when the manager is closed, and the log says so in one line', async () => {
    const { memory, chat } = learning({ everyTurns: 1 });
    const warn = vi.spyOn(logger, 'warn').mockImplementation(() => {});
    await memory.close();
    await chat().send('I like tea.');
    await vi.waitFor(() => expect(warn).toHaveBeenCalled());
    const [line] = warn.mock.calls[0]!;
    warn.mockRestore();
    expect(line).toMatch(/^Nothing was learned from session "[^"]+"; .*closed[^\n]*$/);
  });

  test('nothing for a user from a session of another, and nothing without a user', async () => {
    const { agent, memory, memories } = agentWithMemory({
      memory: { model: undefined, extract: likes, generate: { everyTurns: 1 } },
      shareSessions: true,
    });
    const first = agent.chat({}, { context: ADA });
    await first.send('I like tea.');
    const second = agent.chat({ sessionId: first.sessionId! }, { context: BOB });
    await second.send('I like rum.');
    await agent.chat({}, { context: {} }).send('I like ale.');
    await vi.waitFor(async () => expect(await textsOf(memories)).toHaveLength(1));
    await memory.settled();
    expect(await memories.listScopes().then(({ items }) => items)).toEqual([
      { scope: 'user', appName: 'default', userId: 'ada' },
    ]);
  });

  test('nothing that was said while consent was off, whenever it is on again', async () => {
    const { memory, memories, scope, chat, attached, agent } = learning({ everyTurns: 2 });
    const said = chat();
    await said.send('I like tea.');
    const begun = said.snapshotId!;
    await memory.consent.set(scope, 'off');
    const branch = agent.chat({ snapshotId: begun }, { context: ADA });
    await branch.send('I like stealing.');
    // A session that no trigger has read, and a session for which learning was refused.
    await said.send('I like gambling.');
    await said.send('I like cheating.');
    await attached.endSession({ sessionId: said.sessionId!, context: ADA, wait: true });
    await said.send('I like lying.');
    await memory.consent.set(scope, 'on');
    for (const [talk, text] of [
      [said, 'I like rum.'],
      [branch, 'I like gin.'],
    ] as const) {
      await talk.send(text);
      await attached.endSession({ sessionId: said.sessionId!, context: ADA, wait: true });
    }
    await processMemoryJobs(memory);
    expect(await textsOf(memories)).toEqual(['The user said: I like gin.', 'The user said: I like rum.']);
  });

  test.each(['erase', 'forgetSource'] as const)('nothing that was said before %s', async (remove) => {
    const { memory, memories, scope, chat, attached } = learning({ everyTurns: 1_000, onIdleMs: 1_000_000 });
    const said = chat();
    await said.send('I like tea.');
    await attached.endSession({ sessionId: said.sessionId!, context: ADA, wait: true });
    // A session that was not read yet.
    await said.send('I like gambling.');
    if (remove === 'erase') await memory.erase({ scope });
    else await memory.forgetSource({ scope, source: said.sessionId! });
    await processMemoryJobs(memory);
    expect(await textsOf(memories)).toEqual([]);
    await said.send('I like rum.');
    await attached.endSession({ sessionId: said.sessionId!, context: ADA, wait: true });
    expect(await textsOf(memories)).toEqual(['The user said: I like rum.']);
  });

  test('nothing where the user does not wish it, or with learn: false', async () => {
    const { memory, memories, scope, chat, reports } = learning({ everyTurns: 1 });
    await memory.consent.set(scope, 'off');
    await chat().send('I like tea.');
    await vi.waitFor(() => expect(reports.map(({ type }) => type)).toEqual(['no-consent']));
    expect(await textsOf(memories)).toEqual([]);
    const reader = agentWithMemory({
      memory: { extract: likes, generate: { everyTurns: 1 } },
      attach: { learn: false },
    });
    await reader.chat().send('I like tea.');
    expect(await reader.memories.listScopes()).toEqual({ items: [] });
  });
});
