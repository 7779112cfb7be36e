/** Comparing new facts with known memories. */
import type { Memory } from 'genkitx-agents/memory';
import { describe, expect, test } from 'vitest';
import { procedureText } from '../../../src/memory/pipeline/extract/procedures.ts';
import { all, DAY, extraction, ID, model as says, operations, range, setUp, textsOf, user } from './support.ts';

describe('duplicates', () => {
  test('are found before the model is asked, and count once for each source', async () => {
    const { memory, model, scope, store } = setUp();
    const fact = (text: string, id: string) => memory.ingest({ scope, source: { id }, memories: [text], wait: true });
    await fact("The user's seat is by the window.", 'a');
    await fact('the user’s  seat is by the window', 'b');
    await fact("User's seat is by window!", 'b');
    expect(model.requests).toHaveLength(0);
    const [one, ...more] = await all(store);
    expect(more).toEqual([]);
    expect(one!.sources.map(({ id }) => id)).toEqual(['a', 'b']);
    expect(one!.confidence).toBe(0.99);
  });

  test('with other data count as one memory with the data of the stronger', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    const budget = (amount: number | undefined) => ({
      text: 'The user has a travel budget.',
      ...(amount && { data: { amount }, schemaId: 'budget' }),
    });
    const say = (amount: number | undefined, id: string, type: 'explicit' | 'implicit' = 'explicit') => {
      clock.now += DAY;
      return memory.ingest({ scope, source: { id, type }, memories: [budget(amount)], wait: true });
    };
    const known = async () => {
      const [one, ...more] = await all(store);
      expect(more).toEqual([]);
      return [one!.data, one!['contradictions'], one!.confidence];
    };
    await say(undefined, 'a');
    await say(500, 'a');
    expect(await known()).toEqual([{ amount: 500 }, undefined, 0.9]);
    await say(900, 'b');
    expect(await known()).toEqual([{ amount: 900 }, 1, expect.closeTo(0.99 * 0.9)]);
    for (const amount of [500, 600, 500]) {
      await say(amount, 'c');
      expect((await known())[0]).toEqual({ amount });
    }
    // A remark does not replace the fact, and counts once.
    for (let i = 0; i < 2; i++) await say(700, 'd', 'implicit');
    expect(await known()).toEqual([{ amount: 500 }, 5, expect.any(Number)]);
  });

  test('with other data leave none of it behind, also of a memory with many sources', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    for (let i = 1; i <= 103; i++) {
      clock.now += DAY;
      const budget = { text: 'The user has a travel budget.', data: { amount: i } };
      await memory.ingest({ scope, source: { id: `${i}` }, memories: [budget], wait: true });
      expect((await all(store))[0]!.data).toEqual({ amount: i });
    }
    const [full] = await all(store);
    expect([full!.sources.length, full!.sources.at(-1)!.id]).toEqual([100, '103']);
    await memory.forgetSource({ scope, source: '103' });
    expect((await all(store))[0]!.data).toEqual({ amount: 102 });
  });

  describe('of a memory with 100 sources', () => {
    const JAZZ = 'The user likes jazz.';
    const source = (i: number, members: object = {}) => ({
      id: `s${i}`,
      type: 'implicit' as const,
      trust: 0.6,
      statement: JAZZ,
      sha256: `s${i}`,
      at: new Date(i).toISOString(),
      ...members,
    });
    async function withSources(sources: readonly ReturnType<typeof source>[], members: object = {}) {
      const setting = setUp({ model: undefined });
      const memory = {
        id: 'm',
        kind: 'declarative' as const,
        text: JAZZ,
        topics: [],
        importance: 0.5,
        confidence: 0.9,
      };
      const put = { op: 'put' as const, memory: { ...memory, validFrom: sources[0]!.at, sources, ...members } };
      await setting.store.commit(ID, [put]);
      const say = (more: object) => {
        setting.clock.now += DAY;
        const memories = [{ text: JAZZ, data: { music: 'jazz' } }, { text: `It is ${setting.clock.now}.` }];
        return setting.memory.ingest({
          ...more,
          scope: setting.scope,
          source: { id: 'new', type: 'implicit' },
          memories,
          wait: true,
        });
      };
      const known = async () => (await setting.store.get(ID, ['m']))[0]!;
      return { ...setting, say, known };
    }

    test('keep the only source of a part of the text, so that it can be forgotten', async () => {
      const rock = source(0, { statement: 'The user likes rock.' });
      const sources = [rock, ...range(1, 100).map((i) => source(i))];
      const { memory, scope, say, known } = await withSources(sources, { text: 'The user likes jazz and rock.' });
      await say({});
      const full = await known();
      expect([full.data, full.sources.length, full.sources.map(({ id }) => id)]).toEqual([
        { music: 'jazz' },
        100,
        expect.arrayContaining(['s0', 'new']),
      ]);
      await memory.forgetSource({ scope, source: 's0' });
      expect((await known()).text).toBe(JAZZ);
    });

    test('take nothing of a source that finds no place, however often it speaks', async () => {
      const strong = { type: 'explicit', trust: 0.9, data: { music: 'blues' } };
      const sources = range(0, 100).map((i) => source(i, strong));
      const { say, known } = await withSources(sources, { data: { music: 'blues' } });
      for (let i = 0; i < 3; i++) await say({});
      const full = await known();
      expect(full.sources.map(({ id }) => id)).toEqual(sources.map(({ id }) => id));
      expect([full.data, full['contradictions'], full.confidence]).toEqual([{ music: 'blues' }, undefined, 0.99]);
    });
  });

  test('of procedures that the model takes for the same keep the steps that the text has', async () => {
    const { memory, clock, scope, store } = setUp({ otherwise: operations({ new: 1, op: 'NOOP', existing: [1] }) });
    const task = 'Refund an order';
    for (const steps of [['Refund it.'], ['Ask for the order.', 'Refund it.']]) {
      clock.now += DAY;
      const procedure = { kind: 'procedural', text: procedureText(task, steps), data: { task, steps } } as const;
      await memory.ingest({ scope, source: { id: `${steps.length}` }, memories: [procedure], wait: true });
    }
    expect(await all(store)).toMatchObject([
      {
        text: procedureText(task, ['Refund it.']),
        data: { steps: ['Refund it.'] },
        sources: [{ id: '1' }, { id: '2' }],
      },
    ]);
  });

  test('do not hide what differs in a number, a negation or the order', async () => {
    const { memory, scope, store } = setUp({ model: undefined });
    const texts = ['Ada likes Bob.', 'Bob likes Ada.', 'Ada does not like Bob.', 'Ada has 2 dogs.', 'Ada has 3 dogs.'];
    await memory.ingest({ scope, source: { id: 'a' }, memories: texts, wait: true });
    expect(await textsOf(store)).toEqual(texts.toSorted());
  });

  test.each([
    ['The user programs in C++.', 'The user programs in C#.', 'The user programs in C.'],
    ['The user likes 🍕.', 'The user likes 🍣.', 'The user likes.'],
    ['The budget is $500.', 'The budget is €500.', 'The budget is 500.', 'The budget is 500%.'],
    ['The left eye has -3 dioptres.', 'The left eye has +3 dioptres.', 'The left eye has 3 dioptres.'],
    ["The hint is 'a/b'.", "The hint is 'a-b'.", "The hint is 'a b'."],
    ['The screen is 27".', "The screen is 27'.", 'The screen is 27.', 'The screen is 2⁷.', 'The screen is .27.'],
    ['The user takes vitamin A.', 'The user takes vitamin.'],
    ['The user has few friends.', 'The user has a few friends.'],
    ['Llama a Ana.', 'Llama Ana.'],
    ['An apple is fine.', 'Apple is fine.'],
    ['The user loves Turkey.', 'The user loves turkey.'],
    ['The user likes The Who.', 'The user likes Who.'],
    ['The user is in class 5A.', 'The user is in class 5.', 'The user is in class 5 A.'],
    ['The user was in Paris.', 'The user was in Pari.'],
    ["The user lives with Hans' son.", "The user lives with Han's son.", "The user lives with Hans's son."],
    ['The user does not smoke now.', 'The user does not smoke.', 'The user does not really smoke.'],
    ['Nuts are fine.', 'Nuts are fine?'],
    ['The user met Ada, Bob and Eve.', 'The user met Ada Bob and Eve.'],
    ['उपयोगकर्ता की बेटी का नाम रीमा है', 'उपयोगकर्ता की बेटी का नाम रोमा है'],
    ['ผู้ใช้มีเสื้อ', 'ผู้ใช้มีเสือ'],
    ['اسم ابن المستخدم عُمَر', 'اسم ابن المستخدم عَمْر'],
    ['...', '!!!', '👍', '👍🏽'],
  ])('do not hide what differs in a sign: %s %s', async (...texts) => {
    const { memory, scope, store } = setUp({ model: undefined });
    for (const text of texts) await memory.create({ scope, memory: text });
    expect(await textsOf(store)).toEqual(texts.toSorted());
  });

  test('do not hide a correction of a fact with a key', async () => {
    const { memory, scope, store } = setUp({ model: undefined });
    for (const text of ['The user programs in C#.', 'The user programs in C++.'])
      await memory.ingest({ scope, source: { id: 'form' }, memories: [{ text, key: 'language' }], wait: true });
    expect(await textsOf(store)).toEqual(['The user programs in C++.']);
  });

  test.each([
    '🍕🍕',
    '👍🏽 -> 🍣',
    'x'.repeat(70),
    'ຜູ້ໃຊ້ອາໄສຢູ່ນະຄອນຫຼວງວຽງຈັນແລະມັກດື່ມກາເຟລາວໃນຕອນເຊົ້າທຸກໆມື້ກ່ອນໄປເຮັດວຽກ',
    'អ្នកប្រើប្រាស់រស់នៅទីក្រុងភ្នំពេញហើយចូលចិត្តផឹកកាហ្វេនៅពេលព្រឹករាល់ថ្ងៃ',
    'အသုံးပြုသူသည်ရန်ကုန်မြို့တွင်နေထိုင်ပြီးနေ့စဉ်နံနက်တိုင်းကော်ဖီသောက်လေ့ရှိသည်',
    'སྤྱོད་མཁན་ལྷ་སར་སྡོད་ཀྱི་ཡོད་པ་དང་ཞོགས་པ་ཉིན་ལྟར་ཇ་འཐུང་གི་ཡོད།',
  ])('are found though the text has no word that spaces divide: %s', async (text) => {
    const { memory, scope, store } = setUp({ model: undefined });
    for (const id of ['a', 'b']) await memory.create({ scope, memory: text, source: { id } });
    expect(await all(store)).toMatchObject([{ text, sources: [{ id: 'a' }, { id: 'b' }] }]);
  });
});

