// oxlint-disable typescript/unbound-method -- the agent's methods are functions without a receiver
import { genkit as genkitBeta, z, type PromptConfig } from 'genkit/beta';
import type { AgentConfig as GenkitAgentConfig, defineCustomAgent as genkitCustom } from '@genkit-ai/ai';
import type { definePromptAgent as genkitPrompt } from '@genkit-ai/ai';
import {
  agentRuntime,
  defineAgent,
  defineCustomAgent,
  definePromptAgent,
  InMemorySessionStore,
  SessionService,
} from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { agentHandler } from 'genkitx-agents/server';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';

/** As JavaScript calls it, which has no types. */
type Loose = (...args: unknown[]) => unknown;

const loose = (fn: unknown) => fn as Loose;

async function refusal(fn: () => unknown): Promise<{ status: string; message: string }> {
  try {
    await fn();
  } catch (error) {
    const { status, message } = error as { status: string; message: string };
    return { status, message };
  }
  throw new Error('It was not refused.');
}

function setUp() {
  const ai = genkitBeta({});
  const scripted = scriptedModel(ai, { otherwise: 'ok' });
  const store = new InMemorySessionStore();
  return { ai, scripted, store, agent: defineAgent(ai, { name: 'known', model: scripted.name, store }) };
}

describe('an unknown option is refused with the known ones', () => {
  const noop = async () => ({});
  const { ai, agent, store } = setUp();
  const remote = remoteAgent({ url: 'http://127.0.0.1:1/api' });
  const service = new SessionService(store);
  const owner = { appName: 'shop', userId: 'ada' };
  test.each<[string, () => unknown, string[]]>([
    [
      'defineAgent',
      () => loose(defineAgent)(ai, { name: 'a', stor: store }),
      ["'stor'", "did you mean 'store'?", 'maxTurns'],
    ],
    ['defineAgent, of a prompt', () => loose(defineAgent)(ai, { name: 'a', sistem: 'x' }), ["did you mean 'system'?"]],
    [
      'definePromptAgent',
      () => loose(definePromptAgent)(ai, { promptName: 'a', system: 'x' }),
      ["'system'", 'promptInput'],
    ],
    [
      'defineCustomAgent',
      () => loose(defineCustomAgent)(ai, { name: 'a', model: 'x' }, noop),
      ["'model'", 'stateSchema'],
    ],
    ['turnOverrides', () => loose(defineAgent)(ai, { name: 'a', turnOverrides: { model: true } }), ["mean 'models'?"]],
    ['background', () => loose(defineAgent)(ai, { name: 'a', background: { leaseMS: 1 } }), ["mean 'leaseMs'?"]],
    ['agentRuntime', () => loose(agentRuntime)({ onconflict: 'queue' }), ["did you mean 'onConflict'?"]],
    [
      'chat',
      () => loose(agent.chat)({ session: 'x' }),
      ["'session'", "did you mean 'sessionId'?", 'snapshotId', 'state'],
    ],
    ["chat, a caller's context", () => loose(agent.chat)({}, { contxt: {} }), ["did you mean 'context'?"]],
    ['chat, an id', () => agent.chat({ sessionId: 5 as never }).send('a'), ['sessionId must be a string, not number.']],
    ['chat of a remote agent', () => loose(remote.chat)({ session: 'x' }), ["did you mean 'sessionId'?"]],
    ['loadChat', () => loose(agent.loadChat)({ id: 'x' }), ["'id'", 'sessionId', 'snapshotId']],
    ['send', () => loose(agent.chat().send.bind(agent.chat()))('a', { signal: 1 }), ["'signal'", 'abortSignal']],
    ['send, its input', () => loose(agent.chat().send.bind(agent.chat()))({ mesage: 1 }), ["did you mean 'message'?"]],
    ['resume', () => loose(agent.chat().resume.bind(agent.chat()))({ responds: [] }), ["did you mean 'respond'?"]],
    ['remoteAgent', () => loose(remoteAgent)({ url: '/a', header: {} }), ["'header'", "did you mean 'headers'?"]],
    ['reconnect', () => loose(remoteAgent)({ url: '/a', reconnect: { atempts: 1 } }), ["did you mean 'attempts'?"]],
    ['agentHandler', () => loose(agentHandler)({ a: agent }, { contex: 1 }), ["did you mean 'context'?", 'anonymous']],
    ['SessionService', () => Reflect.construct(SessionService, [store, { stale: 1 }]), ["'stale'", 'onStale']],
    ['createSession', () => loose(service.createSession.bind(service))({ ...owner, stat: {} }), ["mean 'state'?"]],
    [
      'getSession',
      () => loose(service.getSession.bind(service))({ ...owner, sessionId: 'a', config: {} }),
      ["'config'"],
    ],
    ['listSessions', () => loose(service.listSessions.bind(service))({ ...owner, limit: 1 }), ["'limit'"]],
    [
      'deleteSession',
      () => loose(service.deleteSession.bind(service))({ ...owner, session: 'a' }),
      ["mean 'sessionId'?"],
    ],
  ])('%s', async (_, call, words) => {
    const { status, message } = await refusal(call);
    expect(status).toBe('INVALID_ARGUMENT');
    for (const word of words) expect(message).toContain(word);
  });
});

