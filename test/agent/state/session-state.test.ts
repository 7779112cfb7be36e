import { GenkitError, z, type ActionContext } from 'genkit';
import { InMemorySessionStore as GenkitStore } from 'genkit/beta';
import {
  agentRuntime,
  currentSession,
  defineAgent,
  defineCustomAgent,
  definePromptAgent,
  genkit,
  InMemorySessionStore,
  renderWith,
  ScopedState,
  Session,
  SessionRunner,
  SessionService,
  type Agent,
  type Json,
  type SessionSnapshot,
} from 'genkitx-agents';
import { logger } from 'genkit/logging';
import { remoteAgent } from 'genkitx-agents/client';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { serveByHandler } from '../../server/support/http.ts';
import { storeAround } from '../../session/store-around.ts';
import { call, model, recordingStore, user } from '../support/helpers.ts';

const context = { auth: { uid: 'ada' } };
const scopes = { user: z.object({ theme: z.enum(['dark', 'light']) }), app: z.object({ discount: z.number() }) };

/** An agent with one tool that runs the test's function, and the model's requests. */
function shop(work: (state: ScopedState) => void, options: object = {}) {
  const ai = genkit({});
  const asked: string[] = [];
  const scripted = scriptedModel(ai, {
    otherwise: ({ request }) => {
      asked.push(request.messages[0]?.content[0]?.text ?? '');
      if (request.messages.at(-1)?.role === 'tool') return 'done';
      return [{ toolRequest: { name: 'work', input: {} } }];
    },
  });
  ai.defineTool({ name: 'work', description: 'work', inputSchema: z.object({}) }, async () => {
    work(currentSession().state);
    return 'ok';
  });
  const store = new InMemorySessionStore();
  const config = { name: 'shop', model: scripted.name, tools: ['work'], store, scopes, ...options };
  return { ai, store, asked, agent: defineAgent(ai, config) };
}

const setAll = (state: ScopedState) => {
  state.set('step', 1);
  state.set('user:theme', 'dark');
  state.set('app:discount', 5);
  state.set('temp:note', 'short');
};