test('a duplicate is found among many similar memories that are more trusted', async () => {
  const { memory, scope, store } = setUp({ model: undefined });
  const card = (number: number) => `Riesling Smaragd Wachau vintage tasting score card number ${number}.`;
  await memory.ingest({ scope, source: { id: 'fill' }, memories: range(0, 200).map((i) => `Fact ${i}.`), wait: true });
  await memory.ingest({ scope, source: { id: 'shop' }, memories: range(100, 114).map(card), wait: true });
  for (const id of ['a', 'b', 'c'])
    await memory.ingest({ scope, source: { id, type: 'tool' }, memories: [card(150)], wait: true });
  const found = (await all(store)).filter(({ text }) => text === card(150));
  expect(found).toMatchObject([{ sources: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] }]);
});

test('a duplicate is found among memories with the same words in another order', async () => {
  const { memory, scope, store } = setUp({ model: undefined });
  const names = ['Ann', 'Bob', 'Cid', 'Dan'];
  const orders = (some: string[]): string[][] =>
    some.length === 0
      ? [[]]
      : some.flatMap((one) => orders(some.filter((name) => name !== one)).map((rest) => [one, ...rest]));
  const texts = orders(names).map(([a, b, c, d]) => `${a} reports to ${b}, ${b} to ${c}, ${c} to ${d}.`);
  for (const id of ['a', 'b', 'c']) await memory.ingest({ scope, source: { id }, memories: texts, wait: true });
  expect(await textsOf(store)).toEqual(texts.toSorted());
});

