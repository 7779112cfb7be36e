/** Messages that count as read without being learned from, and messages of jobs that always fail. */
import { contextWindow, sessionMemories } from 'genkitx-agents/context';
import { processMemoryJobs, type MemoryExtractor } from 'genkitx-agents/memory';
import { describe, expect, test, vi } from 'vitest';
import {
  unreadRanges,
  hashInRange,
  withRange,
  type ReadRange,
  type SourceNote,
} from '../../../src/memory/pipeline/records/ranges.ts';
import { ADA, agentWithMemory, linesOf } from '../attach/support.ts';
import { echoTexts } from './corroborate.ts';
import { ID, model, range, setUp, textsOf, user } from './support.ts';

/** Extracts each text of a user, and fails for texts that contain `poison`. */
const extract: MemoryExtractor = (input) => {
  const said = input.messages.filter(({ role }) => role === 'user');
  if (JSON.stringify(said).includes('poison')) throw new Error('Blocked by the safety filter.');
  return said.flatMap(({ content }) => content.flatMap(({ text = '' }) => (text.includes('like') ? [text] : [])));
};

describe('a turn that waits for an answer', () => {
  test.each(['resume', 'send'] as const)(
    'at the call of erase, forgetSource or consent is not learned after %s',
    async (next) => {
      const { ai, memory, memories, scope, said, attached, chat } = agentWithMemory({
        memory: { model: undefined, extract, generate: { everyTurns: 1_000, onIdleMs: false } },
        tools: ['confirm'],
      });
      ai.defineTool({ name: 'confirm', description: 'Confirms.' }, async (_, { interrupt, resumed }) =>
        resumed ? 'yes' : interrupt(),
      );
      for (const call of ['erase', 'forgetSource', 'consent'] as const) {
        const talk = chat();
        await talk.send('I like tea.');
        if (call === 'consent') await memory.consent.set(scope, 'off');
        said.reply([{ toolRequest: { name: 'confirm', ref: '1', input: null } }]);
        expect(await talk.send('I like gambling.')).toMatchObject({ finishReason: 'interrupted' });
        if (call === 'erase') await memory.erase({ scope });
        if (call === 'forgetSource') await memory.forgetSource({ scope, source: talk.sessionId! });
        if (call === 'consent') await memory.consent.set(scope, 'on');
        if (next === 'resume') await talk.resume({ restart: talk.interrupts.map((one) => one.restart()) });
        await talk.send('I like rum.');
        await attached.endSession({ sessionId: talk.sessionId!, context: ADA, wait: true });
        expect([call, await textsOf(memories)]).toEqual([call, ['I like rum.']]);
      }
    },
  );

  test('does not make earlier messages unread after the note dropped their hashes', () => {
    // The message at 2 waited for an answer, which changed it.
    const ranges = longNote(rangeOf(0, 2, 'a0', 'a'), rangeOf(2, 3, 'a2', 'a'), rangeOf(2, 6, 'a2', 'b'));
    expect(unreadRanges({ from: 0, to: 2_406 }, hashAt, ranges)).toEqual([]);
  });
});

test.each([{ learn: false }, { scope: 'session' } as const])(
  'sessions of an agent with %j, from which the application learns, are skipped as well',
  async (attach) => {
    const { memory, memories, scope, sessions, chat } = agentWithMemory({
      memory: { model: undefined, extract },
      attach,
    });
    const talk = chat();
    await memory.consent.set(scope, 'off');
    await talk.send('I like rum.');
    await memory.consent.set(scope, 'on');
    const { sessionId } = talk;
    const ingest = () => memory.ingest({ scope, sessionId: sessionId!, wait: true });
    expect(await ingest()).toMatchObject({ status: 'known' });
    await talk.send('I like tea.');
    await ingest();
    expect(await textsOf(memories)).toEqual(['I like tea.']);
    await talk.send('I like gambling.');
    await memory.erase({ scope });
    expect(await memory.backfill({ store: sessions, scopeOf: () => scope })).toMatchObject({ enqueued: 0 });
    expect(await textsOf(memories)).toEqual([]);
  },
);

test('a running job learns nothing from messages that were skipped meanwhile', async () => {
  let asked: (() => void) | undefined;
  let answer: (() => void) | undefined;
  const [isAsked, mayAnswer] = [new Promise<void>((end) => (asked = end)), new Promise<void>((end) => (answer = end))];
  const { memory, memories, scope, chat } = agentWithMemory({
    memory: {
      model: undefined,
      extract: async (input) => {
        asked!();
        await mayAnswer;
        return echoTexts(input);
      },
    },
    attach: { learn: false },
  });
  const talk = chat();
  await talk.send('I like gambling.');
  const source = { id: talk.sessionId!, sessionId: talk.sessionId! };
  const learning = memory.ingest({ scope, source, messages: [...talk.messages, user('I like tea.')], wait: true });
  await isAsked;
  for (const consent of ['off', 'on'] as const) await memory.consent.set(scope, consent);
  answer!();
  await learning;
  expect(await textsOf(memories)).toEqual(['I like tea.']);
});