describe('the prompt of an agent', () => {
  const system = 'step {{@state.step}}, theme {{@state.[user:theme]}}, discount {{@state.[app:discount]}}';

  test('sees all keys, in its system text too; only plain keys are stored and streamed', async () => {
    const { agent, asked, store } = shop(setAll, { system });
    const chat = agent.chat({}, { context });
    for (const text of ['one', 'two']) await chat.send(text);
    expect(asked).toEqual([
      'step , theme , discount ',
      'step , theme , discount ',
      'step 1, theme dark, discount 5',
      'step 1, theme dark, discount 5',
    ]);
    const { custom } = (await store.getSnapshot({ snapshotId: chat.snapshotId! }))!.state!;
    expect(custom).toEqual({ step: 1 });
  });

  test('sees temp: values', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: ({ request }) => JSON.stringify(request.messages[0]?.content) });
    ai.definePrompt({ name: 'greet', model: scripted.name, messages: '{{@state.[temp:note]}} {{@state.step}}' });
    const seen: unknown[] = [];
    const agent = defineCustomAgent(ai, { name: 'a', store: new InMemorySessionStore() }, async (sess) => {
      await sess.run(async () => {
        sess.state.set('temp:note', 'short');
        sess.state.set('step', 1);
        const rendered = await renderWith(sess.session, () => ai.prompt('greet').render());
        seen.push(rendered.messages?.[0]?.content);
        seen.push(renderWith(sess.session, () => currentSession() === sess.session));
      });
      return {};
    });
    await call(agent, ['go']);
    expect(seen).toEqual([[{ text: 'short 1' }], true]);
  });

  test('gets all keys as the state of its functions, which may change the session', async () => {
    const given: unknown[] = [];
    const { agent } = shop(setAll, {
      system: async (_input: unknown, { state }: { state: unknown }) => {
        given.push(structuredClone(state));
        currentSession<{ seen?: number }>().updateCustom((custom) => ({ ...custom, seen: 1 }));
        return 'system';
      },
    });
    const chat = agent.chat({}, { context });
    for (const text of ['one', 'two']) await chat.send(text);
    expect(given).toEqual([{}, { seen: 1, step: 1, 'user:theme': 'dark', 'app:discount': 5 }]);
    expect(chat.state).toEqual({ seen: 1, step: 1, 'user:theme': 'dark', 'app:discount': 5 });
  });

  test('stores no key of another scope when a function merges its state into the custom state', async () => {
    type Custom = { [key: string]: unknown };
    const spread = (own: () => { getCustom(): Custom | undefined; updateCustom(change: () => Custom): void }) => () =>
      own().updateCustom(() => ({ ...own().getCustom(), seen: 1 }));
    for (const shared of [scopes, undefined]) {
      const ai = genkit({});
      const scripted = scriptedModel(ai, { otherwise: 'ok' });
      const store = new InMemorySessionStore();
      const ways = {
        current: spread(() => ai.currentSession<Custom>()),
        argument: (state: Custom) => currentSession<Custom>().updateCustom(() => ({ ...state, seen: 1 })),
      };
      for (const [name, way] of Object.entries(ways)) {
        const system = async (_input: unknown, options: { state?: unknown }) => {
          way(options.state as Custom);
          return 'system';
        };
        const inner = defineAgent(ai, { name, appName: 'shop', model: scripted.name, store, system, scopes: shared });
        const outer = defineCustomAgent(ai, { name: `of ${name}`, appName: 'shop', store, scopes }, async (sess) => {
          await sess.run(async () => {
            sess.state.set('temp:note', 'CANARY');
            const chat = inner.chat();
            await chat.send('hi');
            const snapshot = await store.getSnapshot({ snapshotId: chat.snapshotId! });
            expect(snapshot?.state?.custom).toEqual({ seen: 1 });
          });
          return {};
        });
        await new SessionService(store).createSession({
          appName: 'shop',
          userId: 'ada',
          state: { 'user:theme': 'dark' },
        });
        expect((await call(outer, ['go'], {}, { context })).output.error).toBeUndefined();
      }
    }
  });

  test('reads no member of a custom state as a key of another scope', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: ({ request }) => request.messages[0]!.content });
    const agent = defineAgent(ai, {
      name: 'a',
      model: scripted.name,
      state: 'client',
      signState: false,
      system: '[{{@state.[temp:admin]}}{{@state.[user:admin]}}{{@state.step}}]',
    });
    const custom = { 'temp:admin': true, 'user:admin': true, step: 1 };
    const { output } = await call(agent, ['hi'], { state: { custom } });
    expect(output.message?.content[0]?.text).toBe('[1]');
  });
});

