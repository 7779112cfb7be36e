import { z } from 'genkit';
import { remoteAgent as genkitRemoteAgent } from 'genkit/beta/client';
import {
  agentRuntime,
  defineAgent,
  defineCustomAgent,
  definePromptAgent,
  genkit,
  InMemorySessionStore,
  type Agent,
  type AgentAPI,
  type AgentChat,
  type AgentChunk,
  type PartialOutput,
} from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { parsePartialJson } from '../../../src/json/partial.ts';
import { serveByRouter } from '../../server/support/http.ts';
import { scriptedModel, type ScriptedReply } from '../../support/scripted-model.ts';
import { model } from '../support/helpers.ts';
import { collect } from '../../support/collect.ts';

const Order = z.object({ id: z.string(), lines: z.array(z.object({ sku: z.string(), count: z.number() })) });
type Order = z.infer<typeof Order>;

const order: Order = {
  id: 'a-1',
  lines: [
    { sku: 'tea', count: 2 },
    { sku: 'milk', count: 1 },
  ],
};
const json = JSON.stringify(order);

/** The reply in pieces. */
function streamed(text: string, size = 7): ScriptedReply {
  const pieces = text.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  const chunks = pieces.map((piece) => ({ role: 'model' as const, content: [{ text: piece }] }));
  return { message: model(text), finishReason: 'stop', chunks };
}

function clerk(replies: ScriptedReply[], options: object = {}) {
  const ai = genkit();
  const scripted = scriptedModel(ai, { replies });
  const store = new InMemorySessionStore();
  const agent = defineAgent(ai, { name: 'clerk', model: scripted.name, output: { schema: Order }, store, ...options });
  return { ai, agent, store, scripted };
}

/** Clients in this process and over HTTP. */
const WAYS = [
  { way: 'in process', reach: async (agent: Agent<unknown, Order>) => ({ api: agent, close: async () => {} }) },
  {
    way: 'over HTTP',
    reach: async (agent: Agent<unknown, Order>) => {
      const { url, stop } = await serveByRouter([agent], { anonymous: true });
      return { api: remoteAgent<unknown, Order>({ url: `${url}/clerk` }), close: stop };
    },
  },
] as const;

describe.each(WAYS)('an agent with an output schema, $way', ({ reach }) => {
  test('returns the parsed value as data, and the conversation keeps the model’s text', async () => {
    const { agent } = clerk([json, json]);
    const { api, close } = await reach(agent);
    const chat = api.chat();
    const response = await chat.send('order');
    expect([response.data, response.output, response.text]).toEqual([order, order, json]);
    expect(chat.messages.at(-1)).toMatchObject(model(json));
    expect(chat.messages.at(-1)?.content).toHaveLength(1);
    const { state } = (await api.getSnapshot(response.snapshotId!))!;
    expect(state?.messages?.at(-1)?.content).toEqual([{ text: json }]);
    // The next turn, of a chat that was loaded, sends the model its words alone.
    const again = await (await api.loadChat({ snapshotId: response.snapshotId! })).send('once more');
    expect(again.data).toEqual(order);
    await close();
  });

  test('streams the received part of the value', async () => {
    const { agent } = clerk([streamed(`\`\`\`json\n${json}\n\`\`\``, 1)]);
    const { api, close } = await reach(agent);
    const turn = api.chat().sendStream('order');
    const seen = (await collect(turn.stream)).map(({ output }) => output);
    expect(seen[0]).toBeNull();
    expect(seen).toContainEqual({ id: 'a-1' });
    expect(seen).toContainEqual({ id: 'a-1', lines: [{ sku: 'tea', count: 2 }, { sku: 'mil' }] });
    expect((await turn.response).data).toEqual(order);
    await close();
  });

  test.each([
    ['no JSON', 'I can not say.'],
    ['JSON that does not fit', JSON.stringify({ id: 7, lines: [] })],
    ['JSON that does not parse', '{"id": {{, }'],
  ])('%s fails the turn by a typed error, streamed or not, and the conversation goes on', async (_, reply) => {
    const { agent, store } = clerk([json, reply, streamed(reply), json]);
    const { api, close } = await reach(agent);
    const chat = api.chat({ sessionId: 's' });
    await chat.send('first');
    const error = {
      status: 'FAILED_PRECONDITION',
      message: "The model's reply does not fit the output schema of the agent. Send the message again.",
      details: { reason: 'INVALID_OUTPUT' },
      response: { finishReason: 'failed' },
    };
    const failed = await chat.send('second').catch((thrown: unknown) => thrown);
    expect(failed).toMatchObject(error);
    expect(JSON.stringify((failed as { details: unknown }).details)).not.toContain('properties');
    const turn = chat.sendStream('third');
    await expect(turn.response).rejects.toMatchObject(error);
    expect((await chat.send('fourth')).data).toEqual(order);
    expect(chat.messages.map(({ content }) => content[0]?.text)).toEqual(['first', json, 'fourth', json]);
    const { items } = await store.listSnapshots({ sessionId: 's' });
    expect(items.map(({ status }) => status)).toEqual(['completed', 'failed', 'failed', 'completed']);
    // The model's text is kept for inspection.
    const { state } = (await store.getSnapshot({ snapshotId: items[1]!.snapshotId }))!;
    expect(state?.messages?.at(-1)?.content).toEqual([{ text: reply }]);
    await close();
  });
});