test('skipped messages do not count as learned after the note dropped their hashes', () => {
  const ranges = longNote(rangeOf(0, 2, 'a0', 'a'), { ...rangeOf(2, 6, 'a2', 'b'), isLearned: true });
  const learned = ranges.filter(({ isLearned }) => isLearned);
  expect(unreadRanges({ from: 0, to: 2_406 }, hashAt, learned)).toEqual([{ from: 0, to: 2 }]);
});

const hash = (text: string) => text.padStart(16, '0');
const hashAt = (position: number) => hash(`${position < 3 ? 'a' : 'b'}${position}`);
function rangeOf(from: number, to: number, base: string, branch: string): ReadRange {
  const hashes = range(from + 1, to + 1).map((position) => hash(`${branch}${position}`));
  return { from, to, base: hash(base), hashes: hashes.join('') };
}

/** The ranges of a note after these ranges and more than 2,000 later learned messages. */
function longNote(...first: ReadRange[]): readonly ReadRange[] {
  const later = range(0, 30).map((i) => {
    const from = 6 + i * 80;
    return { ...rangeOf(from, from + 80, `b${from}`, 'b'), isLearned: true };
  });
  const { ranges } = [...first, ...later].reduce<SourceNote>(withRange, { version: 1, ranges: [], seen: [] });
  expect(ranges.reduce((sum, { hashes }) => sum + hashes.length / 16, 0)).toBeLessThanOrEqual(2_000);
  return ranges;
}

test.each([
  ['join, if each goes on from the one before', (i: number) => rangeOf(i, i + 1, `a${i}`, 'a'), 0],
  ['go, the oldest first, if each begins a session anew', (i: number) => rangeOf(0, 1, '0', `${i}-`), 100],
])('ranges of a source that are too many %s', (_, rangeAt, gone) => {
  const all = range(0, 1_100).map(rangeAt);
  const { ranges } = all.reduce<SourceNote>(withRange, { version: 1, ranges: [], seen: [] });
  expect(ranges.length).toBeLessThanOrEqual(1_000);
  const isRead = (one: ReadRange) => unreadRanges(one, (at) => hashInRange(one, at), ranges).length === 0;
  const last = all.at(-1)!;
  const whole = { from: 0, to: last.to };
  const hashOf = (position: number) => hash(`a${position}`);
  if (gone === 0) expect(unreadRanges(whole, hashOf, ranges)).toEqual([]);
  else expect(all.map(isRead)).toEqual(all.map((__, i) => i >= gone));
});