describe('a client', () => {
  test('sees an updated key as it was saved, not as the turn had computed it', async () => {
    const store = new InMemorySessionStore();
    const id = { scope: 'user', appName: 'a', userId: 'ada' } as const;
    const own = { user: z.object({ n: z.number(), theme: z.string() }) };
    const agent = defineCustomAgent(genkit({}), { name: 'a', store, scopes: own }, async (sess) => {
      await sess.run(async () => {
        sess.state.update('user:n', (n) => (n ?? 0) + 1);
        const other = { sessionId: 'other', status: 'completed', createdAt: '2026-01-01T00:00:00Z' } as const;
        await store.saveSnapshot('other', () => other, { scopes: [{ id, change: () => ({ n: 5, theme: 'dark' }) }] });
      });
      return {};
    });
    const chat = agent.chat({}, { context });
    await chat.send('go');
    expect(await store.readScopes({ scopes: [id] })).toEqual([{ n: 6, theme: 'dark' }]);
    expect(chat.state).toEqual({ 'user:n': 6, 'user:theme': 'dark' });
  });

  test('sees user: and app: keys as they change and in snapshots, temp: keys never, over HTTP too', async () => {
    const { agent } = shop(setAll);
    const served = await serveByHandler([agent], { context: async () => context });
    const remote = remoteAgent({ url: `${served.url}/shop` });
    const chat = remote.chat();
    const chunks: unknown[] = [];
    const turn = chat.sendStream('hi');
    for await (const { raw } of turn.stream) chunks.push(raw);
    await turn.response;
    const all = { step: 1, 'user:theme': 'dark', 'app:discount': 5 };
    expect(JSON.stringify(chunks)).toContain('user:theme');
    expect(JSON.stringify(chunks)).not.toContain('temp:');
    expect(chat.state).toEqual(all);
    const snapshot = (await remote.getSnapshot(chat.snapshotId!))!;
    expect(snapshot.state?.custom).toEqual(all);
    expect(snapshot).not.toHaveProperty('sessionLog');
    expect((await remote.loadChat({ snapshotId: chat.snapshotId! })).state).toEqual(all);
    await served.stop();
  });

  test('sees changes of other callers, whatever its own turn changes', async () => {
    const store = new InMemorySessionStore();
    const sessions = new SessionService(store);
    const ada = { appName: 'a', userId: 'ada' };
    await sessions.createSession({ ...ada, state: { 'user:theme': 'dark' } });
    const agent = defineCustomAgent(genkit({}), { name: 'a', store, scopes }, async (sess) => {
      await sess.run(async (input) => {
        if (input.message?.content[0]?.text === 'forget') sess.state.delete('user:theme');
      });
      return {};
    });
    const [chat, other] = [agent.chat({}, { context }), agent.chat({}, { context })];
    await chat.send('hi');
    expect(chat.state).toEqual({ 'user:theme': 'dark' });
    await other.send('hi');
    await chat.send('forget');
    expect(chat.state).toBeUndefined();
    await other.send('hi');
    expect(other.state).toBeUndefined();
  });

  test('sees them after the clientTransform', async () => {
    const clientTransform = {
      state: (state: { custom?: { step?: number } }) => ({ ...state, custom: { step: state.custom?.step } }),
    };
    const { agent } = shop(setAll, { clientTransform });
    const chat = agent.chat({}, { context });
    await chat.send('hi');
    expect(chat.state).toEqual({ step: 1 });
    expect((await agent.getSnapshot(chat.snapshotId!, { context }))?.state?.custom).toEqual({ step: 1 });
  });
});

describe('a client of an agent whose code uses the state wrongly', () => {
  test('gets INTERNAL without the key', async () => {
    const works: { [text: string]: (state: ScopedState) => void } = {
      value: (state) => state.set('user:hiddenScore', { internalFlag: 1n } as never),
      scope: (state) => void state.get('app:hiddenScore'),
      promise: (state) => state.update('user:hiddenScore', (async () => 1) as never),
      list: (state) => state.set('hiddenScore', 1),
    };
    const agent = defineCustomAgent(
      genkit({}),
      { name: 'a', store: new InMemorySessionStore(), scopes: { user: z.record(z.string(), z.any()) } },
      async (sess) => {
        await sess.run(async (input) => {
          const text = input.message!.content[0]!.text!;
          if (text === 'list') sess.updateCustom(() => [1] as never);
          works[text]!(sess.state);
        });
        return {};
      },
    );
    const served = await serveByHandler([agent], { context: async () => context });
    const chat = remoteAgent({ url: `${served.url}/a` }).chat();
    for (const text of Object.keys(works)) {
      const error: unknown = await chat.send(text).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ status: 'INTERNAL', message: 'Something went wrong inside the agent.' });
      expect(JSON.stringify((error as { details: unknown }).details)).not.toMatch(/hidden|internalFlag/);
    }
    await served.stop();
  });
});

