import type { GenerateResponseData, GenerationUsage, Part } from 'genkit';
import { remoteAgent as genkitRemoteAgent } from 'genkit/beta/client';
import {
  AgentError,
  defineAgent,
  defineCustomAgent,
  genkit,
  InMemorySessionStore,
  recoverRuns,
  type AgentConfig,
  type SnapshotStore,
} from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { storeAround } from '../../session/store-around.ts';
import { serveByRouter } from '../../server/support/http.ts';
import { scriptedModel, type ScriptedReply } from '../../support/scripted-model.ts';
import { call, deferred, model } from '../support/helpers.ts';
import { detached } from '../support/worker.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** Of call number `n`. */
const usage = (n: number) => ({ inputTokens: n, outputTokens: 10 * n, custom: { cache: 1 }, note: 'cheap' });
/** The sum of these calls. */
const sum = (...calls: number[]) => {
  const n = calls.reduce((a, b) => a + b, 0);
  return { inputTokens: n, outputTokens: 10 * n };
};

const said = (n: number, text: string): GenerateResponseData => ({
  message: model(text),
  finishReason: 'stop',
  usage: usage(n),
});
const asks = (n: number, name = 'look'): GenerateResponseData => ({
  message: { role: 'model', content: [{ toolRequest: { name, input: {} } }] as Part[] },
  finishReason: 'stop',
  usage: usage(n),
});

function setUp(replies: ScriptedReply[], options: Partial<AgentConfig> = {}) {
  const ai = genkit();
  const scripted = scriptedModel(ai, { replies });
  const tools = [
    ai.defineTool({ name: 'look', description: '-' }, async () => 'seen'),
    ai.defineInterrupt({ name: 'ask', description: '-' }),
  ];
  const store = new InMemorySessionStore();
  const agent = defineAgent(ai, { name: 'payer', model: scripted.name, tools, store, ...options });
  return { ai, scripted, agent, store };
}

/** The usage in each of the session's snapshots. */
async function stored(store: SnapshotStore, sessionId: string): Promise<(GenerationUsage | undefined)[]> {
  const { items } = await store.listSnapshots({ sessionId });
  return items.map((snapshot) => (snapshot as { usage?: GenerationUsage }).usage);
}