describe('structured output', () => {
  test('is a data part of the reply for Genkit’s own client', async () => {
    const { agent } = clerk([json]);
    const { url, stop } = await serveByRouter([agent], { anonymous: true });
    const { data, text } = await genkitRemoteAgent({ url: `${url}/clerk` })
      .chat()
      .send('order');
    expect([data, text]).toEqual([order, json]);
    await stop();
  });

  test('comes of a prompt’s own schema, of a custom agent, and of an agent whose callers keep the state', async () => {
    const ai = genkit({ plugins: [agentRuntime({ store: new InMemorySessionStore() })] });
    const { name } = scriptedModel(ai, { otherwise: json });
    ai.definePrompt({ name: 'prompted', model: name, output: { schema: Order } });
    const prompted = definePromptAgent<unknown, z.ZodTypeAny, typeof Order>(ai, { promptName: 'prompted' });
    expectTypeOf((await prompted.chat().send('order')).data).toEqualTypeOf<Order | null>();
    expect((await prompted.chat().send('order')).data).toEqual(order);
    const custom = defineCustomAgent(ai, { name: 'custom' }, async (sess) => {
      await sess.run(async () => {
        sess.addMessages([model('here')]);
        return { output: order };
      });
      return { message: sess.getMessages().at(-1) };
    });
    expect((await custom.chat().send('order')).data).toEqual(order);
    const stateless = defineAgent(ai, { name: 'stateless', model: name, output: { schema: Order }, state: 'client' });
    const chat = stateless.chat();
    expect([(await chat.send('a')).data, (await chat.send('b')).data]).toEqual([order, order]);
    expect(chat.messages.flatMap(({ content }) => content)).toHaveLength(4);
  });

  test('of a tool loop is that of the last reply; an interrupted turn has none', async () => {
    const ai = genkit();
    const look = ai.defineTool({ name: 'look', description: '-' }, async () => 'tea');
    const ask = ai.defineInterrupt({ name: 'ask', description: '-' });
    const scripted = scriptedModel(ai, {
      replies: [
        [{ text: '{"id": "draft"' }, { toolRequest: { name: 'look', input: {} } }],
        streamed(json),
        [{ toolRequest: { name: 'ask', input: {} } }],
      ],
    });
    const tools = [look, ask];
    const agent = defineAgent(ai, {
      name: 'clerk',
      model: scripted.name,
      tools,
      output: { schema: Order },
      state: 'client',
    });
    const turn = agent.chat().sendStream('order');
    expect((await collect(turn.stream)).map(({ output }) => output)).toContainEqual(order);
    expect((await turn.response).data).toEqual(order);
    expect(await agent.chat().send('order')).toMatchObject({ data: null, finishReason: 'interrupted' });
  });

  test('does not reveal text that a clientTransform removes from the reply', async () => {
    const redacted = { role: 'model' as const, content: [{ text: '***' }] };
    const { agent } = clerk([json], {
      clientTransform: {
        state: (state: { messages?: unknown[] }) => ({
          ...state,
          messages: [...(state.messages ?? []).slice(0, -1), redacted],
        }),
      },
    });
    const response = await agent.chat().send('order');
    expect([response.text, response.data, JSON.stringify(response.raw)]).toEqual([
      '***',
      null,
      // Not the id of the order, which is short enough to stand in a snapshot's id by chance.
      expect.not.stringContaining('lines'),
    ]);
  });

  test('of an agent without a schema is null, whatever the text', async () => {
    const ai = genkit();
    const { name } = scriptedModel(ai, { otherwise: json });
    expect((await defineAgent(ai, { name: 'a', model: name }).chat().send('order')).data).toBeNull();
  });

  test('is typed by the schema', () => {
    const ai = genkit();
    const agent = defineAgent(ai, { name: 'a', output: { schema: Order } });
    expectTypeOf(agent).toEqualTypeOf<Agent<unknown, Order>>();
    const ours = ai.defineAgent({ name: 'b', output: { schema: Order }, stateSchema: z.object({ n: z.number() }) });
    expectTypeOf(ours).toEqualTypeOf<Agent<{ n: number }, Order>>();
    const chat = ours.chat();
    expectTypeOf(chat).toEqualTypeOf<AgentChat<{ n: number }, Order>>();
    expectTypeOf<typeof ours.loadChat>().returns.resolves.toEqualTypeOf<typeof chat>();
    expectTypeOf<typeof chat.send>().returns.resolves.toHaveProperty('data').toEqualTypeOf<Order | null>();
    expectTypeOf<typeof chat.resume>().returns.resolves.toHaveProperty('output').toEqualTypeOf<Order | null>();
    expectTypeOf<typeof chat.sendStream>()
      .returns.toHaveProperty('stream')
      .toEqualTypeOf<AsyncIterable<AgentChunk<{ n: number }, Order>>>();
    expectTypeOf<AgentChunk<unknown, Order>['output']>().toEqualTypeOf<PartialOutput<Order> | null>();
    expectTypeOf<PartialOutput<Order>>().toEqualTypeOf<{ id?: string; lines?: { sku?: string; count?: number }[] }>();
    expectTypeOf(remoteAgent<unknown, Order>).returns.toEqualTypeOf<AgentAPI<unknown, Order>>();
    expectTypeOf(ai.defineAgent({ name: 'c' })).toEqualTypeOf<Agent>();
    expectTypeOf(ai.definePromptAgent({ promptName: 'p' })).toEqualTypeOf<Agent>();
  });
});