describe("every option of Genkit's own is accepted", () => {
  const prompt: Record<keyof PromptConfig, unknown> = {
    name: 'whole',
    variant: 'v',
    model: 'scripted',
    config: {},
    description: 'x',
    input: { schema: z.object({}) },
    system: 'x',
    prompt: 'x',
    messages: [],
    docs: [],
    output: {},
    maxTurns: 2,
    returnToolRequests: false,
    metadata: {},
    tools: [],
    toolChoice: 'auto',
    use: [],
    context: {},
  };
  const state: Record<Exclude<keyof GenkitAgentConfig, keyof PromptConfig>, unknown> = {
    stateSchema: z.object({}),
    store: new InMemorySessionStore(),
    clientTransform: {},
    promptInput: {},
  };
  const promptAgent: Record<keyof Parameters<typeof genkitPrompt>[1], unknown> = {
    ...state,
    promptName: 'whole.v',
    description: 'x',
  };
  const { promptInput: _, ...ofCustom } = state;
  const custom: Record<keyof Parameters<typeof genkitCustom>[1], unknown> = {
    ...ofCustom,
    name: 'c',
    description: 'x',
  };

  test('of defineAgent, definePromptAgent and defineCustomAgent', async () => {
    const { ai } = setUp();
    const agents = [
      loose(defineAgent)(ai, { ...prompt, ...state }),
      loose(definePromptAgent)(ai, promptAgent),
    ] as ReturnType<typeof defineAgent>[];
    for (const agent of agents) expect((await agent.chat().send('a')).text).toBe('ok');
    expect(() => loose(defineCustomAgent)(ai, custom, async () => ({}))).not.toThrow();
  });
});

describe('an error says what is wrong and what to do', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['no url', {}],
    ['an empty url', { url: ' ' }],
    ['a text', 'http://127.0.0.1:1/api'],
    ['null', null],
  ])('remoteAgent given %s', async (_, options) => {
    const { status, message } = await refusal(() => loose(remoteAgent)(options));
    expect([status, message]).toEqual(['INVALID_ARGUMENT', expect.stringContaining("{ url: 'https://")]);
  });

  test('a relative address outside of a browser is refused when it is used, and is fine with a fetch that knows more', async () => {
    const here = remoteAgent({ url: '/api/support' });
    for (const call of [() => here.chat().send('a'), () => here.getSnapshot('x'), () => here.abort('x')]) {
      const { status, message } = await refusal(call);
      expect([status, message]).toEqual(['INVALID_ARGUMENT', expect.stringContaining('it must be absolute')]);
    }
    const own = remoteAgent({
      url: '/api/support',
      fetch: async () => Response.json({ result: { status: 'completed' } }),
    });
    expect(await own.abort('x')).toBe('completed');
  });

  test.each([42, null, undefined, true, ['a'], () => 'a'])('a turn of %j', async (input) => {
    const { agent, store } = setUp();
    const chat = agent.chat();
    for (const method of ['send', 'detach', 'sendStream'] as const) {
      const call = () => loose(chat[method].bind(chat))(input);
      const { status, message } = await refusal(async () => {
        const turn = (await call()) as { response?: unknown };
        return turn.response;
      });
      expect([status, message]).toEqual(['INVALID_ARGUMENT', expect.stringContaining('a text, or an object')]);
    }
    expect((await store.listSessions()).items).toEqual([]);
    expect((await chat.send('a')).text).toBe('ok');
  });

  test.each(['x', 42, null, []])('a conversation begun with %j', async (init) => {
    const { agent } = setUp();
    for (const method of [agent.chat, agent.loadChat]) {
      const { status, message } = await refusal(() => loose(method)(init));
      expect([status, message]).toEqual(['INVALID_ARGUMENT', expect.stringContaining('an object: { sessionId }')]);
    }
    expect(await refusal(() => loose(agent.chat)(init))).toHaveProperty('status', 'INVALID_ARGUMENT');
  });

  test('a session of an agent that has no store: the advice is to add one', async () => {
    const { ai, scripted } = setUp();
    const agent = defineAgent(ai, { name: 'stateless', model: scripted.name });
    for (const init of [{ sessionId: 'x' }, { snapshotId: 'x' }]) {
      const { status, message } = await refusal(() => agent.chat(init).send('a'));
      expect([status, message]).toEqual(['FAILED_PRECONDITION', expect.stringContaining("Set the agent's 'store'")]);
    }
  });
});