describe('the usage of a turn', () => {
  test('is the sum of its model calls, in the response, in the snapshot, in its metadata', async () => {
    const { agent, store } = setUp([asks(1), asks(2), said(4, 'done'), said(8, 'more')]);
    const chat = agent.chat({ sessionId: 's' });
    const { usage: used, snapshotId } = await chat.send('go');
    expect(used).toEqual(sum(1, 2, 4));
    expect((await agent.getSnapshot(snapshotId!))?.usage).toEqual(used);
    expect((await agent.getSnapshot(snapshotId!, { metadataOnly: true }))?.usage).toEqual(used);
    const turn = chat.sendStream('on');
    expect((await turn.response).usage).toEqual(sum(8));
    expect(await stored(store, 's')).toEqual([sum(1, 2, 4), sum(8)]);
  });

  test('comes over HTTP, also to Genkit’s client', async () => {
    const { agent } = setUp([asks(1), said(2, 'done'), asks(4), said(8, 'done')]);
    const { url, stop } = await serveByRouter([agent], { anonymous: true });
    const remote = remoteAgent({ url: `${url}/payer` });
    const response = await remote.chat().send('go');
    expect(response.usage).toEqual(sum(1, 2));
    expect((await remote.getSnapshot(response.snapshotId!, { metadataOnly: true }))?.usage).toEqual(sum(1, 2));
    const { raw } = await genkitRemoteAgent({ url: `${url}/payer` })
      .chat()
      .send('go');
    expect(raw).toMatchObject({ usage: sum(4, 8) });
    await stop();
  });

  test.each<[string, ScriptedReply[], number[]]>([
    ['a call that fails after one', [asks(1), () => Promise.reject(new Error('no model'))], [1]],
    ['a tool loop that is too long', [asks(1), asks(2), asks(4)], [1, 2, 4]],
    ['a reply that was blocked', [{ finishReason: 'blocked', usage: usage(3) }], [3]],
  ])('that failed is told all the same: %s', async (_, replies, calls) => {
    const { agent, store } = setUp(replies, { maxTurns: 2 });
    const error: unknown = await agent
      .chat({ sessionId: 's' })
      .send('go')
      .catch((thrown: unknown) => thrown);
    expect(AgentError.isInstance(error) && error.response.usage).toEqual(sum(...calls));
    expect(await stored(store, 's')).toEqual([sum(...calls)]);
  });

  test('of an agent without tools includes a blocked reply and one that does not fit the schema', async () => {
    const ai = genkit();
    const blocked: ScriptedReply = { finishReason: 'blocked', usage: usage(3) };
    const { name } = scriptedModel(ai, { replies: [blocked, said(5, 'no JSON'), said(7, 'fine')] });
    const plain = defineAgent(ai, { name: 'plain', model: name });
    const structured = defineAgent(ai, { name: 'structured', model: name, output: { jsonSchema: { type: 'object' } } });
    expect((await call(plain, ['go'])).output).toMatchObject({ finishReason: 'failed', usage: sum(3) });
    expect((await call(structured, ['go'])).output).toMatchObject({ finishReason: 'failed', usage: sum(5) });
    expect((await call(plain, ['go'])).output).toMatchObject({ finishReason: 'stop', usage: sum(7) });
  });

  test.each(['keep', 'discard'] as const)(
    'that was aborted is that of the calls before, onAbort: %s',
    async (onAbort) => {
      const reached = deferred();
      const hang: ScriptedReply = ({ sendChunk }) => {
        sendChunk({ content: [{ text: 'wo' }] });
        reached.resolve();
        return new Promise<never>(() => {});
      };
      const { agent, store } = setUp([asks(1), hang], { onAbort });
      const turn = agent.chat({ sessionId: 's' }).sendStream('go');
      await reached.promise;
      turn.abort();
      expect(await turn.response).toMatchObject({ finishReason: 'aborted', usage: sum(1) });
      expect(await stored(store, 's')).toEqual(onAbort === 'keep' ? [sum(1)] : []);
    },
  );

  test('that was resumed is its own', async () => {
    const { agent, store } = setUp([asks(1, 'ask'), said(2, 'done')]);
    const chat = agent.chat({ sessionId: 's' });
    const { interrupts, usage: used } = await chat.send('go');
    expect(used).toEqual(sum(1));
    expect((await chat.resume({ respond: [interrupts[0]!.respond('yes')] })).usage).toEqual(sum(2));
    expect(await stored(store, 's')).toEqual([sum(1), sum(2)]);
  });

  test('that could not be saved is returned with its reply', async () => {
    const { agent, store } = setUp([asks(1), said(2, 'done')]);
    store.saveSnapshot = () => Promise.reject(new Error('full'));
    expect((await call(agent, ['go'])).output).toMatchObject({ finishReason: 'failed', usage: sum(1, 2) });
  });

  test('of a custom agent is what its function and tools report, each in one snapshot', async () => {
    const ai = genkit();
    const scripted = scriptedModel(ai, { replies: [said(1, 'a'), said(2, 'b'), said(4, 'c'), said(8, 'd')] });
    const generate = async () => (await ai.generate({ model: scripted.name, prompt: 'hi' })).usage;
    const tool = ai.defineTool({ name: 'inner', description: '-' }, async () => {
      ai.currentSession().addUsage(await generate());
      return 'done';
    });
    const store = new InMemorySessionStore();
    const agent = defineCustomAgent(ai, { name: 'custom', store }, async (sess) => {
      await sess.run(async () => {
        sess.addUsage(await generate());
        await tool({});
      });
      sess.addUsage(await generate());
      sess.updateCustom(() => ({ after: true }));
      return {};
    });
    const { output } = await call(agent, ['one'], { sessionId: 's' });
    expect(output).toMatchObject({ usage: sum(1, 2, 4) });
    expect(await stored(store, 's')).toEqual([sum(1, 2), sum(4)]);
  });

  test('that is unknown is empty, and not a field of the snapshot', async () => {
    const { agent } = setUp(['done']);
    const { usage: used, snapshotId, raw } = await agent.chat().send('go');
    expect([used, 'usage' in raw]).toEqual([{}, false]);
    expect(await agent.getSnapshot(snapshotId!)).not.toHaveProperty('usage');
  });
});

