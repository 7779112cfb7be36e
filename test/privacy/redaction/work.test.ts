/** Redaction in a turn: numbers, the texts that the rules search, rules that fail, and models that get placeholders. */
import { GenkitError, z } from 'genkit';
import { genkit } from 'genkit/beta';
import {
  defineAgent,
  defineCustomAgent,
  FileSessionStore,
  InMemorySessionStore,
  type SessionStore,
} from 'genkitx-agents';
import { piiRules, redacting, type PrivacyRule, type RedactingOptions } from 'genkitx-agents/privacy';
import { randomUUID } from 'node:crypto';
import { Session } from 'node:inspector/promises';
import { describe, expect, test } from 'vitest';
import { call, user } from '../../agent/support/helpers.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { openStore, optionsWith, planted, Plants, SECRET } from './support.ts';

const save = (store: SessionStore, sessionId: string, ...texts: string[]) =>
  store.saveSnapshot(undefined, () => ({
    sessionId,
    createdAt: new Date().toISOString(),
    status: 'completed',
    state: { messages: texts.map(user) },
  }));

const textsOf = async (store: SessionStore, snapshotId: string | null) =>
  (await store.getSnapshot({ snapshotId: snapshotId! }))?.state?.messages?.map(({ content }) => content[0]?.text);

/** Names of people, which no rule finds by its form. */
const person: PrivacyRule = {
  name: 'person',
  maxLength: 5,
  find: (text) =>
    [...text.matchAll(/\b(?:Anna|Bob)\b/g)].map(({ index, 0: name }) => ({
      kind: 'person',
      start: index,
      end: index + name.length,
    })),
};

describe('numbers', () => {
  test('are those of the session, also in another process; another session has its own', async () => {
    const folder = temporaryFolder();
    const [a, b] = [openStore(folder, { rules: [person] }), openStore(folder, { rules: [person] })];
    expect(await textsOf(a, await save(a, 'one', 'Anna', 'Bob and Anna'))).toEqual([
      '[PERSON_1]',
      '[PERSON_2] and [PERSON_1]',
    ]);
    expect(await textsOf(b, await save(b, 'one', 'Bob'))).toEqual(['[PERSON_2]']);
    expect(await textsOf(b, await save(b, 'two', 'Bob'))).toEqual(['[PERSON_1]']);
  });

  test('stay when the secret is rotated, also beside processes that have the other order', async () => {
    const folder = temporaryFolder();
    const [old, next] = [SECRET, 'a secret that comes next'.padEnd(40, '.')];
    const open = (...secret: string[]) => openStore(folder, { secret, rules: piiRules({ kinds: ['email'] }) });
    const [before, rolling, rotated] = [open(old), open(old, next), open(next, old)];
    const saved = async (store: SessionStore, text: string) => (await textsOf(store, await save(store, 's', text)))![0];
    expect(await saved(before, 'ann@x.org bob@x.org')).toBe('[EMAIL_1] [EMAIL_2]');
    expect(await saved(rotated, 'bob@x.org carl@x.org')).toBe('[EMAIL_2] [EMAIL_3]');
    expect(await saved(rolling, 'carl@x.org ann@x.org dave@x.org')).toBe('[EMAIL_3] [EMAIL_1] [EMAIL_4]');
    expect(await saved(rotated, 'dave@x.org')).toBe('[EMAIL_4]');
    // Values numbered under the first secret need no older one.
    expect(await saved(open(next), 'carl@x.org')).toBe('[EMAIL_3]');
  });

  test('agree where two processes write at once', async () => {
    const folder = temporaryFolder();
    const stores = [openStore(folder), openStore(folder)];
    const plants = new Plants();
    const values = Array.from({ length: 6 }, () => plants.text());
    const ids = await Promise.all(
      [...values, ...values.toReversed()].map((value, i) => save(stores[i % 2]!, 'one', value)),
    );
    const texts = (await Promise.all(ids.map((id) => textsOf(stores[0]!, id)))).flat();
    expect(texts.slice(0, 6)).toEqual(texts.slice(6).toReversed());
    expect(new Set(texts).size).toBe(6);
  });
});