describe('two agents of one name', () => {
  afterEach(() => vi.unstubAllEnvs());

  test('are refused in one Genkit instance, whatever their kinds, and nothing of the second is registered', async () => {
    const { ai, scripted, agent } = setUp();
    const define = [
      () => defineAgent(ai, { name: 'known', model: scripted.name, system: 'Another.' }),
      () => definePromptAgent(ai, { promptName: 'known' }),
      () => defineCustomAgent(ai, { name: 'known' }, async () => ({})),
    ];
    for (const again of define) {
      const { status, message } = await refusal(again);
      expect([status, message]).toEqual(['ALREADY_EXISTS', expect.stringContaining('"known"')]);
    }
    await agent.chat().send('a');
    expect(scripted.requests[0]?.messages).toHaveLength(1);
  });

  const GENKITS_OWN: [what: string, define: (ai: ReturnType<typeof genkitBeta>) => unknown][] = [
    ['agent', (ai) => ai.defineAgent({ name: 'taken', model: 'scripted' })],
    ['custom agent', (ai) => ai.defineCustomAgent({ name: 'taken' }, async () => ({}))],
    ['prompt', (ai) => ai.definePrompt({ name: 'taken', model: 'scripted', system: "Genkit's." })],
  ];

  test.each(GENKITS_OWN)("are refused when Genkit's own %s has the name", async (_, define) => {
    const { ai, scripted } = setUp();
    define(ai);
    const { status, message } = await refusal(() => defineAgent(ai, { name: 'taken', model: scripted.name }));
    expect([status, message]).toEqual(['ALREADY_EXISTS', expect.stringContaining('"taken"')]);
  });

  test.each(GENKITS_OWN)(
    "are refused by the next turn when Genkit's own %s takes the name later",
    async (_, define) => {
      const { ai, scripted } = setUp();
      const agent = defineAgent(ai, { name: 'taken', model: scripted.name });
      await agent.chat().send('a');
      define(ai);
      const { status, message } = await refusal(() => agent.chat().send('b'));
      expect([status, message]).toEqual(['ALREADY_EXISTS', expect.stringContaining('"taken"')]);
      expect(scripted.requests).toHaveLength(1);
    },
  );

  test('are none when one is a prompt and the other uses it', async () => {
    const { ai, scripted } = setUp();
    ai.definePrompt({ name: 'greeter', model: scripted.name, system: 'Greet.' });
    expect((await definePromptAgent(ai, { promptName: 'greeter' }).chat().send('a')).text).toBe('ok');
  });

  test('are accepted in two instances', async () => {
    for (const { agent } of [setUp(), setUp()]) expect((await agent.chat().send('a')).text).toBe('ok');
  });

  test.each(['GENKIT_ENV', 'NODE_ENV'])(
    'in development the later one, of a module that is loaded again, takes the place: %s',
    async (name) => {
      vi.stubEnv(name, name === 'GENKIT_ENV' ? 'dev' : 'development');
      const { ai, scripted } = setUp();
      const again = defineAgent(ai, { name: 'known', model: scripted.name, system: 'Another.' });
      await again.chat().send('a');
      expect(scripted.requests[0]?.messages[0]?.content[0]?.text).toBe('Another.');
    },
  );
});
