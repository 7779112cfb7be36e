/** Contradicting facts of one job: at most one of them is valid. */
import type { GenerateRequest } from 'genkit';
import { describe, expect, test } from 'vitest';
import { all, extraction, ID, model as says, operations, range, setUp, textsOf, user } from './support.ts';

const home = (city: string) => `The user lives in ${city}.`;
const colour = (person: number, name: string) => `The favourite colour of person${person} is ${name}.`;

/** The numbered texts of a request to the model. */
function asked({ messages }: GenerateRequest) {
  const [known = '', fresh = ''] = messages.at(-1)!.content[0]!.text!.split('New facts:');
  const texts = (part: string) => [...part.matchAll(/^\| (.*)$/gm)].map(([, text]) => text!);
  return { known: texts(known), fresh: texts(fresh) };
}

/** Answers according to the instructions. Facts that differ only in the last word contradict each other. */
function decide(request: GenerateRequest): object[] {
  const { known, fresh } = asked(request);
  const subject = (text: string) => text.slice(0, text.lastIndexOf(' '));
  return fresh.map((fact, i) => {
    if (fresh.slice(i + 1).some((later) => subject(later) === subject(fact))) return { new: i + 1, op: 'NOOP' };
    const existing = known.flatMap((text, j) => (subject(text) === subject(fact) ? [j + 1] : []));
    return existing.length > 0 ? { new: i + 1, op: 'DELETE', existing } : { new: i + 1, op: 'CREATE' };
  });
}

/** A model that extracts each message of the user as a fact, and decides about contradictions. */
function setUpDeciding(options: Parameters<typeof setUp>[0] = {}) {
  return setUp({
    otherwise: ({ request }) => {
      const prompt = request.messages.at(-1)!.content[0]!.text!;
      if (prompt.includes('New facts:')) return operations(...decide(request));
      const said = [...prompt.matchAll(/^(\d+)\. user:\n\| (.*)$/gm)];
      return extraction(...said.map(([, position, text]) => ({ text, messages: [Number(position)] })));
    },
    ...options,
  });
}

describe('100 pairs that contradict each other', () => {
  const people = range(0, 100);
  const reds = people.map((person) => colour(person, 'red'));
  const blues = people.map((person) => colour(person, 'blue'));

  test('leave one fact of each, if each pair is one conversation of a new scope', async () => {
    const { memory, store } = setUpDeciding();
    for (const person of people) {
      const scope = memory.scopeFor('user', { context: { auth: { uid: `user${person}` } } });
      const messages = [user(reds[person]!), says('Ok.'), user(blues[person]!), says('Ok.')];
      await memory.ingest({ scope, source: { id: 's' }, messages, wait: true });
      expect(await textsOf(store, `user${person}`)).toEqual([blues[person]]);
    }
  });

  test('leave one fact of each in one list', async () => {
    const { memory, scope, store } = setUpDeciding();
    const memories = people.flatMap((person) => [reds[person]!, blues[person]!]);
    await memory.ingest({ scope, source: { id: 's' }, memories, wait: true });
    expect(await textsOf(store)).toEqual(blues.toSorted());
  });

  test('leave one fact of each in one job of several commits: only known memories are limited', async () => {
    const { memory, scope, store, reports } = setUpDeciding({ extract: () => [...reds, ...blues] });
    await memory.ingest({ scope, source: { id: 's' }, messages: [user('All our colours: ...')], wait: true });
    expect(await textsOf(store)).toEqual(blues.toSorted());
    expect(reports).toMatchObject([{ type: 'committed', changes: { created: 200, invalidated: 0, quarantined: 0 } }]);
    const replaced = (await all(store)).filter(({ supersededBy }) => supersededBy !== undefined);
    expect(replaced.map(({ text }) => text).toSorted()).toEqual(reds.toSorted());
    for (const { validFrom, validTo } of replaced) expect(validTo).toBe(validFrom);
  });
});

test('facts of one job are asked about together, in the order in which they were said', async () => {
  const facts = [
    { text: home('Porto'), messages: [2] },
    { text: home('Lyon'), messages: [0] },
  ];
  const { memory, model, scope, store } = setUp({
    extract: () => facts,
    otherwise: ({ request }) => operations(...decide(request)),
  });
  await memory.ingest({ scope, source: { id: 's' }, messages: [user('Lyon'), says('Ok.'), user('Porto')], wait: true });
  expect(model.requests.map(asked)).toEqual([{ known: [], fresh: [home('Lyon'), home('Porto')] }]);
  expect(await textsOf(store)).toEqual([home('Porto')]);
});