describe('numbers that cannot be stored refuse the save', () => {
  const failing = (method: 'readRecords' | 'writeRecord', times: number) => {
    const inner = new InMemorySessionStore();
    const original = inner[method].bind(inner) as (options: never) => Promise<never>;
    let left = times;
    inner[method] = async (options: never) => {
      if (left-- > 0) throw new GenkitError({ status: 'UNAVAILABLE', message: 'The database does not answer.' });
      return original(options);
    };
    return inner;
  };

  test.each(['readRecords', 'writeRecord'] as const)('%s fails', async (method) => {
    const inner = failing(method, 2);
    const store = redacting(inner, optionsWith({ rules: [person] }));
    await expect(save(store, 's', 'Anna')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    expect((await inner.listSessions()).items).toEqual([]);
    expect(await textsOf(store, await save(store, 's', 'Bob', 'Anna'))).toEqual(['[PERSON_1]', '[PERSON_2]']);
  });

  test.each(['readRecords', 'writeRecord'] as const)('%s fails once: the save tries again', async (method) => {
    const inner = failing(method, 1);
    expect(await textsOf(inner, await save(redacting(inner, optionsWith({ rules: [person] })), 's', 'Anna'))).toEqual([
      '[PERSON_1]',
    ]);
    const other = redacting(inner, optionsWith({ rules: [person] }));
    expect(await textsOf(inner, await save(other, 's', 'Bob', 'Anna'))).toEqual(['[PERSON_2]', '[PERSON_1]']);
  });

  test('a session has more values than a record holds', async () => {
    const inner = new InMemorySessionStore();
    const plant = Array.from({ length: 19_999 }, (_, i) => `hash-of-16-bytes-${10_000 + i}`);
    await inner.writeRecord({ sessionId: 's', kind: 'privacy', key: 'numbers', value: { plant } });
    const store = redacting(inner, optionsWith());
    expect(await textsOf(inner, await save(store, 's', 'plant-0001-x'))).toEqual(['[PLANT_20000]']);
    await expect(save(store, 's', 'plant-0002-x')).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
      message: expect.stringContaining('at most 20000 are allowed'),
    });
    expect((await inner.listSnapshots({ sessionId: 's' })).items).toHaveLength(1);
    expect(await textsOf(inner, await save(store, 's', 'again plant-0001-x'))).toEqual(['again [PLANT_20000]']);
  });
});