test('a fact that expires does not end one that lasts, and a fact that lasts is not ended by it', async () => {
  const { memory, clock, scope, store } = setUp({
    otherwise: ({ request }) => {
      const known = request.messages.at(-1)!.content[0]!.text!.split('New facts:')[0]!;
      const existing = range(1, known.match(/^\| /gm)!.length + 1);
      return operations({ new: 1, op: 'DELETE', existing });
    },
  });
  const say = (id: string, text: string, more: object = {}, type: 'explicit' | 'implicit' = 'explicit') =>
    memory.create({ scope, source: { id, type }, memory: { text, ...more } });
  clock.now = Date.now() - DAY;
  await say('a', 'The user lives in Paris.');
  clock.now += 1000;
  await say('b', 'The user lives in Rome this week.', { expiresAt: new Date(clock.now + 7 * DAY).toISOString() });
  expect(await textsOf(store)).toEqual(['The user lives in Paris.', 'The user lives in Rome this week.']);
  clock.now += 1000;
  await say('c', 'The user lives in Berlin this week.', { expiresAt: new Date(clock.now + 7 * DAY).toISOString() });
  expect(await textsOf(store)).toEqual(['The user lives in Berlin this week.', 'The user lives in Paris.']);
  clock.now += 8 * DAY;
  await memory.prune({});
  expect(await textsOf(store)).toEqual(['The user lives in Paris.']);
  await say('d', 'The user lives in Oslo this week.', { expiresAt: new Date(clock.now + 7 * DAY).toISOString() });
  await memory.remove({
    scope,
    id: (await memory.list({ scope })).items.find(({ text }) => text.includes('Paris'))!.id,
  });
  clock.now += 1000;
  await say('e', 'The user lives in London.', {}, 'implicit');
  expect(await textsOf(store)).toEqual(['The user lives in London.', 'The user lives in Oslo this week.']);
});

test('a fact that one job has twice is one memory, also beside similar ones', async () => {
  const twice = Array.from({ length: 2 }, () => 'The user likes chess.');
  const { memory, scope, store } = setUp({ otherwise: operations({ new: 1, op: 'CREATE' }, { new: 2, op: 'CREATE' }) });
  await memory.create({ scope, memory: 'The user likes tea.' });
  await memory.ingest({ scope, source: { id: 'a' }, memories: twice, wait: true });
  expect(await textsOf(store)).toEqual(['The user likes chess.', 'The user likes tea.']);
});

test('a blank text is neither a memory nor a sentence for two facts', async () => {
  const blank = [' ', '\u200B', '\u3164\uFE0F\u00AD', '\u2800'];
  const update = operations({ new: 1, op: 'UPDATE', existing: [1], text: '\u200B ' });
  const milk = 'The user likes tea with milk.';
  const { memory, scope, store } = setUp({ replies: [extraction(...blank, milk), update, update] });
  await memory.create({ scope, memory: 'The user likes tea.' });
  await memory.ingest({ scope, source: { id: 'a' }, messages: [user('Tea with milk!')], wait: true });
  const messages = [...blank.map(user), user('❤️')];
  await memory.ingest({ scope, source: { id: 'b' }, messages, extract: 'verbatim', wait: true });
  expect(await textsOf(store)).toEqual(['The user likes tea with milk.', 'The user likes tea.', '❤️']);
});