describe('the usage of a turn in the background', () => {
  /** The turn detaches in its second model call, of three. */
  async function detach(options: Partial<AgentConfig> = {}) {
    const store = new InMemorySessionStore();
    let isDead = false;
    const own = storeAround(store, (_, __, make) => (isDead ? new Promise<never>(() => {}) : make()));
    const reached = deferred();
    const second = deferred<ScriptedReply>();
    const made = setUp(
      [
        asks(1),
        async () => {
          reached.resolve();
          return second.promise;
        },
        said(4, 'done'),
      ],
      { store: own, ...options },
    );
    const stream = made.agent.streamBidi({ sessionId: 's' });
    stream.send({ message: { role: 'user', content: [{ text: 'go' }] } });
    await reached.promise;
    stream.send({ detach: true });
    const { snapshotId } = await stream.output;
    const die = () => {
      isDead = true;
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 120_000 });
    };
    return { ...made, store, snapshotId: snapshotId!, second, die };
  }

  test('is in its snapshot when it ends', async () => {
    const { agent, snapshotId, second } = await detach();
    expect(await agent.getSnapshot(snapshotId)).not.toHaveProperty('usage');
    second.resolve(asks(2));
    expect((await agent.waitForSnapshot(snapshotId)).usage).toEqual(sum(1, 2, 4));
  });

  test('is stored, too, when it fails or is aborted', async () => {
    const failing = await detach();
    failing.second.resolve(() => Promise.reject(new Error('no model')));
    expect(await failing.agent.waitForSnapshot(failing.snapshotId)).toMatchObject({ status: 'failed', usage: sum(1) });
    const aborted = await detach();
    await aborted.agent.abort(aborted.snapshotId);
    await vi.waitFor(async () => {
      expect(await aborted.agent.getSnapshot(aborted.snapshotId)).toMatchObject({ status: 'aborted', usage: sum(1) });
    });
  });

  test('has the calls of a process that died', async () => {
    const dead = await detach();
    dead.die();
    const rescuer = setUp([said(8, 'rescued')], { store: dead.store });
    await recoverRuns(rescuer.ai);
    const { status, usage: used } = await rescuer.agent.waitForSnapshot(dead.snapshotId);
    expect([status, used]).toEqual(['completed', sum(1, 8)]);
    expect(await stored(dead.store, 's')).toEqual([sum(1, 8)]);
  });

  test('has them when the run is given up, as of the last heartbeat', async () => {
    const dead = await detach({ background: { heartbeatIntervalMs: 5, leaseMs: 60_000 } });
    dead.second.resolve(({ sendChunk }) => {
      sendChunk({ content: [{ text: 'never' }] });
      return new Promise<never>(() => {});
    });
    const beats = () =>
      (dead.store.getSnapshot({ snapshotId: dead.snapshotId }) as Promise<unknown>).then((snapshot) =>
        expect(snapshot).toMatchObject({ backgroundRun: { usage: sum(1) } }),
      );
    await vi.waitFor(beats);
    dead.die();
    const rescuer = setUp([], { store: dead.store, background: { maxAttempts: 0 } });
    await recoverRuns(rescuer.ai);
    expect(await rescuer.agent.getSnapshot(dead.snapshotId)).toMatchObject({ status: 'failed', usage: sum(1) });
  });

  test('of several turns is in each its own', async () => {
    const { agent, store } = setUp([said(1, 'a'), said(2, 'b'), said(4, 'c')]);
    const { output } = await call(agent, ['one', 'two', detached('three')], { sessionId: 's' });
    await agent.waitForSnapshot(output.snapshotId!);
    expect(await stored(store, 's')).toEqual([sum(1), sum(2), sum(4)]);
  });
});