describe('outputKey', () => {
  test('stores the parsed output with an output schema, otherwise the text', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: '{"city":"Bern"}' });
    ai.definePrompt({ name: 'places', model: scripted.name, output: { schema: z.object({ city: z.string() }) } });
    const store = new InMemorySessionStore();
    const structured = definePromptAgent(ai, { promptName: 'places', store, outputKey: 'place' });
    const text = defineAgent(ai, { name: 'text', model: scripted.name, store, outputKey: 'place' });
    const kept = async (agent: typeof text) => {
      const { output } = await call(agent, ['hi']);
      return (await store.getSnapshot({ snapshotId: output.snapshotId! }))?.state?.custom;
    };
    expect(await kept(structured)).toEqual({ place: { city: 'Bern' } });
    expect(await kept(text)).toEqual({ place: '{"city":"Bern"}' });
  });

  test('stores null if that is the output, and the text if the reply has no output', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { replies: ['null', 'no idea'] });
    const store = new InMemorySessionStore();
    ai.definePrompt({ name: 'maybe', model: scripted.name, output: { format: 'json', schema: z.string().nullable() } });
    const asked = definePromptAgent(ai, { promptName: 'maybe', store, outputKey: 'answer' });
    const custom = defineCustomAgent(ai, { name: 'custom', store, outputKey: 'answer' }, async (sess) => {
      await sess.run(async () => {
        sess.addMessages([model('text')]);
        return { output: null };
      });
      return {};
    });
    const kept = async (agent: Agent) => {
      const { output } = await call(agent, ['hi']);
      return (await store.getSnapshot({ snapshotId: output.snapshotId! }))?.state?.custom;
    };
    expect(await kept(asked)).toEqual({ answer: null });
    expect(await kept(asked)).toEqual({ answer: 'no idea' });
    expect(await kept(custom)).toEqual({ answer: null });
  });

  test('stores the output of a custom agent’s handler', async () => {
    const store = new InMemorySessionStore();
    const agent = defineCustomAgent(genkit({}), { name: 'a', store, outputKey: 'user:total' }, async (sess) => {
      await sess.run(async () => ({ output: 0 }));
      return {};
    });
    await agent.run({ message: user('hi') }, { init: {}, context });
    expect(await store.readScopes({ scopes: [{ scope: 'user', appName: 'a', userId: 'ada' }] })).toEqual([
      { total: 0 },
    ]);
  });

  test('of a user: key needs a user before the model is asked', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    const store = new InMemorySessionStore();
    const agent = defineAgent(ai, { name: 'a', model: scripted.name, store, outputKey: 'user:reply' });
    const { output } = await call(agent, ['hi']);
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'FAILED_PRECONDITION' } });
    expect(output.error?.message).toContain('names no user');
    expect(scripted.requests).toHaveLength(0);
  });

  test('refuses a reply beyond its limits; the reply is delivered and saved', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'x'.repeat(256 * 1024 + 1) });
    const store = new InMemorySessionStore();
    const config = { name: 'a', model: scripted.name, store, outputKey: 'internal_reply' };
    const agent = defineAgent(ai, config);
    const warn = vi.spyOn(logger, 'warn').mockReturnValue();
    const chat = agent.chat();
    const { raw, text, finishReason } = await chat.send('hi');
    expect([text.length, finishReason]).toEqual([256 * 1024 + 1, 'stop']);
    expect(raw.error).toMatchObject({ status: 'INVALID_ARGUMENT' });
    expect(raw.error?.message).toMatch(/"internal_reply".*takes more than 262144 bytes/);
    expect(warn.mock.calls).toEqual([[expect.stringMatching(/^The answer of agent 'a' .*"internal_reply"/)]]);
    // The next turn sees the reply, and a key that has no value.
    expect((await chat.send('and?')).raw.error).toBeDefined();
    expect(scripted.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'model', 'user']);
    expect((await store.getSnapshot({ snapshotId: chat.snapshotId! }))?.state?.custom).toBeUndefined();

    const served = await serveByHandler([agent], { anonymous: true });
    const remote = await remoteAgent({ url: `${served.url}/a` })
      .chat()
      .send('hi');
    expect(remote.text).toHaveLength(256 * 1024 + 1);
    expect(remote.raw.error).toMatchObject({ status: 'INTERNAL' });
    expect(JSON.stringify(remote.raw.error)).not.toContain('internal_reply');
    await served.stop();
    warn.mockRestore();
  });

  test('that refuses a reply reports it, also when the agent’s function changes the session after its turn', async () => {
    const store = new InMemorySessionStore();
    const agent = defineCustomAgent(genkit({}), { name: 'a', store, outputKey: 'sum' }, async (sess) => {
      await sess.run(async () => ({ finishReason: 'stop', output: Number.NaN }));
      sess.state.set('after', true);
      return { message: model('done') };
    });
    const { result } = await agent.run({ message: user('hi') }, { init: {} });
    expect(result).toMatchObject({
      finishReason: 'stop',
      error: { status: 'INVALID_ARGUMENT' },
      message: model('done'),
    });
    expect((await store.getSnapshot({ snapshotId: result.snapshotId! }))?.state?.custom).toEqual({ after: true });
  });

  test('stores nothing for a turn that fails or waits for the caller', async () => {
    const ai = genkit({});
    const replies = [[{ toolRequest: { name: 'approve', input: {} } }], () => Promise.reject(new Error('no model'))];
    const scripted = scriptedModel(ai, { replies });
    ai.defineInterrupt({ name: 'approve', description: 'asks', inputSchema: z.object({}) });
    const store = new InMemorySessionStore();
    const agent = defineAgent(ai, {
      name: 'a',
      model: scripted.name,
      tools: ['approve'],
      store,
      outputKey: 'user:reply',
    });
    for (const reason of ['interrupted', 'failed']) {
      const { result } = await agent.run({ message: user('hi') }, { init: {}, context });
      expect(result.finishReason).toBe(reason);
    }
    expect(await store.readScopes({ scopes: [{ scope: 'user', appName: 'a', userId: 'ada' }] })).toEqual([{}]);
  });
});