describe('the answer of the model', () => {
  const known = [
    'The user drinks coffee.',
    'The user drinks tea.',
    'The user drinks milk.',
    'The user drinks juice.',
    'The user drinks water.',
  ];

  async function withKnown(...answer: object[]) {
    const set = setUp({ replies: [operations(...answer)] });
    await set.memory.ingest({ scope: set.scope, source: { id: 'old' }, memories: known.slice(0, 1), wait: true });
    for (const text of known.slice(1)) {
      set.model.reply(operations());
      await set.memory.ingest({ scope: set.scope, source: { id: 'old' }, memories: [{ text, key: text }], wait: true });
    }
    set.model.reset();
    return set;
  }

  test('may not invalidate more than three: then the fact waits for a decision', async () => {
    const { memory, model, scope, store } = await withKnown();
    model.reply(operations({ new: 1, op: 'DELETE', existing: [1, 2, 3, 4, 5] }));
    await memory.ingest({ scope, source: { id: 'new' }, memories: ['The user drinks nothing.'], wait: true });
    expect(await textsOf(store)).toEqual(known.toSorted());
    const [item] = await memory.quarantine.list({ scope });
    expect(item).toMatchObject({
      kind: 'memory',
      text: 'The user drinks nothing.',
      reason: expect.stringContaining('more than limits.maxInvalidations'),
    });

    model.reply(operations({ new: 1, op: 'DELETE', existing: [1, 2, 3, 4, 5] }));
    await memory.quarantine.approve({ scope, id: item!.id });
    expect(await textsOf(store)).toEqual(['The user drinks nothing.']);
  });

  test('is repaired if it has unknown numbers; an operation that still has them is ignored', async () => {
    const { memory, model, scope, store } = await withKnown();
    model.reply(
      operations({ new: 1, op: 'DELETE', existing: [99] }),
      operations({ new: 1, op: 'DELETE', existing: [99] }, { new: 2, op: 'NOOP' }, { new: 3, op: 'NOOP' }),
    );
    const memories = ['The user drinks nothing.', 'The user drinks little.'];
    expect(await memory.ingest({ scope, source: { id: 'new' }, memories, wait: true })).toMatchObject({
      status: 'committed',
    });
    expect(JSON.stringify(model.requests[1])).toContain('there is no existing memory 99');
    expect(await textsOf(store)).toEqual([...known, 'The user drinks nothing.'].toSorted());
  });

  test('that omits a fact loses nothing: the fact is stored', async () => {
    const { memory, model, scope, store } = await withKnown();
    model.reply(operations());
    await memory.ingest({ scope, source: { id: 'new' }, memories: ['The user drinks cocoa.'], wait: true });
    expect(await textsOf(store)).toContain('The user drinks cocoa.');
  });

  test('that joins two facts keeps the statement of each source', async () => {
    const { memory, model, scope, store } = await withKnown();
    model.reply(
      operations({ new: 1, op: 'UPDATE', existing: [1], text: 'The user drinks coffee with milk, every morning.' }),
    );
    await memory.ingest({
      scope,
      source: { id: 'new' },
      memories: ['The user drinks coffee every morning.'],
      wait: true,
    });
    const joined = (await all(store)).find(({ sources }) => sources.length === 2)!;
    expect(joined.text).toBe('The user drinks coffee with milk, every morning.');
    expect(joined.sources[1]).toMatchObject({ id: 'new', statement: 'The user drinks coffee every morning.' });
    expect(joined.revision).toBe(2);
  });
});

describe('a source is added only to a memory with the same statement', () => {
  test('so an earlier statement of a memory with a key is a separate fact', async () => {
    const { memory, clock, scope, store } = setUp({ model: undefined });
    for (const city of ['Paris', 'Berlin']) {
      clock.now += 1000;
      await memory.create({ scope, memory: { text: `The user lives in ${city}.`, key: 'home' } });
    }
    await memory.create({ scope, memory: 'The user lives in Paris.' });
    expect(await textsOf(store)).toEqual(['The user lives in Berlin.', 'The user lives in Paris.']);
  });

  const tea = 'The user likes tea.';
  const green = 'The user likes green tea from Uji most.';
  const four = 'The user drinks tea at four.';
  const both = 'The user likes tea, above all green tea from Uji.';
  const update = (fact: number, text: string) => ({ new: fact, op: 'UPDATE', existing: [1], text });

  test.each([
    ['a second sentence for the same memory', 'explicit', [update(1, both), update(2, 'The user likes tea at four.')]],
    [
      'a sentence for a memory that is replaced',
      'explicit',
      [update(1, both), { new: 2, op: 'DELETE', existing: [1] }],
    ],
    ['a sentence of a less trusted source', 'implicit', [update(1, both), { new: 2, op: 'CREATE' }]],
  ] as const)('so %s becomes a memory', async (_, type, answer) => {
    const { memory, model, scope, store } = setUp();
    await memory.create({ scope, memory: tea });
    model.reply(operations(...answer));
    await memory.ingest({ scope, source: { id: 'import', type }, memories: [green, four], wait: true });
    const isReplaced = answer.some(({ op }) => op === 'DELETE');
    expect(await textsOf(store)).toEqual([four, green, ...(isReplaced ? [] : [tea])]);
  });

  test('so a memory with a key keeps the statement of its source', async () => {
    const { memory, model, clock, scope, store } = setUp();
    const home = (city: string) => ({ text: `The user lives in ${city}.`, key: 'home' });
    await memory.create({ scope, memory: home('Paris') });
    model.reply(operations(update(1, 'The user lives in Paris with a dog.')));
    await memory.create({ scope, memory: 'The user has a dog that lives in Paris.' });
    clock.now += 1000;
    await memory.create({ scope, memory: home('Berlin') });
    expect(await textsOf(store)).toEqual(['The user has a dog that lives in Paris.', 'The user lives in Berlin.']);
  });
});