describe('the beginning of JSON', () => {
  const value = { a: 'é"\\\n\u{1f600}', b: [1, -2.5e3, true, null, [], {}], 'c d': { e: 'f' } };

  test.each([JSON.stringify(value), JSON.stringify(value, null, 2), JSON.stringify([value, value])])(
    'is parsed wherever it breaks off, and only grows: %s',
    (text) => {
      let size = 0;
      for (let end = 1; end <= text.length; end++) {
        const parsed = parsePartialJson(text.slice(0, end));
        expect(parsed, text.slice(0, end)).toBeTypeOf('object');
        const { length } = JSON.stringify(parsed);
        // Half an emoji is written as an escape.
        expect(length, text.slice(0, end)).toBeGreaterThanOrEqual(size - 6);
        size = Math.max(size, length);
      }
      expect(parsePartialJson(text)).toEqual(JSON.parse(text));
      expect(parsePartialJson(`Here: ${text}, as you asked.`)).toEqual(JSON.parse(text));
    },
  );

  test('that breaks off in an escape is read up to it', () => {
    for (const tail of ['\\', '\\u', '\\u00e']) expect(parsePartialJson(`{"a":"b${tail}`)).toEqual({ a: 'b' });
    expect(parsePartialJson('{"a":"b\\\\')).toEqual({ a: 'b\\' });
  });

  test('that is not JSON is undefined', () => {
    for (const text of ['', 'hello', '42', '{a: 1}', '}', '{]'])
      expect(parsePartialJson(text) ?? null, text).toBeNull();
  });
});