test('records that cannot be read when a later turn begins fail it, in the background too, and its input is kept', async () => {
  const inner = new InMemorySessionStore();
  let isAnswered = false;
  const store = storeAround(inner, (name, _args, make) => {
    if (name === 'readScopes' && isAnswered) throw new GenkitError({ status: 'PERMISSION_DENIED', message: 'no' });
    return make();
  });
  const ai = genkit({});
  const answer = () => ((isAnswered = true), 'ok');
  const agent = defineAgent(ai, { name: 'a', model: scriptedModel(ai, { otherwise: answer }).name, store, scopes });
  const { output } = await call(agent, ['one', { message: user('two'), detach: true }], {}, { context });
  const failed = await new Promise<SessionSnapshot>((resolve) => {
    inner.onSnapshotStateChange(output.snapshotId!, (snapshot) => snapshot.status !== 'pending' && resolve(snapshot));
  });
  expect(failed).toMatchObject({ status: 'failed', state: { messages: [user('one'), model('ok'), user('two')] } });
});

describe('a name with the prefix of another scope', () => {
  const writer = (options: object, change: (custom?: { [key: string]: unknown }) => { [key: string]: unknown }) =>
    defineCustomAgent(genkit({}), { name: 'a', ...options }, async (sess) => {
      await sess.run(async () => {
        const session = sess.session as Session<{ [key: string]: unknown }>;
        try {
          session.updateCustom(change);
        } finally {
          seen.push(structuredClone(session.getCustom()));
        }
      });
      return {};
    });
  const seen: unknown[] = [];
  const store = new InMemorySessionStore();

  test('is refused as a new member of the custom state of an agent with shared state', async () => {
    seen.length = 0;
    const changes = [
      (custom: object = {}) => ({ ...custom, 'temp:x': 'CANARY' }),
      (custom: object = {}) => Object.assign(custom, { 'user:x': 'CANARY' }),
      (custom: object = {}) => Object.freeze({ ...custom, 'app:x': 'CANARY' }),
    ];
    for (const change of changes) {
      const { output } = await call(writer({ store, scopes }, change), ['go'], {}, { context });
      expect(output.error).toMatchObject({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining('session.state'),
      });
    }
    expect(JSON.stringify(seen)).not.toContain('CANARY');
  });

  test('is kept in an existing custom state, as an ordinary member', async () => {
    seen.length = 0;
    const change = (custom: object = {}) => ({ ...custom, 'user:7': { visits: 1 } });
    const sessionId = 'before';
    expect((await call(writer({ store }, change), ['go'], { sessionId }, { context })).output.error).toBeUndefined();
    const { output } = await call(writer({ store, scopes }, change), ['go'], { sessionId }, { context });
    expect(output.error).toBeUndefined();
    expect(seen).toEqual([{ 'user:7': { visits: 1 } }, { 'user:7': { visits: 1 } }]);
  });

  test('is refused in an unsigned state of a caller, and never sent there', async () => {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    ai.definePrompt({ name: 'greet', model: scripted.name, messages: 'admin={{@state.[user:admin]}}' });
    const texts: unknown[] = [];
    const define = (options: object) =>
      defineCustomAgent(ai, { name: 'a', state: 'client', ...options }, async (sess) => {
        await sess.run(async () => void texts.push((await ai.prompt('greet').render()).messages?.[0]?.content));
        return {};
      });
    const state = { custom: { 'user:admin': true } };
    const { output } = await call(define({}), ['hi'], { state });
    expect(output.error).toMatchObject({ status: 'INVALID_ARGUMENT', message: expect.stringContaining('user:admin') });
    expect(texts).toEqual([]);
    seen.length = 0;
    const set = (custom: object = {}) => ({ ...custom, 'user:admin': true });
    expect((await call(writer({ state: 'client' }, set), ['go'])).output.error?.status).toBe('INVALID_ARGUMENT');
    expect(
      (await call(writer({ state: 'client', signState: 'k'.repeat(32) }, set), ['go'])).output.error,
    ).toBeUndefined();
  });
});