describe('the rules search the additions of a turn', () => {
  const TURNS = 100;
  const [asked, answered] = ['a question of some length', 'an answer that is a bit longer'];
  const perTurn = asked.length + answered.length;

  test('through our runtime, also in one call of many turns', async () => {
    const rule = planted();
    const store = redacting(new InMemorySessionStore(), optionsWith({ rules: [rule] }));
    const ai = genkit({});
    const { name } = scriptedModel(ai, { otherwise: answered });
    const agent = defineAgent(ai, { name: 'a', model: name, store });
    const seen: number[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      const before = rule.chars;
      await call(agent, [asked], { sessionId: 'one' });
      seen.push(rule.chars - before);
    }
    // Besides: names, roles, and the members beside the state.
    expect(Math.max(...seen.slice(1))).toBeLessThan(perTurn * 4);
    expect(seen.at(-1)).toBe(seen[5]);
    const before = rule.chars;
    await call(
      agent,
      Array.from({ length: TURNS }, () => asked),
      { sessionId: 'two' },
    );
    expect(rule.chars - before).toBeLessThan(TURNS * perTurn * 4);
  });

  /** The functions and loops of redaction that a turn runs, each as often as it runs, when its session has so many messages. */
  async function runsOfTurn(messages: number): Promise<number> {
    const store = redacting(new InMemorySessionStore(), optionsWith());
    const inspector = new Session();
    inspector.connect();
    await inspector.post('Profiler.enable');
    const turn = async (texts: string[]) => {
      const leaf = await store.getSnapshot({ sessionId: 's', frozen: true });
      const state = { messages: [...(leaf?.state?.messages ?? []), ...texts.map(user)], custom: { texts } };
      await store.saveSnapshot(undefined, () => ({
        sessionId: 's',
        ...(leaf && { parentId: leaf.snapshotId }),
        createdAt: new Date().toISOString(),
        status: 'completed',
        state,
      }));
    };
    await turn(Array.from({ length: messages }, (_, i) => `${asked} ${i}`));
    await turn([asked, answered]);
    await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    await turn([`${asked} again`, `${answered} again`]);
    const { result } = await inspector.post('Profiler.takePreciseCoverage');
    inspector.disconnect();
    const functions = result.filter(({ url }) => url.includes('/src/privacy/')).flatMap((file) => file.functions);
    return functions.flatMap(({ ranges }) => ranges).reduce((sum, { count }) => sum + count, 0);
  }

  test('and earlier messages are only compared by reference', async () => {
    const [short, long] = [await runsOfTurn(200), await runsOfTurn(2000)];
    expect(short).toBeGreaterThan(100);
    // Any work for each of the 1,800 further messages would show. V8 may lose a few counts when it collects garbage.
    expect(Math.abs(long - short)).toBeLessThan(100);
  });

  test("through Genkit's own agents, which read copies", async () => {
    const rule = planted();
    const store = redacting(new InMemorySessionStore(), optionsWith({ rules: [rule] }));
    const ai = genkit({});
    const plants = new Plants();
    const { name } = scriptedModel(ai, { otherwise: answered });
    const agent = ai.defineAgent({ name: 'a', model: name, store });
    const seen: number[] = [];
    let chat = agent.chat({ sessionId: 'one' });
    for (let turn = 0; turn < TURNS; turn++) {
      const before = rule.chars;
      await chat.send(`${asked} ${plants.text()}`);
      seen.push(rule.chars - before);
      if (turn % 10 === 9) chat = agent.chat({ sessionId: 'one' });
    }
    expect(Math.max(...seen.slice(1))).toBeLessThan(perTurn * 6);
    expect(seen.slice(50).reduce((a, b) => a + b)).toBeLessThan(seen.slice(1, 51).reduce((a, b) => a + b) * 1.2);
  });
});

function raise(text: string): never[] {
  if (text.includes('plant')) throw new Error(`cannot parse ${text}`);
  return [];
}