test('facts of a later request are compared with all that the job has created before', async () => {
  const { memory, model, scope, store } = setUpDeciding();
  const others = range(1, 20).map((person) => colour(person, 'red'));
  const memories = [colour(0, 'red'), ...others, colour(0, 'blue')];
  await memory.ingest({ scope, source: { id: 's' }, memories, wait: true });
  expect(model.requests.map((request) => asked(request).known.length)).toEqual([0, 10, 20]);
  expect(await textsOf(store)).toEqual([...others, colour(0, 'blue')].toSorted());
});

test('a single fact of a new scope, facts with a key, and a fact that the job has twice need no model', async () => {
  const { memory, model, scope, store } = setUp();
  const keyed = ['Lyon', 'Porto'].map((city) => ({ text: home(city), key: 'home' }));
  const memories = [...keyed, 'The user likes tea.', 'The user likes tea.'];
  await memory.ingest({ scope, source: { id: 's' }, memories, wait: true });
  expect(model.requests).toHaveLength(0);
  expect(await textsOf(store)).toEqual(['The user likes tea.', home('Porto')]);
});

describe('two facts that replace the same memory', () => {
  const replace = (fact: number) => ({ new: fact, op: 'DELETE', existing: [1] });

  async function inRome(...answers: object[][]) {
    const set = setUp({ replies: answers.map((answer) => operations(...answer)) });
    await set.memory.ingest({ scope: set.scope, source: { id: 'old' }, memories: [home('Rome')], wait: true });
    set.clock.now += 1000;
    const memories = [home('Lyon'), home('Porto')];
    await set.memory.ingest({ scope: set.scope, source: { id: 'new' }, memories, wait: true });
    return set;
  }

  test('are repaired', async () => {
    const { model, store } = await inRome([replace(1), replace(2)], [replace(1), { new: 2, op: 'CREATE' }]);
    expect(JSON.stringify(model.requests[1])).toContain('two new facts replace existing memory 1');
    expect(await textsOf(store)).toEqual([home('Lyon'), home('Porto')]);
  });

  test.each([
    ['the second replaces it', replace(2)],
    ['the second repeats it', { new: 2, op: 'NOOP', existing: [1] }],
  ])('contradict each other, so the later one is valid: %s', async (_, second) => {
    const answer = [replace(1), second];
    const { memory, clock, store, scope } = await inRome(answer, answer);
    expect(await textsOf(store)).toEqual([home('Porto')]);
    const asOf = new Date(clock.now - 1).toISOString();
    expect((await store.query(ID, { asOf })).items.map((hit) => hit.memory.text)).toEqual([home('Rome')]);
    const lyon = (await all(store)).find(({ text }) => text === home('Lyon'))!;
    await memory.restore({ scope, id: lyon.id });
    expect(await textsOf(store)).toEqual([home('Lyon')]);
  });
});

describe('a fact that the user asked to have remembered', () => {
  const facts = (first: boolean, second: boolean) => [
    { text: home('Lyon'), isExplicit: first, messages: [0] },
    { text: home('Porto'), isExplicit: second, messages: [2] },
  ];

  test.each([
    ['yields to a later wish', true, 'Porto'],
    ['prevails over a later remark', false, 'Lyon'],
  ])('%s', async (_, isWish, city) => {
    const { memory, model, scope, store } = setUp({
      extract: () => facts(true, isWish),
      otherwise: ({ request }) => operations(...decide(request)),
    });
    const messages = [user('Remember Lyon.'), says('Ok.'), user('Porto.')];
    await memory.ingest({ scope, source: { id: 's' }, messages, wait: true });
    expect(model.requests.map(asked)).toEqual([
      { known: [], fresh: [home('Lyon'), home('Porto')] },
      { known: [home('Porto')], fresh: [home('Lyon')] },
    ]);
    expect(await textsOf(store)).toEqual([home(city)]);
  });

  test('is kept though the model finds it not worth keeping', async () => {
    const { memory, scope, store } = setUp({
      extract: () => facts(true, true),
      otherwise: ({ request }) => operations(...asked(request).fresh.map((_, i) => ({ new: i + 1, op: 'NOOP' }))),
    });
    await memory.ingest({
      scope,
      source: { id: 's' },
      messages: [user('Lyon'), says('Ok.'), user('Porto')],
      wait: true,
    });
    expect(await textsOf(store)).toEqual([home('Lyon'), home('Porto')]);
  });
});
