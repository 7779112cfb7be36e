/** Nothing that the rules find is on the medium, however a turn ends. */
import { z, type Part } from 'genkit';
import { genkit } from 'genkit/beta';
import { defineAgent, defineCustomAgent, type SessionStore } from 'genkitx-agents';
import { contextWindow, lastTurns, summarize } from 'genkitx-agents/context';
import { describe, expect, test, vi } from 'vitest';
import { call, user } from '../../agent/support/helpers.ts';
import { scriptedModel, type ScriptedReply } from '../../support/scripted-model.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { findOnDisk, openStore, Plants, watched } from './support.ts';

/** A folder with a store whose medium is scanned after each of its calls. */
function setUp() {
  const plants = new Plants();
  const folder = temporaryFolder();
  const hits = new Set<string>();
  const scan = () => findOnDisk(folder, plants.values).forEach((hit) => hits.add(hit));
  const store = watched(openStore(folder), scan);
  return { plants, folder, store, hits: () => (scan(), [...hits]) };
}

test('the scan finds a value that is on the medium, compressed or not', async () => {
  const { FileSessionStore } = await import('genkitx-agents');
  const folder = temporaryFolder();
  const plants = new Plants();
  const store = new FileSessionStore(folder);
  const long = 'word '.repeat(30_000);
  for (const pad of ['', long]) {
    const text = plants.text() + pad;
    await store.saveSnapshot(undefined, () => ({
      sessionId: `of ${pad.length}`,
      createdAt: new Date().toISOString(),
      status: 'completed',
      state: { messages: [user(text)] },
    }));
  }
  await store.close();
  expect(new Set(findOnDisk(folder, plants.values).map((hit) => hit.split(' ')[0]))).toEqual(new Set(plants.values));
});

/** An agent whose tool answers with values in text, JSON text, numbers and names. */
function shop(store: SessionStore, plants: Plants, options: { replies?: ScriptedReply[] } = {}) {
  const ai = genkit({});
  const { replies = [] } = options;
  const scripted = scriptedModel(ai, { replies, otherwise: () => `I noted ${plants.text()}.` });
  ai.defineTool({ name: 'find', description: 'Finds.', inputSchema: z.any() }, async () => ({
    text: plants.text(),
    json: JSON.stringify({
      [plants.text()]: [plants.text(), plants.number()],
      nested: JSON.stringify([plants.text()]),
    }),
    [plants.text()]: plants.number(),
  }));
  ai.defineTool({ name: 'pay', description: 'Pays.', inputSchema: z.any() }, async (_, { interrupt, resumed }) => {
    if (!resumed) interrupt({ why: plants.text() });
    return `paid ${plants.text()}`;
  });
  const agent = defineAgent(ai, { name: 'shop', model: scripted.name, tools: ['find', 'pay'], store });
  return { ai, agent, scripted };
}