describe('a contradiction', () => {
  test('with a memory of little trust is found among more trusted ones that resemble it', async () => {
    const { ai, memory, model, scope } = setUp({ otherwise: operations({ new: 1, op: 'CREATE' }), embedder: 'money' });
    ai.defineEmbedder({ name: 'money' }, async (input) => ({
      embeddings: input.map(({ text }) => ({ embedding: text.includes('salary') ? [1, 0.1] : [1, 1] })),
    }));
    const say = (text: string, type: 'implicit' | 'bootstrap', id: string) =>
      memory.ingest({ scope, source: { id, type }, memories: [text], wait: true });
    await say('The salary of the user is paid on the 15th.', 'implicit', 'chat');
    const bills = ['rent', 'phone', 'loan', 'gym', 'gas', 'tax', 'car', 'water', 'school', 'club', 'nurse', 'garage'];
    for (const bill of bills) await say(`The ${bill} of the user is paid on the 1st.`, 'bootstrap', bill);
    await say('The salary of the user is paid on the 28th.', 'bootstrap', 'contract');
    expect(JSON.stringify(model.requests.at(-1))).toContain('paid on the 15th');
  });

  test('with one of many memories that resemble the new fact equally is looked for in the newest', async () => {
    const { memory, clock, model, scope } = setUp({ otherwise: operations({ new: 1, op: 'CREATE' }) });
    const say = (text: string) => {
      clock.now += DAY;
      return memory.ingest({ scope, source: { id: text, type: 'implicit' }, memories: [text], wait: true });
    };
    const likes = ['tea', 'milk', 'jazz', 'rock', 'golf', 'judo', 'rain', 'snow', 'cats', 'dogs', 'fish', 'beef'];
    for (const one of likes) await say(`The user likes ${one}.`);
    await say('The user became vegan.');
    const asked = JSON.stringify(model.requests.at(-1));
    expect(likes.filter((one) => asked.includes(`likes ${one}.`))).toEqual(likes.slice(2));
  });

  test('of 100 pairs leaves one valid memory each; asOf reads the old one, and it can be restored', async () => {
    const { memory, clock, model, scope, store } = setUp({ otherwise: operations() });
    const pairs = Array.from(
      { length: 100 },
      (_, i) => [`The favourite colour of person${i} is red.`, `The favourite colour of person${i} is blue.`] as const,
    );
    await memory.ingest({
      scope,
      source: { id: 'old', type: 'implicit' },
      memories: pairs.map(([red]) => ({ text: red, kind: 'declarative' })),
      wait: true,
    });
    model.reset();
    const before = new Date(clock.now).toISOString();
    clock.now += 60_000;
    for (const [red, blue] of pairs) {
      model.reply(({ request }) => {
        const prompt = request.messages.at(-1)!.content[0]!.text!;
        const lines = prompt.split('New facts:')[0]!.split('\n');
        const number = Number(lines[lines.indexOf(`| ${red}`) - 1]!.replace('.', ''));
        return operations({ new: 1, op: 'DELETE', existing: [number] });
      });
      await memory.ingest({ scope, source: { id: `new ${blue}`, type: 'implicit' }, memories: [blue], wait: true });
    }
    const holding = await textsOf(store);
    expect(holding).toEqual(pairs.map(([, blue]) => blue).toSorted());
    const then = await store.query(ID, { asOf: before, k: 1000 });
    expect(then.items.map((hit) => hit.memory.text).toSorted()).toEqual(pairs.map(([red]) => red).toSorted());
    const changed = new Date(clock.now).toISOString();
    for (const { id, validTo, supersededBy } of await all(store)) {
      if (supersededBy === undefined) continue;
      expect(validTo).toBe(changed);
      await memory.restore({ scope, id });
    }
    expect(await textsOf(store)).toEqual(pairs.map(([red]) => red).toSorted());
  });

  test('takes effect at once, even if a wrong clock dates the statement to tomorrow', async () => {
    const { memory, scope, store } = setUp({ otherwise: operations({ new: 1, op: 'DELETE', existing: [1] }) });
    await memory.ingest({ scope, source: { id: 'a' }, memories: ['The user lives in Paris.'], wait: true });
    const at = new Date(Date.now() + 86_400_000).toISOString();
    await memory.ingest({ scope, source: { id: 'b', at }, memories: ['The user lives in Rome.'], wait: true });
    expect(await textsOf(store)).toEqual(['The user lives in Rome.']);
    expect(await all(store)).toContainEqual(
      expect.objectContaining({ text: 'The user lives in Rome.', validFrom: at }),
    );
  });

  test('is decided by trust, then by time, then by the number of sources', async () => {
    const { memory, clock, model, scope, store } = setUp();
    const say = async (text: string, source: { id: string; type: 'explicit' | 'implicit' | 'tool'; at?: string }) => {
      model.reset();
      model.reply(operations({ new: 1, op: 'DELETE', existing: [1] }));
      await memory.ingest({ scope, source, memories: [text], wait: true });
    };
    await say('The user lives in Paris.', { id: 'a', type: 'explicit' });
    clock.now += 1000;
    await say('The user lives in Berlin.', { id: 'b', type: 'tool' });
    expect(await textsOf(store)).toEqual(['The user lives in Paris.']);
    const lost = (await all(store)).find(({ text }) => text.includes('Berlin'))!;
    expect(lost).toMatchObject({ supersededBy: expect.any(String), validTo: expect.any(String) });
    await say('The user lives in Oslo.', { id: 'c', type: 'explicit', at: '2025-01-01T00:00:00.000Z' });
    expect(await textsOf(store)).toEqual(['The user lives in Paris.']);
    await say('The user lives in Rome.', { id: 'd', type: 'explicit' });
    expect(await textsOf(store)).toEqual(['The user lives in Rome.']);
    const rome = (await all(store)).find(({ text }) => text.includes('Rome'))!;
    expect(rome.confidence).toBeLessThan(0.9);
  });

  test('of facts with a key needs no model', async () => {
    const { memory, clock, model, scope, store } = setUp();
    const before: string[] = [];
    for (const [i, city] of ['Paris', 'Berlin', 'Rome'].entries()) {
      await memory.ingest({
        scope,
        source: { id: `s${i}`, type: 'implicit' },
        memories: [{ text: `The user lives in ${city}.`, key: 'home' }],
        wait: true,
      });
      before.push(new Date(clock.now).toISOString());
      clock.now += 1000;
    }
    expect(await textsOf(store)).toEqual(['The user lives in Rome.']);
    for (const [i, city] of ['Paris', 'Berlin'].entries()) {
      const then = await store.query(ID, { asOf: before[i]! });
      expect(then.items.map((hit) => hit.memory.text)).toEqual([`The user lives in ${city}.`]);
    }
    await memory.forgetSource({ scope, source: 's2' });
    expect(await textsOf(store)).toEqual(['The user lives in Berlin.']);
    expect(model.requests).toHaveLength(0);
  });
});

