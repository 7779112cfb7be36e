import { genkit as stableGenkit, z } from 'genkit';
import {
  genkit as betaGenkit,
  InMemorySessionStore as GenkitStore,
  type Agent as GenkitAgent,
  type AgentFn as GenkitAgentFn,
  type GenkitBeta,
} from 'genkit/beta';
import {
  agentRuntime,
  defineAgent,
  defineCustomAgent,
  definePromptAgent,
  genkit,
  InMemorySessionStore,
  type Agent,
  type Session,
  type SessionStore,
} from 'genkitx-agents';
import { describe, expect, expectTypeOf, test, vi } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, model, user } from '../support/helpers.ts';

const managed = (agent: { __action: { metadata?: Record<string, unknown> } }) =>
  (agent.__action.metadata?.['agent'] as { stateManagement?: string } | undefined)?.stateManagement;

describe('agentRuntime', () => {
  test('gives agents without a store the default one', async () => {
    const store = new GenkitStore();
    const ai = stableGenkit({ plugins: [agentRuntime({ store })] });
    const agent = defineAgent(ai, { name: 'a', model: scriptedModel(ai, { otherwise: 'ok' }).name });
    const { output } = await call(agent, ['hi']);
    expect((await store.getSnapshot({ snapshotId: output.snapshotId }))?.status).toBe('completed');
  });

  test('does so for every kind of agent, by instance and by registry', () => {
    const ai = stableGenkit({ plugins: [agentRuntime({ store: new GenkitStore() })] });
    const fn = async () => ({});
    let count = 0;
    const next = () => `agent${++count}`;
    for (const where of [ai, ai.registry]) {
      expect(managed(defineAgent(where, { name: next() }))).toBe('server');
      expect(managed(definePromptAgent(where, { promptName: next() }))).toBe('server');
      expect(managed(defineCustomAgent(where, { name: next() }, fn))).toBe('server');
      expect(managed(defineAgent(where, { name: next(), state: 'client' }))).toBe('client');
      expect(managed(definePromptAgent(where, { promptName: next(), state: 'client' }))).toBe('client');
      expect(managed(defineCustomAgent(where, { name: next(), state: 'client' }, fn))).toBe('client');
    }
  });

  test("an agent's own store goes before the default one, and instances do not share defaults", async () => {
    const [own, other] = [new GenkitStore(), new GenkitStore()];
    const ai = stableGenkit({ plugins: [agentRuntime({ store: other })] });
    const agent = defineAgent(ai, { name: 'a', model: scriptedModel(ai, { otherwise: 'ok' }).name, store: own });
    const { output } = await call(agent, ['hi']);
    expect(await own.getSnapshot({ snapshotId: output.snapshotId })).toBeDefined();
    expect(managed(defineAgent(stableGenkit({}), { name: 'a' }))).toBe('client');
  });

  test('is found by another copy of the package, as the CommonJS one is', async () => {
    const ai = stableGenkit({ plugins: [agentRuntime({ store: new GenkitStore() })] });
    vi.resetModules();
    const other = await import('genkitx-agents');
    expect(other.defineAgent).not.toBe(defineAgent);
    expect(managed(other.defineAgent(ai, { name: 'a' }))).toBe('server');
  });

  test.each([
    [
      { stor: new GenkitStore() },
      "agentRuntime has no option 'stor': did you mean 'store'? It has store, background, onConflict, storeTimeoutMs, appName, userId, inspector.",
    ],
    [{ store: {} }, 'agentRuntime: store must be a session store'],
    [{ store: null }, 'agentRuntime: store must be a session store'],
    // More than a timer can hold: each call of the store would time out at once.
    [{ storeTimeoutMs: 2 ** 31 }, 'agentRuntime: storeTimeoutMs must be a whole number from 1 to'],
  ])('refuses options that it does not know or cannot use: %o', (options, sentence) => {
    expect(() => agentRuntime(options as never)).toThrow(sentence);
  });

  test.each([
    [{ name: 'a', state: 'server' }, "state must be 'client'"],
    [{ name: 'a', state: 'client', store: new GenkitStore() }, "has both a store and state: 'client'"],
    [{ name: ' ' }, 'An agent needs a name.'],
  ])('an agent whose configuration contradicts itself is refused: %o', (config, sentence) => {
    expect(() => defineAgent(stableGenkit({}), config as never)).toThrow(sentence);
  });
});