describe('rules', () => {
  const outcome = (rule: Partial<PrivacyRule>, options: object = {}) => {
    const store = redacting(new InMemorySessionStore(), {
      rules: [{ name: 'r', maxLength: 1, find: () => [], ...rule }, planted()],
      secret: SECRET,
      ...options,
    });
    return { store, saved: save(store, 's', 'plant-0001-x') };
  };

  test('may be slow', async () => {
    const rule = planted(() => new Promise((resolve) => void setImmediate(resolve)));
    const store = redacting(new InMemorySessionStore(), optionsWith({ rules: [rule] }));
    expect(await textsOf(store, await save(store, 's', 'plant-0001-x'))).toEqual(['[PLANT_1]']);
  });

  test('do not run while the store waits for the mutator, perhaps with a lock', async () => {
    const inner = new InMemorySessionStore();
    const saveInner = inner.saveSnapshot.bind(inner);
    let isWaiting = false;
    inner.saveSnapshot = (id, mutator, options) =>
      saveInner(
        id,
        (current) => {
          isWaiting = true;
          try {
            return mutator(current);
          } finally {
            isWaiting = false;
          }
        },
        options,
      );
    const asked: boolean[] = [];
    const store = redacting(inner, optionsWith({ rules: [planted(() => void asked.push(isWaiting))] }));
    const turn = { sessionId: 's', createdAt: new Date().toISOString() };
    await store.saveSnapshot('a', () => ({ ...turn, status: 'pending', state: { messages: [user('one')] } }));
    const state = { messages: [user('one'), user('two plant-0001-x')] };
    await store.saveSnapshot('a', (current) => ({ ...current!, status: 'completed', state }));
    expect(await textsOf(store, 'a')).toEqual(['one', 'two [PLANT_1]']);
    expect(new Set(asked)).toEqual(new Set([false]));
  });

  const failing: [string, Partial<PrivacyRule>][] = [
    [
      'throws',
      {
        find: () => {
          throw new Error('no service');
        },
      },
    ],
    [
      'rejects',
      {
        find: async () => {
          throw new Error('no service');
        },
      },
    ],
    ['hangs', { find: () => new Promise(() => {}) }],
    ['answers no list', { find: (() => undefined) as never }],
    ['answers no list later', { find: (async () => ({})) as never }],
    ['answers a match that is not in the text', { find: () => [{ kind: 'a', start: 5, end: 1000 }] }],
  ];
  test.each(failing)('one that %s fails the save, and nothing is written', async (_, rule) => {
    const { store, saved } = outcome(rule, { timeoutMs: 50 });
    await expect(saved).rejects.toMatchObject({ status: 'UNAVAILABLE' });
    await expect(saved).rejects.toThrow(
      /^UNAVAILABLE: The privacy rule 'r' (failed|took too long) on .+, so nothing was written/,
    );
    expect((await store.listSessions()).items).toEqual([]);
    await expect(store.writeRecord({ sessionId: 's', kind: 'k', key: 'k', value: 'x' })).rejects.toMatchObject({
      status: 'UNAVAILABLE',
    });
  });

  test.each<[string, PrivacyRule['find']]>([
    ['throws', (text) => raise(text)],
    ['rejects', async (text) => raise(text)],
  ])('the error of one that %s names the rule and the place, and quotes nothing', async (_, find) => {
    const store = redacting(new InMemorySessionStore(), optionsWith({ rules: [{ name: 'r', maxLength: 1, find }] }));
    const failure = await save(store, 's', 'hi', 'plant-0001-x').catch((error: unknown) => error);
    expect(failure).toMatchObject({
      message: expect.stringMatching(
        /^UNAVAILABLE: The privacy rule 'r' failed on '\/messages\/1', so nothing was written\. /,
      ),
      cause: { message: 'cannot parse plant-0001-x' },
    });
    expect((failure as Error).message).not.toMatch(/plant|\n|\.ts/);
    expect(JSON.stringify({ ...(failure as object) })).not.toContain('plant');
    const custom = { name: 'plant-0002-x' };
    const turn = { sessionId: 's', createdAt: new Date().toISOString(), state: { custom } };
    await expect(store.saveSnapshot('a', () => turn)).rejects.toThrow(/'r' failed on '\/custom', so/);
    await expect(save(store, 'plant-0003-x', 'hi')).rejects.toThrow(/'r' failed on the sessionId, so/);
  });

  test.each(failing)("one that %s lets the save pass with onFailure: 'write', and is tried again", async (_, rule) => {
    const { store, saved } = outcome(rule, { timeoutMs: 50, onFailure: 'write' });
    expect(await textsOf(store, await saved)).toEqual(['plant-0001-x']);
  });

  test('search texts in the state that are skipped beside it, where the runtime generates them', async () => {
    const id = randomUUID();
    const rule = { ...person, find: (text: string) => (text === id ? [{ kind: 'id', start: 0, end: id.length }] : []) };
    const store = redacting(new InMemorySessionStore(), optionsWith({ rules: [rule] }));
    await store.saveSnapshot('a', () => ({
      sessionId: 's',
      createdAt: new Date().toISOString(),
      status: 'completed',
      resumption: { of: [{ [id]: id }] },
      state: { custom: { [id]: 1 } },
    }));
    expect(await store.getSnapshot({ snapshotId: 'a' })).toMatchObject({
      resumption: { of: [{ [id]: id }] },
      state: { custom: { '[ID_1]': 1 } },
    });
  });

  test('search texts that look generated, too, where the runtime does not generate them', async () => {
    const id = randomUUID();
    const hash = 'ab'.repeat(32);
    const time = '1985-03-12T00:00:00.000Z';
    const made = [id, hash, time, '12345678'];
    const find = (text: string) => (made.includes(text) ? [{ kind: 'made', start: 0, end: text.length }] : []);
    const inner = new InMemorySessionStore();
    const store = redacting(inner, optionsWith({ rules: [{ ...person, find }, ...piiRules()] }));
    const personal = { id, birthDate: time, list: [{ hash }], to: 12_345_678, nested: { dob: time } };
    await store.saveSnapshot('a', () => ({
      sessionId: 's',
      createdAt: time,
      status: 'failed',
      error: { message: 'x', status: 'INTERNAL', details: personal },
      backgroundRun: { id, turn: { input: { detail: personal } } },
    }));
    await store.writeRecord({ sessionId: 's', kind: 'k', key: 'k', value: personal });
    const records = await inner.readRecords({ sessionId: 's', kind: 'k' });
    const stored = (await inner.getSnapshot({ snapshotId: 'a' })) as unknown as Record<string, unknown>;
    expect(stored).toMatchObject({ createdAt: time, backgroundRun: { id } });
    for (const value of [stored['error'], (stored['backgroundRun'] as { turn: unknown }).turn, records]) {
      const text = JSON.stringify(value);
      expect(made.filter((each) => text.includes(each))).toEqual([]);
      expect(text).toMatch(/"birthDate":"\[[A-Z]+_/);
    }
  });

  test('skip the parts that `except` names', async () => {
    expect(() => redacting(new InMemorySessionStore(), optionsWith({ except: ['custom/id'] }))).toThrow(
      "'except' holds 'custom/id'",
    );
    const store = redacting(
      new InMemorySessionStore(),
      optionsWith({ except: ['/custom/order/id', '/custom/items/*/sku', '/messages/*/metadata/trace'] }),
    );
    const state = {
      custom: {
        order: { id: 'plant-0001-x', of: 'plant-0002-x' },
        items: [{ sku: 'plant-0001-x', n: 'plant-0001-x' }],
      },
      messages: [{ ...user('plant-0001-x'), metadata: { trace: 'plant-0001-x' } }],
    };
    const id = await store.saveSnapshot(undefined, () => ({
      sessionId: 's',
      createdAt: new Date().toISOString(),
      status: 'completed',
      state,
    }));
    expect((await store.getSnapshot({ snapshotId: id! }))?.state).toMatchObject({
      custom: { order: { id: 'plant-0001-x', of: /\[PLANT_\d\]/ }, items: [{ sku: 'plant-0001-x' }] },
      messages: [{ metadata: { trace: 'plant-0001-x' } }],
    });
  });
});

describe('a running session', () => {
  test('continues with placeholders in its later turns, of one call too', async () => {
    const store = redacting(new InMemorySessionStore(), optionsWith());
    const ai = genkit({});
    const seen: string[] = [];
    const agent = defineCustomAgent(ai, { name: 'a', store }, async (sess) => {
      await sess.run(async () => void seen.push(JSON.stringify(sess.getMessages())));
      return {};
    });
    await call(agent, ['plant-0001-x', 'two', 'three'], { sessionId: 's' });
    expect(seen[0]).toContain('plant-0001-x');
    expect(seen[1]).toContain('[PLANT_1]');
    expect(seen.slice(1).join()).not.toContain('plant-');
  });
});

describe('a stateSchema that refuses placeholders', () => {
  const stateSchema = z.object({
    id: z
      .string()
      .regex(/^plant-\d{4}-x$/)
      .optional(),
    note: z.string().optional(),
  });

  function setUp(options: Partial<RedactingOptions> = {}) {
    const store = redacting<z.infer<typeof stateSchema>>(new InMemorySessionStore(), optionsWith(options));
    const controller = new AbortController();
    const agent = defineCustomAgent(genkit({}), { name: 'a', store, stateSchema, onAbort: 'keep' }, async (sess) => {
      await sess.run(async ({ message }) => {
        const text = message?.content[0]?.text ?? '';
        if (text !== 'read') sess.updateCustom(() => ({ id: 'plant-0001-x', note: `of plant-0001-x` }));
        if (text === 'abort') controller.abort();
      });
      return {};
    });
    const { signal } = controller;
    const turn = async (text: string) =>
      (await call(agent, [text], { sessionId: 's' }, { abortSignal: signal })).output;
    return { store, turn };
  }

  test('fails the turn, whose state is not saved, and the session continues', async () => {
    const { store, turn } = setUp();
    await turn('read');
    const { error, finishReason } = await turn('write');
    expect(finishReason).toBe('failed');
    expect(error).toMatchObject({ status: 'INTERNAL' });
    expect(error?.message).toMatch(/this turn does not fit the stateSchema.*custom\.id.*its option except/);
    expect((await store.getSnapshot({ sessionId: 's' }))?.state?.custom).toBeUndefined();
    expect((await turn('read')).finishReason).not.toBe('failed');
  });

  test('keeps no such state of an aborted turn', async () => {
    const { store, turn } = setUp();
    await turn('abort');
    const stored = await store.getSnapshot({ sessionId: 's' });
    expect(stored).toMatchObject({ status: 'aborted' });
    expect(stored?.state?.custom).toBeUndefined();
  });

  test('accepts the members that `except` names', async () => {
    const { store, turn } = setUp({ except: ['/custom/id'] });
    for (const text of ['write', 'read']) expect((await turn(text)).error).toBeUndefined();
    const { custom } = (await store.getSnapshot({ sessionId: 's' }))!.state!;
    expect(custom).toEqual({ id: 'plant-0001-x', note: 'of [PLANT_1]' });
  });
});

describe('beforeModel', () => {
  test('gives the model placeholders from the first turn, in tool loops too, and nothing is sealed', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { beforeModel: true });
    const ai = genkit({});
    const inputs: unknown[] = [];
    ai.defineTool({ name: 'look', description: 'Looks.', inputSchema: z.any() }, async (input) => {
      inputs.push(input);
      return { json: JSON.stringify({ of: 'plant-0002-x' }) };
    });
    const scripted = scriptedModel(ai, {
      replies: [
        ({ request }) => [
          { toolRequest: { name: 'look', ref: '1', input: { q: request.messages[0]?.content[0]?.text } } },
        ],
        ({ request }) => `You are ${request.messages[0]?.content[0]?.text}`,
        'again',
      ],
    });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, tools: ['look'], store });
    const { output } = await call(agent, ['plant-0001-x'], { sessionId: 's' });
    await call(agent, ['plant-0002-x'], { sessionId: 's' });
    expect(JSON.stringify(scripted.requests)).not.toContain('plant-');
    expect(inputs).toEqual([{ q: '[PLANT_1]' }]);
    expect(output.message?.content[0]?.text).toBe('You are [PLANT_1]');
    expect(scripted.requests[2]?.messages.at(-1)?.content[0]?.text).toBe('[PLANT_2]');
    const raw = new FileSessionStore(folder);
    expect((await raw.readRecords({ sessionId: 's' })).map(({ key }) => key)).toEqual(['numbers']);
    await raw.close();
  });

  test('also applies to a single call without tools; text searched for the model is not searched again', async () => {
    const rule = planted();
    const store = redacting(new InMemorySessionStore(), optionsWith({ rules: [rule], beforeModel: true }));
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store });
    const long = `plant-0001-x ${'word '.repeat(1000)}`;
    for (let turn = 0; turn < 5; turn++) await call(agent, [turn === 0 ? long : 'short'], { sessionId: 's' });
    expect(JSON.stringify(scripted.requests)).not.toContain('plant-');
    expect(rule.chars).toBeLessThan(long.length * 1.5);
  });
});