test('a memory expires with its longest source, in any time zone', async () => {
  const { memory, scope, store } = setUp({ model: undefined });
  const times = ['2026-01-01T15:00:00+14:00', '2026-01-01T03:00:00.000Z'];
  for (const [i, expiresAt] of times.entries()) {
    const fact = { text: 'The gate is open.', expiresAt };
    await memory.ingest({ scope, source: { id: `s${i}` }, memories: [fact], wait: true });
  }
  expect(await all(store)).toMatchObject([{ expiresAt: '2026-01-01T03:00:00.000Z' }]);
});

test("a tool's fact lasts for an hour from when it was said", async () => {
  const { memory, scope, store } = setUp({ model: undefined });
  const at = '2026-01-01T02:00:00+02:30';
  await memory.ingest({
    scope,
    source: { id: 's', type: 'tool', at },
    memories: ['It arrives in 20 minutes.'],
    wait: true,
  });
  expect(await all(store)).toMatchObject([{ expiresAt: '2026-01-01T00:30:00.000Z' }]);
});

test('a fact and a procedure may have the same key', async () => {
  const { memory, scope, store } = setUp({ model: undefined });
  await memory.create({ scope, memory: { text: 'Refunds need a receipt.', key: 'refund' } });
  const procedure = { text: 'To refund: look it up.', key: 'refund', kind: 'procedural' as const };
  await memory.create({ scope, memory: procedure });
  expect((await all(store)).map(({ kind, text }) => [kind, text])).toEqual([
    ['procedural', 'To refund: look it up.'],
    ['declarative', 'Refunds need a receipt.'],
  ]);
});