describe('the session actions', () => {
  const actions = async (store?: SessionStore) =>
    Object.keys(await stableGenkit({ plugins: [agentRuntime({ store })] }).registry.listActions()).filter((key) =>
      key.includes('genkitx-agents'),
    );

  test('are registered in the namespace of the plugin, for what the default store can do', async () => {
    expect(await actions(new InMemorySessionStore())).toEqual([
      '/custom/genkitx-agents/listSessions',
      '/custom/genkitx-agents/listSnapshots',
      '/custom/genkitx-agents/deleteSession',
      '/custom/genkitx-agents/pruneSessions',
    ]);
    expect(await actions(new GenkitStore())).toEqual([]);
    expect(await actions()).toEqual([]);
  });

  test("list, count before pruning, and delete, within the caller's tenant", async () => {
    const store = new InMemorySessionStore({
      snapshotPathPrefix: (options) => String(options?.context?.auth?.['uid']),
    });
    const ai = stableGenkit({ plugins: [agentRuntime({ store })] });
    const agent = defineAgent(ai, { name: 'a', model: scriptedModel(ai, { otherwise: 'ok' }).name });
    const context = { auth: { uid: 'ada' } };
    await call(agent, ['one', 'two', 'three'], { sessionId: 's' }, { context });
    const run = async (name: string, input: object, as = context): Promise<unknown> =>
      (await ai.registry.lookupAction(`/custom/genkitx-agents/${name}`))(input, { context: as });
    expect(await run('listSessions', {})).toMatchObject({ items: [{ sessionId: 's', snapshotCount: 3 }] });
    expect(await run('listSessions', {}, { auth: { uid: 'eve' } })).toEqual({ items: [] });
    expect(await run('listSnapshots', { sessionId: 's', limit: 2 })).toMatchObject({
      items: [{}, {}],
      nextCursor: expect.any(String) as string,
    });
    expect(await run('pruneSessions', { maxChainLength: 1, dryRun: true })).toMatchObject({
      snapshots: 2,
      dryRun: true,
    });
    expect(await run('listSessions', {})).toMatchObject({ items: [{ snapshotCount: 3 }] });
    expect(await run('pruneSessions', { maxChainLength: 1 })).toMatchObject({ snapshots: 2, dryRun: false });
    expect(await run('deleteSession', { sessionId: 's' })).toMatchObject({ snapshots: 1 });
    expect(await run('listSessions', {})).toEqual({ items: [] });
  });
});