describe('an impossible use is refused', () => {
  const failure = async (work: (state: ScopedState) => void, options: object, given: object) => {
    const agent = defineCustomAgent(genkit({}), { name: 'shop', ...options }, async (sess) => {
      await sess.run(async () => work(sess.state));
      return {};
    });
    return (await call(agent, ['go'], {}, { context: given })).output.error;
  };
  const touch = (state: ScopedState) => void state.get('user:theme');
  const store = new InMemorySessionStore();

  test('by the turn: no user, a scope that the agent does not name, no store, a value that does not fit', async () => {
    expect((await failure(touch, { store, scopes }, {}))?.message).toContain('the call names no user');
    expect((await failure(touch, { store }, context))?.message).toContain('set scopes: { user: z.object');
    expect((await failure(touch, { state: 'client' }, context))?.message).toContain('a store that keeps scopes');
    const unfit = await failure((state) => state.set('user:theme', 'pink'), { store, scopes }, context);
    expect([unfit?.status, unfit?.message]).toEqual(['INVALID_ARGUMENT', expect.stringContaining('user:theme')]);
    const long = await failure((state) => state.set('x', 'long'), { store, limits: { maxValueBytes: 4 } }, context);
    expect(long?.message).toContain('more than 4 bytes');
    const userId = () => ' ';
    expect((await failure(() => {}, { store, userId }, context))?.message).toContain('must be a string');
  });

  test('when the agent is defined', () => {
    const define = (options: object) => () => defineAgent(genkit({}), { name: 'shop', ...options });
    expect(define({ scopes })).toThrow('but has no store');
    expect(define({ store: new GenkitStore(), scopes })).toThrow('its store keeps no scopes');
    expect(define({ outputKey: 'user:reply' })).toThrow('this outputKey');
    expect(define({ store, scopes: { users: z.object({}) } })).toThrow("no option 'users'");
    expect(define({ store, scopes: { user: true } })).toThrow('a Zod schema');
    expect(define({ store, outputKey: '' })).toThrow('outputKey');
    expect(define({ store, outputKey: 'k'.repeat(257) })).toThrow('at most 256 are allowed');
    expect(define({ store, outputKey: 'user:reply', limits: { maxKeyLength: 9 } })).toThrow('at most 9 are allowed');
    const step = z.object({ step: z.number() });
    expect(define({ store, stateSchema: step.strict(), outputKey: 'reply' })).toThrow('the schema has no such key');
    expect(define({ store, scopes: { user: step.strict() }, outputKey: 'user:reply' })).toThrow('no such key');
    for (const outputKey of ['reply', 'step', 'temp:reply']) define({ store, stateSchema: step, outputKey })();
    expect(define({ store, appName: ' ' })).toThrow('appName');
    expect(define({ store, limits: { maxDepth: -1 } })).toThrow('maxDepth');
  });

  test('outside of an agent there is no current session', () => {
    expect(() => currentSession()).toThrow('outside of an agent');
  });
});

test('agents of one app share what belongs to its users, by agentRuntime or by name', async () => {
  const store = new InMemorySessionStore();
  const userId = (given: ActionContext) => given['login'] as string | undefined;
  const ai = genkit({ plugins: [agentRuntime({ store, appName: 'shop', userId })] });
  const seen: unknown[] = [];
  for (const name of ['one', 'two']) {
    const agent = defineCustomAgent(ai, { name, scopes }, async (sess) => {
      await sess.run(async () => {
        seen.push(sess.state.get('user:theme'));
        sess.state.set('user:theme', 'light');
      });
      return {};
    });
    await call(agent, ['go'], {}, { context: { login: 'ada' } });
  }
  expect(seen).toEqual([undefined, 'light']);
});