describe('a mutator', () => {
  test('that returns a different text each time is refused', async () => {
    const store = redacting(new InMemorySessionStore(), optionsWith());
    let runs = 0;
    const saved = store.saveSnapshot(undefined, () => ({
      sessionId: 's',
      createdAt: new Date().toISOString(),
      state: { custom: { text: `run ${runs++}` } },
    }));
    await expect(saved).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining('each time'),
    });
  });

  test('may return a new time on each run, and its last result counts', async () => {
    const store = redacting(new InMemorySessionStore(), optionsWith());
    let last = '';
    const id = await store.saveSnapshot(undefined, () => ({
      sessionId: 's',
      createdAt: (last = new Date(Date.parse('2026-01-01') + last.length * performance.now()).toISOString()),
      status: 'completed',
      error: { message: 'plant-0001-x' },
      // In a member that is new, too, like the claim of an approval.
      resumption: { at: last, 'plant-0002-x': { of: 'plant-0003-x' } },
      state: { messages: [user('plant-0001-x')] },
    }));
    const saved = await store.getSnapshotMetadata({ snapshotId: id! });
    expect(saved).toMatchObject({ createdAt: last, resumption: { at: last } });
    expect(JSON.stringify(saved)).toMatch(/"\[PLANT_\d\]":\{"of":"\[PLANT_\d\]"\}/);
  });
});