describe('one session', () => {
  test.each(['home', undefined])('can state a fact again that another session replaced, key: %s', async (key) => {
    const { memory, clock, scope, store } = setUp({
      extract: ({ messages }) => messages.map(({ content }) => ({ text: content[0]!.text!, ...(key && { key }) })),
      otherwise: operations({ new: 1, op: 'DELETE', existing: [1] }),
    });
    const said: Record<string, ReturnType<typeof user>[]> = { a: [], b: [] };
    for (const [id, city] of Object.entries({ a: 'Paris', b: 'Berlin', ' a': 'Paris', ' b': 'Berlin' })) {
      clock.now += 1000;
      const messages = said[id.trim()]!;
      messages.push(user(`The user lives in ${city}.`));
      await memory.ingest({ scope, source: { id: id.trim() }, messages, wait: true });
      expect(await textsOf(store)).toEqual([`The user lives in ${city}.`]);
    }
  });

  const works = (city: string, message: number) => ({ text: `The user works in ${city}.`, messages: [message] });
  const replacing = operations({ new: 1, op: 'DELETE', existing: [1] });

  test.each([
    ['in their order', [works('Paris', 0), works('Berlin', 2)]],
    ['the correction first', [works('Berlin', 2), works('Paris', 0)]],
  ])('corrects what it has just repeated: %s', async (_, facts) => {
    for (const key of [undefined, 'work']) {
      let found: object[] = [works('Paris', 0)];
      const { memory, clock, scope, store } = setUp({
        extract: () => found.map((fact) => ({ ...fact, ...(key !== undefined && { key }) }) as never),
        otherwise: replacing,
      });
      const learn = (id: string, ...messages: ReturnType<typeof user>[]) =>
        memory.ingest({ scope, source: { id }, messages, wait: true });
      await learn('a', user('I work in Paris.'));
      clock.now += 1000;
      found = facts;
      await learn('b', user('You know that I work in Paris?'), says('Yes.'), user('Berlin from now on.'));
      expect(await textsOf(store)).toEqual(['The user works in Berlin.']);
    }
  });

  test('corrects in a list what it has just repeated', async () => {
    const { memory, scope, store } = setUp({ otherwise: replacing });
    await memory.create({ scope, memory: 'The user works in Paris.' });
    const memories = ['The user works in Paris.', 'The user works in Berlin.'];
    await memory.ingest({ scope, source: { id: 'form', type: 'explicit' }, memories, wait: true });
    expect(await textsOf(store)).toEqual(['The user works in Berlin.']);
  });

  const home = (city: string, isExplicit: boolean, key?: string) => ({
    text: `The user lives in ${city}.`,
    isExplicit,
    ...(key !== undefined && { key }),
  });

  test.each([1, 2])(
    'an implicit remark does not replace an explicit fact with a key, sessions: %i',
    async (sessions) => {
      const { memory, clock, scope, store } = setUp({
        model: undefined,
        extract: ({ messages }) =>
          messages.flatMap(({ content: [part] }) => {
            const city = /live in (\w+)/.exec(part!.text!)?.[1];
            return city === undefined ? [] : [home(city, part!.text!.startsWith('Remember'), 'home')];
          }),
      });
      const said = [user('Remember that I live in Paris.'), user('My mother and I live in Berlin in a game.')];
      for (const [i, message] of said.entries()) {
        clock.now += 1000;
        const messages = sessions === 1 ? said.slice(0, i + 1) : [message];
        await memory.ingest({ scope, source: { id: sessions === 1 ? 's' : `s${i}` }, messages, wait: true });
      }
      const [known] = await all(store);
      expect([known!.text, known!.sources.map(({ type }) => type), known!.confidence]).toEqual([
        'The user lives in Paris.',
        ['explicit', 'implicit'],
        0.81,
      ]);
    },
  );

  test.each([undefined, 'home'])('counts by the strongest type in which it says a fact, key: %s', async (key) => {
    const facts: object[] = [];
    const { memory, scope, store } = setUp({ model: undefined, extract: () => [facts.shift() as never] });
    const messages: ReturnType<typeof user>[] = [];
    for (const isExplicit of [false, true, false, true]) {
      facts.push(home('Paris', isExplicit, key));
      messages.push(user(`I live in Paris (${messages.length})`));
      await memory.ingest({ scope, source: { id: 's' }, messages, wait: true });
    }
    expect(await all(store)).toMatchObject([{ confidence: 0.9, revision: 2 }]);
  });
});

describe('where a fact comes from', () => {
  test('is among the messages that were read, whatever positions an extractor names', async () => {
    const { memory, scope, store } = setUp({
      model: undefined,
      extract: () => [{ text: 'The user likes tea.', messages: [1, 99] }],
    });
    const messages = [user('Hello.'), user('I like tea.'), user('Bye.')];
    await memory.ingest({ scope, source: { id: 'a' }, messages, wait: true });
    expect((await all(store))[0]!.sources).toMatchObject([{ from: 1, to: 2 }]);
  });

  test('decides its trust: a fact that the user asks to remember counts more, and a fact that only the assistant states is not learned', async () => {
    const { memory, scope, store, reports } = setUp({
      replies: [
        extraction(
          { text: 'The user likes tea.', messages: [0] },
          { text: 'The user is called Ada.', messages: [2], explicit: true },
          { text: 'The user lives on the moon.', messages: [1], explicit: true },
        ),
        operations({ new: 1, op: 'CREATE' }, { new: 2, op: 'CREATE' }),
      ],
    });
    const messages = [user('Tea, please.'), says('You live on the moon, I think.'), user('Remember that I am Ada.')];
    await memory.ingest({ scope, source: { id: 's' }, messages, wait: true });
    const found = await all(store);
    expect(
      found
        .map(({ text, confidence, sources: [source] }) => [text, confidence, source!.type, source!.from, source!.to])
        .toSorted((a, b) => Number(b[1]) - Number(a[1])),
    ).toEqual([
      ['The user is called Ada.', 0.9, 'explicit', 2, 3],
      ['The user likes tea.', 0.6, 'implicit', 0, 1],
    ]);
    expect(reports).toMatchObject([{ type: 'committed', changes: { created: 2, ignored: 1 } }]);
  });

  test('outputs of tools are read only on request, separately, and their facts expire after an hour', async () => {
    const messages = [
      user('Where is my order?'),
      { role: 'tool' as const, content: [{ toolResponse: { name: 'order', output: 'canary shipped' } }] },
    ];
    const off = setUp({ replies: [extraction()] });
    await off.memory.ingest({ scope: off.scope, source: { id: 's' }, messages, wait: true });
    expect(JSON.stringify(off.model.requests)).not.toContain('canary');
    const on = setUp({
      learnFromTools: true,
      replies: [
        extraction(),
        extraction({ text: 'The order of the user has shipped.', messages: [1], explicit: true }),
      ],
    });
    await on.memory.ingest({ scope: on.scope, source: { id: 's' }, messages, wait: true });
    const [told] = await all(on.store);
    expect(told).toMatchObject({
      confidence: 0.3,
      expiresAt: '2026-01-01T01:00:00.000Z',
      sources: [{ type: 'tool', trust: 0.3 }],
    });
    // If a person states the same fact, it no longer expires, until the person's statement is forgotten.
    await on.memory.create({ scope: on.scope, source: { id: 'ada' }, memory: told!.text });
    expect((await all(on.store))[0]!.expiresAt).toBeUndefined();
    expect(await on.memory.forgetSource({ scope: on.scope, source: 'ada' })).toMatchObject({ regenerated: 1 });
    expect((await all(on.store))[0]!.expiresAt).toBe(told!.expiresAt);
    on.clock.now += 3_600_001;
    expect(await on.memory.prune({})).toEqual({ memories: 1, quarantined: 0 });
    expect(await all(on.store)).toEqual([]);
  });

  test('a tool’s fact about an app is valid for an hour after its approval', async () => {
    const text = 'The shop opens at nine.';
    const { memory, clock } = setUp({
      app: true,
      learnFromTools: true,
      replies: [extraction({ text, messages: [0] })],
      otherwise: JSON.stringify({ texts: [text] }),
    });
    const scope = memory.scopeFor('app', { context: {} });
    const messages = [{ role: 'tool' as const, content: [{ toolResponse: { name: 'hours', output: text } }] }];
    await memory.ingest({ scope, source: { id: 's' }, messages, wait: true });
    clock.now += 2 * 3_600_000;
    const [waiting] = await memory.quarantine.list({ scope });
    await memory.approve({ scope, id: waiting!.id });
    const { memories } = await memory.search({ scope, query: 'When does the shop open?' });
    expect(memories.map((hit) => hit.memory.expiresAt)).toEqual([new Date(clock.now + 3_600_000).toISOString()]);
  });
});