describe("genkit(), the drop-in for genkit/beta's", () => {
  test('is a Genkit instance whose agents are ours', async () => {
    const ai = genkit({ plugins: [agentRuntime({ store: new InMemorySessionStore() })] });
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    ai.definePrompt({ name: 'prompted', model: scripted.name });
    const agents = [
      ai.defineAgent({ name: 'talking', model: scripted.name }),
      ai.definePromptAgent({ promptName: 'prompted' }),
      ai.defineCustomAgent({ name: 'custom' }, async (sess) => {
        await sess.run(async () => sess.addMessages([model('ok')]));
        return { message: model('ok') };
      }),
    ];
    for (const agent of agents) {
      expect(managed(agent)).toBe('server');
      expect((await agent.chat().send('hi')).text).toBe('ok');
    }
    expect((await ai.generate({ model: scripted.name, prompt: 'hi' })).text).toBe('ok');
    expect(typeof ai.defineInterrupt).toBe('function');
  });

  test('takes what is written and typed for genkit/beta', async () => {
    type State = { count: number };
    const fn: GenkitAgentFn<State> = async (sess) => {
      await sess.run(async (input, { turnIndex }) => {
        sess.updateCustom((custom) => ({ count: (custom?.count ?? turnIndex) + 1 }));
        sess.addMessages([{ role: 'model', content: input.message?.content ?? [] }]);
        return { finishReason: 'stop' };
      });
      return { message: sess.getMessages().at(-1), artifacts: sess.getArtifacts() };
    };
    const stateSchema = z.object({ count: z.number() });
    for (const ai of [genkit({}), betaGenkit({})] as ReturnType<typeof betaGenkit>[]) {
      const agent = ai.defineCustomAgent<State>({ name: 'counting', stateSchema, store: new GenkitStore() }, fn);
      const { result } = await agent.run({ message: user('hi') }, { init: {} });
      expect(result).toMatchObject({ message: model('hi'), finishReason: 'stop' });
      expect((await agent.getSnapshot(result.snapshotId as string))?.state?.custom).toEqual({ count: 1 });
    }
  });

  test("an agent is assignable to Genkit's type, and its state is inferred from the schema", () => {
    const ai = genkit({});
    const stateSchema = z.object({ orderId: z.string().optional(), visits: z.number() });
    const inferred = ai.defineAgent({ name: 'a', stateSchema, store: new GenkitStore() });
    expectTypeOf(inferred).toExtend<GenkitAgent<{ orderId?: string; visits: number }>>();
    expectTypeOf(inferred.chat().state).toEqualTypeOf<{ orderId?: string; visits: number } | undefined>();
    expectTypeOf(defineAgent(ai, { name: 'b', stateSchema })).toEqualTypeOf<Agent<z.output<typeof stateSchema>>>();
    ai.defineCustomAgent({ name: 'c', stateSchema, store: new GenkitStore() }, async (sess) => {
      expectTypeOf(sess.getCustom()).toEqualTypeOf<z.output<typeof stateSchema> | undefined>();
      return {};
    });
    expectTypeOf(ai).toExtend<GenkitBeta>();
    expectTypeOf<typeof ai.currentSession<{ step: number }, { theme: string }>>().returns.toEqualTypeOf<
      Session<{ step: number }, { theme: string }>
    >();
    const readStep = () => ai.currentSession<{ step: number }>().state.get('step');
    expectTypeOf(readStep).returns.toEqualTypeOf<number | undefined>();
    expectTypeOf(defineAgent(ai, { name: 's', store: new GenkitStore<{ n: number }>() })).toEqualTypeOf<
      Agent<{ n: number }>
    >();
    const shared: SessionStore = new GenkitStore();
    expectTypeOf(ai.defineAgent({ name: 't', stateSchema, store: shared })).toEqualTypeOf<
      Agent<z.output<typeof stateSchema>>
    >();
    const input = z.object({ tone: z.enum(['kind', 'stern']) });
    ai.defineAgent({ name: 'd', input: { schema: input }, promptInput: { tone: 'kind' } });
    // @ts-expect-error -- The prompt knows no such tone.
    ai.defineAgent({ name: 'e', input: { schema: input }, promptInput: { tone: 'loud' } });
    // @ts-expect-error -- There is no such option.
    expect(() => ai.defineAgent({ name: 'f', stateShema: stateSchema })).toThrow("did you mean 'stateSchema'?");
    // The state is checked, not parsed: what a default would fill in may be absent, and nothing is transformed.
    const defaulted = defineAgent(ai, { name: 'g', stateSchema: z.object({ visits: z.number().default(0) }) });
    expectTypeOf(defaulted.chat().state).toEqualTypeOf<{ visits?: number } | undefined>();
    const transforming = z.object({ visits: z.string().transform(Number) });
    // @ts-expect-error -- The state would be of another type than the schema's.
    defineAgent(ai, { name: 'h', stateSchema: transforming });
  });
});