test('a session without an agent has plain and temp: keys', async () => {
  const session = new Session<{ step: number }>();
  session.state.set('step', 1);
  session.state.set('temp:x', 1);
  expect([session.getCustom(), session.state.toObject()]).toEqual([{ step: 1 }, { step: 1, 'temp:x': 1 }]);
  expect(() => (session as Session).state.get('user:x')).toThrow('FAILED_PRECONDITION');
  expect(new SessionRunner(session, (async function* () {})()).state.get('step')).toBe(1);
});

test('a turn without shared state makes no further store calls, on any store', async () => {
  const { store, calls } = recordingStore(new InMemorySessionStore());
  const agent = defineCustomAgent(genkit({}), { name: 'a', store }, async (sess) => {
    await sess.run(async () => {
      sess.state.set('step', 1);
      sess.addMessages([model('ok')]);
    });
    return {};
  });
  await call(agent, ['one'], { sessionId: 's' }, { context });
  await call(agent, ['two'], { sessionId: 's' }, { context });
  expect(calls.map(({ method }) => method)).toEqual(['getSnapshot', 'saveSnapshot', 'getSnapshot', 'saveSnapshot']);
});

test('the state is typed by the schemas', () => {
  const stateSchema = z.object({ step: z.number() });
  defineCustomAgent(genkit({}), { name: 'a', store: new InMemorySessionStore(), stateSchema, scopes }, async (sess) => {
    expectTypeOf(sess.state.get('step')).toEqualTypeOf<number | undefined>();
    expectTypeOf(sess.session.state.get('user:theme')).toEqualTypeOf<'dark' | 'light' | undefined>();
    expectTypeOf(sess.state.get('app:discount')).toEqualTypeOf<number | undefined>();
    sess.state.set('temp:note', ['anything']);
    // @ts-expect-error -- There is no such theme.
    sess.state.set('user:theme', 'pink');
    // @ts-expect-error -- There is no such key.
    sess.state.get('app:sale');
    return {};
  });
  defineCustomAgent(genkit({}), { name: 'b', store: new InMemorySessionStore(), scopes }, async (sess) => {
    const { state } = sess;
    // Plain keys may be any: keys of scopes may not.
    state.set('step', [1]);
    expectTypeOf(state.get('user:theme')).toEqualTypeOf<'dark' | 'light' | undefined>();
    state.update('app:discount', (discount) => (discount ?? 0) + 1);
    for (const either of ['user:theme', 'temp:theme'] as const) {
      expectTypeOf(state.get(either)).toEqualTypeOf<Json | undefined>();
    }
    // @ts-expect-error -- There is no such theme.
    state.set('user:theme', 'pink');
    // @ts-expect-error -- There is no such key.
    state.set('user:undeclared', 1);
    // @ts-expect-error -- There is no such key.
    state.get('app:undeclared');
    // @ts-expect-error -- There is no such key.
    state.update('user:undeclared', () => 1);
    // @ts-expect-error -- There is no such key.
    state.delete('app:undeclared');
    // @ts-expect-error -- A key that is not known may be one that there is not.
    state.get(`user:${sess.sessionId}` as const);
    return {};
  });
  defineCustomAgent(genkit({}), { name: 'c', store: new InMemorySessionStore() }, async ({ state }) => {
    const key = 'user:anything' as string;
    for (const any of [key, `app:${key}`, 'step'] as const) state.set(any, 1);
    state.set('user:anything', { nested: [1] });
    return {};
  });
  type Theme = { theme: 'dark' | 'light' };
  const typed = () => currentSession<{ step: number }, Theme>().state.get('user:theme');
  expectTypeOf(typed).returns.toEqualTypeOf<Theme['theme'] | undefined>();
  // @ts-expect-error -- There is no such key.
  const mistyped = () => currentSession<unknown, Theme>().state.get('user:undeclared');
  expectTypeOf(mistyped).toBeFunction();
});