describe('branches', () => {
  test('share the messages before they separate, and facts of an abandoned branch can be forgotten', async () => {
    const { memory, scope, store } = setUp({
      otherwise: operations(),
      extract: ({ messages }) => messages.flatMap(({ role, content }) => (role === 'user' ? content[0]!.text! : [])),
    });
    const shared = [user('I like tea.'), says('Fine.')];
    const at = (snapshotId: string) => ({ id: 's', sessionId: 's', snapshotId });
    await memory.ingest({
      scope,
      source: at('a1'),
      messages: [...shared, user('I like red.'), says('Ok.')],
      wait: true,
    });
    await memory.ingest({
      scope,
      source: at('b1'),
      messages: [...shared, user('I like blue.'), says('Ok.')],
      wait: true,
    });
    expect(await textsOf(store)).toEqual(['I like blue.', 'I like red.', 'I like tea.']);
    expect((await all(store)).find(({ text }) => text === 'I like tea.')!.sources).toHaveLength(1);
    expect(await memory.forgetSource({ scope, source: 's', snapshotIds: ['b1'] })).toMatchObject({ removed: 1 });
    expect(await textsOf(store)).toEqual(['I like red.', 'I like tea.']);
  });
});

test('the last time of a repeated fact counts, even after a hundred times', async () => {
  const { memory, clock, scope, store } = setUp({ model: undefined });
  for (const day of range(0, 130)) {
    clock.now += DAY;
    const source = { id: `day ${day}`, type: 'implicit' as const };
    await memory.ingest({ scope, source, memories: ['The user likes tea.'], wait: true });
  }
  const [{ sources }] = (await all(store)) as [Memory];
  expect(sources).toHaveLength(100);
  expect(sources.at(-1)).toMatchObject({ id: 'day 129', at: new Date(clock.now).toISOString() });
  for (const day of range(0, 100)) await memory.forgetSource({ scope, source: `day ${day}` });
  expect(await textsOf(store)).toEqual(['The user likes tea.']);
});

test('the least trusted source goes when a memory has too many', async () => {
  const { memory, scope, store } = setUp({ model: undefined });
  const say = (id: string, type: 'explicit' | 'implicit', plan: string) =>
    memory.ingest({
      scope,
      source: { id, type },
      memories: [{ text: `The plan is ${plan}.`, key: 'plan' }],
      wait: true,
    });
  await say('first', 'explicit', 'A');
  for (let i = 0; i < 100; i++) await say(`s${i}`, 'implicit', 'B');
  const [{ memory: kept } = {}] = (await store.query(ID)).items;
  expect(kept).toMatchObject({ text: 'The plan is A.' });
  expect(kept!.sources).toHaveLength(100);
});

test('a fact that a person asks to remember is stored, even if the model finds it not worth keeping', async () => {
  const { memory, scope, store } = setUp({ otherwise: operations({ new: 1, op: 'NOOP' }) });
  await memory.create({ scope, memory: 'The user likes tea.' });
  await memory.create({ scope, memory: 'The user likes green tea.' });
  expect(await textsOf(store)).toHaveLength(2);
});

test('a verbatim message is not changed by a later fact about the same subject', async () => {
  const update = operations({ new: 1, op: 'UPDATE', existing: [1], text: 'Anna likes Rome and has moved there.' });
  const { memory, scope, store } = setUp({ otherwise: update });
  await memory.ingest({
    scope,
    source: { id: 's' },
    messages: [user('Anna: I like Rome.')],
    extract: 'verbatim',
    wait: true,
  });
  await memory.ingest({ scope, source: { id: 't' }, memories: ['Anna likes Rome, too.'], wait: true });
  expect(await textsOf(store)).toEqual(['Anna likes Rome, too.', 'Anna: I like Rome.']);
});