describe('no value is on the medium', () => {
  test('of messages, tool inputs and outputs, an approval, and errors', async () => {
    const { plants, store, hits } = setUp();
    const find = (): Part[] => [
      { text: `Let me look for ${plants.text()}` },
      { toolRequest: { name: 'find', ref: '1', input: { who: plants.text(), n: plants.number() } } },
    ];
    const pay = { toolRequest: { name: 'pay', ref: '2', input: { to: plants.text(), amount: plants.number() } } };
    const { agent } = shop(store, plants, {
      replies: [
        'Hello',
        () => find(),
        () => `Found ${plants.text()}`,
        [pay],
        () => {
          throw new Error(`The model said ${plants.text()}`);
        },
      ],
    });
    const init = { sessionId: 'shop' };
    for (const text of ['Hi', `I am ${plants.text()}`]) await call(agent, [`${text} ${plants.text()}`], init);
    const { output } = await call(agent, [`Pay ${plants.text()}`], init);
    expect(output.finishReason).toBe('interrupted');
    const paid = await call(agent, [{ resume: { restart: [pay as never] } }], init);
    expect(paid.output.error?.message).toContain('The model said plant-');
    await call(agent, ['on'], init);
    const text = JSON.stringify((await agent.getSnapshot({ sessionId: 'shop' }))?.state);
    expect(text).toContain('[PLANT_1]');
    expect(plants.values.length).toBeGreaterThan(15);
    expect(hits()).toEqual([]);
  });

  test('of custom state, artifacts, scopes, thrown errors, aborted turns, and failed saves', async () => {
    const { plants, folder, store, hits } = setUp();
    const ai = genkit({});
    const controller = new AbortController();
    const agent = defineCustomAgent(
      ai,
      {
        name: 'keeper',
        store,
        userId: () => 'ada',
        appName: 'shop',
        scopes: { user: z.object({ address: z.string() }), app: z.object({ hotline: z.object({ n: z.number() }) }) },
        onAbort: 'keep',
      },
      async (sess) => {
        await sess.run(async ({ message }) => {
          const { session } = sess;
          session.addMessages([{ role: 'model', content: [{ text: plants.text() }] }]);
          session.updateCustom((custom) => ({
            ...custom,
            [plants.text()]: { deep: [plants.text(), { n: plants.number() }] },
            json: JSON.stringify({ a: plants.text() }),
          }));
          session.addArtifacts([{ name: 'bill', parts: [{ text: plants.text() }], metadata: { by: plants.text() } }]);
          session.state.set('user:address', plants.text());
          session.state.set('app:hotline', { n: plants.number() });
          const text = message?.content[0]?.text ?? '';
          if (text.startsWith('throw'))
            throw Object.assign(new Error(plants.text()), { detail: { [plants.text()]: 1 } });
          if (text.startsWith('abort')) {
            controller.abort();
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
        });
        return {};
      },
    );
    const init = { sessionId: 'keeper' };
    await call(agent, [`one ${plants.text()}`, `two ${plants.text()}`], init);
    const failed = await call(agent, [`throw ${plants.text()}`], init);
    expect(failed.output.finishReason).toBe('failed');
    await call(agent, [`abort ${plants.text()}`], init, { abortSignal: controller.signal });
    const statuses = (await store.listSnapshots({ sessionId: 'keeper' })).items.map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set(['completed', 'failed', 'aborted']));
    const scopes = await store.readScopes({
      scopes: [
        { scope: 'user', appName: 'shop', userId: 'ada' },
        { scope: 'app', appName: 'shop' },
      ],
    });
    expect(JSON.stringify(scopes)).toMatch(/\[PLANT_\d{5}\].*\[PLANT_\d{5}\]/);
    expect(hits()).toEqual([]);
    expect(folder).toBeTruthy();
  });

  test('of detached runs, while they run and afterwards', async () => {
    const { plants, store, hits } = setUp();
    let answer: (text: string) => void = () => {};
    const { agent, scripted } = shop(store, plants, {
      replies: [() => new Promise<string>((resolve) => (answer = resolve)), () => plants.text()],
    });
    const detached = (text: string) => ({ message: user(text), detach: true });
    const { output } = await call(agent, [`one ${plants.text()}`, detached(`two ${plants.text()}`)], {
      sessionId: 'job',
    });
    expect(output.finishReason).toBe('detached');
    expect(hits()).toEqual([]);
    // A reader of the running turn gets the values.
    const running = await store.getSnapshot({ snapshotId: output.snapshotId! });
    expect(running?.status).toBe('pending');
    expect(JSON.stringify(running)).toContain(plants.values[1]);
    await vi.waitUntil(() => scripted.requests.length === 1);
    answer(plants.text());
    const done = await vi.waitUntil(
      async () => {
        const snapshot = await store.getSnapshot({ snapshotId: output.snapshotId! });
        return snapshot?.status === 'pending' ? undefined : snapshot;
      },
      { interval: 5 },
    );
    expect(done?.status).toBe('completed');
    expect(JSON.stringify(done)).not.toContain('plant-');
    expect(hits()).toEqual([]);
  });

  test('of summaries, which match the stored messages, so that no history is dropped', async () => {
    const { plants, store, hits } = setUp();
    const ai = genkit({});
    const scripted = scriptedModel(ai, { otherwise: () => `Reply to ${plants.text()}` });
    const reports: { dropped: readonly unknown[]; summary?: unknown }[] = [];
    const window = contextWindow({
      history: [summarize({ everyTurns: 2, summarizer: async () => `Summary of ${plants.text()}` }), lastTurns(3)],
      onReport: (report) => reports.push(report),
    });
    const agent = defineAgent(ai, { name: 'long', model: scripted.name, store, context: window });
    for (let turn = 0; turn < 10; turn++) {
      await call(agent, [`turn ${turn}: ${plants.text()}`], { sessionId: 'long' });
      await window.settled();
    }
    const records = await store.readRecords({ sessionId: 'long' });
    expect(JSON.stringify(records)).toContain('[PLANT_');
    expect(reports.some(({ summary }) => summary)).toBe(true);
    expect(reports.flatMap(({ dropped }) => dropped)).toEqual([]);
    expect(hits()).toEqual([]);
  });

  test('of titles, and of session records that the application writes', async () => {
    const { plants, store, hits } = setUp();
    await store.saveSnapshot(
      undefined,
      () => ({ sessionId: 's', createdAt: new Date().toISOString(), status: 'completed', state: {} }),
      { session: { title: `About ${plants.text()}` } },
    );
    await store.writeRecord({ sessionId: 's', kind: 'note', key: 'k', value: { [plants.text()]: plants.number() } });
    expect((await store.listSessions()).items[0]?.title).toBe('About [PLANT_1]');
    expect((await store.readRecords({ sessionId: 's' })).map(({ value }) => value)).toEqual([
      { '[PLANT_2]': '[PLANT_3]' },
    ]);
    expect(hits()).toEqual([]);
  });
});