describe('a message that always fails', () => {
  const source = { id: 'session-1' };

  function setUpTalk() {
    const set = setUp({ model: undefined, extract, limits: { maxAttempts: 2 }, worker: false });
    const messages = [user('I like tea.')];
    /** Adds a message, and learns. */
    const say = async (...texts: string[]) => {
      for (const text of texts) messages.push(model('Noted.'), user(text));
      return set.memory.ingest({ scope: set.scope, source, messages });
    };
    const work = async () => {
      for (let i = 0; i < 3; i++) {
        await processMemoryJobs(set.memory);
        set.clock.now += 60_000;
      }
    };
    const dead = async () => set.memory.jobs.list({ state: 'dead' });
    const sizes = async () => (await dead()).map(({ input }) => (input as { messages: unknown[] }).messages.length);
    return { ...set, messages, say, work, dead, sizes };
  }

  test('stays in its job: later ones are learned, also those that came while its job was tried again', async () => {
    const { memory, scope, store, messages, say, work, sizes } = setUpTalk();
    await memory.ingest({ scope, source, messages });
    await say('poison');
    await processMemoryJobs(memory);
    expect(await say('I like rum.')).toMatchObject({ status: 'queued' });
    expect(await say()).toEqual({ status: 'known', jobIds: [] });
    await work();
    for (const text of ['I like gin.', 'I like ale.']) {
      expect(await say(text)).toMatchObject({ status: 'queued' });
      await work();
    }
    expect(await textsOf(store)).toEqual(['I like ale.', 'I like gin.', 'I like rum.', 'I like tea.']);
    // Includes the first message, which was not read when the job was made.
    expect(await sizes()).toEqual([3]);
  });

  test('is also in no job of another branch, and other sources are read completely', async () => {
    const { memory, scope, store, messages, say, work, sizes } = setUpTalk();
    await memory.ingest({ scope, source, messages });
    await say('poison', 'I like gin.');
    await work();
    const branch = [...messages.slice(0, 3), model('Pardon?'), user('I like rum.')];
    await memory.ingest({ scope, source, messages: branch });
    await memory.ingest({ scope, source: { id: 'session-2' }, messages });
    await work();
    expect(await textsOf(store)).toEqual(['I like rum.', 'I like tea.']);
    expect(await sizes()).toEqual([5, 5]);
  });

  test('costs no read of the queue', async () => {
    const { store, say, work } = setUpTalk();
    await say('poison');
    await work();
    const list = vi.spyOn(store, 'listJobs');
    expect(await say('I like rum.')).toMatchObject({ status: 'queued' });
    expect(list).not.toHaveBeenCalled();
  });

  test('makes an ingest fail that has nothing else to read, and can be kept word for word', async () => {
    const { memory, scope, store, messages, say, work } = setUpTalk();
    await say('poison');
    await work();
    messages.push(model('Noted.'), user('I like rum.'));
    const ingest = (more = {}) => memory.ingest({ scope, source, messages, wait: true, ...more });
    expect(await ingest()).toMatchObject({ status: 'committed' });
    expect(await textsOf(store)).toEqual(['I like rum.']);
    expect(await ingest()).toMatchObject({ status: 'failed', jobIds: [] });
    expect(await ingest({ extract: 'verbatim' })).toMatchObject({ status: 'committed' });
    expect(await textsOf(store)).toContain('poison');
    expect(await ingest()).toEqual({ status: 'known', jobIds: [] });
  });

  test('in a job of another version of the package does not stop its session from being learned', async () => {
    const { store, say, work, clock } = setUpTalk();
    await store.addJob(
      { id: 'old', scope: ID, input: { version: 2 }, sourceId: source.id },
      { maxJobs: 10, now: clock.now },
    );
    await work();
    expect(await say('I like rum.')).toMatchObject({ status: 'queued' });
    await work();
    expect(await textsOf(store)).toEqual(['I like rum.', 'I like tea.']);
  });

  test.each(['replay', 'discard'] as const)('%s of its job loses nothing, and applies nothing twice', async (call) => {
    const { memory, clock, store, messages, say, work, dead } = setUpTalk();
    await say('I like poison.');
    await work();
    await say('I like rum.');
    await work();
    const [job, ...others] = await dead();
    expect(others).toEqual([]);
    await memory.jobs[call](job!.id);
    // All messages were read or are in the queue.
    expect(await say()).toEqual({ status: 'known', jobIds: [] });
    expect(await say('I like gin.')).toMatchObject({ status: 'queued' });
    const now = () => clock.now;
    const other = setUp({ model: undefined, extract: echoTexts, store, now, worker: false });
    await processMemoryJobs(other.memory);
    expect(await memory.jobs.list()).toEqual([]);
    const { items } = await store.query(ID, { k: 100 });
    const learned = items.map(({ memory: { text, sources } }) => `${text} ${sources.length}`);
    const ofJob = call === 'replay' ? ['I like tea. 1', 'I like poison. 1'] : [];
    const expected = ['I like gin. 1', 'I like rum. 1', ...ofJob].toSorted();
    expect(learned.filter((one) => one.startsWith('I like')).toSorted()).toEqual(expected);
    expect(await other.memory.ingest({ scope: other.scope, source, messages })).toMatchObject({ status: 'known' });
  });
});

describe('sessionMemories sends the messages that were skipped', () => {
  function setUpWindow() {
    const set = agentWithMemory({
      memory: {
        model: undefined,
        extract,
        generate: { everyTurns: 1, onIdleMs: false },
        limits: { maxAttempts: 1 },
      },
      attach: { placement: { memories: 'tool' }, tools: [] },
      context: contextWindow({ history: [sessionMemories({ keepTurns: 1 })] }),
    });
    const talk = set.chat();
    /** Sends turns. Returns the last request. */
    const say = async (...texts: string[]) => {
      for (const text of texts) {
        await talk.send(text);
        await set.memory.settled();
      }
      return linesOf(set.said.requests.at(-1)!).join('\n');
    };
    return { ...set, talk, say };
  }

  test('while consent was off', async () => {
    const { memory, scope, say } = setUpWindow();
    await say('I like tea.');
    await memory.consent.set(scope, 'off');
    await say('My order is A7.', 'It has arrived broken.');
    await memory.consent.set(scope, 'on');
    const sent = await say('I like rum.', 'What about it?');
    expect(sent).toContain('| - I like tea.');
    expect(sent).not.toContain('user: I like tea.');
    expect(sent).toContain('My order is A7.');
    expect(sent).toContain('It has arrived broken.');
  });

  test('by discarding a job', async () => {
    const { memory, say } = setUpWindow();
    await say('I like tea.', 'My poison is A7.');
    const [job] = await memory.jobs.list({ state: 'dead' });
    await memory.jobs.discard(job!.id);
    const sent = await say('I like rum.', 'I like gin.', 'What about it?');
    expect(sent).toContain('| - I like tea.');
    expect(sent).toContain('My poison is A7.');
  });

  test.each(['erase', 'forgetSource'] as const)('by %s', async (call) => {
    const { memory, scope, talk, say } = setUpWindow();
    await say('I like tea.', 'My order is A7.');
    if (call === 'erase') await memory.erase({ scope });
    else await memory.forgetSource({ scope, source: talk.sessionId! });
    expect(await say('I like rum.', 'I like gin.', 'What about it?')).toContain('My order is A7.');
  });
});
