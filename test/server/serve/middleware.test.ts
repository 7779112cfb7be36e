/** Genkit's `agents()` and `artifacts()` middleware, over our agents and between ours and Genkit's. */
import { agents, artifacts } from '@genkit-ai/middleware';
import { z } from 'genkit';
import { genkit as genkitOfGenkit, InMemorySessionStore as StoreOfGenkit, type GenkitBeta } from 'genkit/beta';
import { defineAgent, defineCustomAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { describe, expect, it } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';
import { catchErrorLog } from '../support/log.ts';

catchErrorLog();

const delegate = (name: string, task: string, ref = name) => ({
  toolRequest: { name: `delegate_to_${name}`, ref, input: { task } },
});

type Define = (ai: GenkitBeta) => Pick<GenkitBeta, 'defineAgent' | 'defineCustomAgent'>;

const ours: Define = (ai) => ({
  defineAgent: ((config: Parameters<typeof defineAgent>[1]) => defineAgent(ai, config)) as GenkitBeta['defineAgent'],
  defineCustomAgent: (config: never, fn: never) => defineCustomAgent(ai, config, fn),
});
const genkits: Define = (ai) => ({
  defineAgent: ai.defineAgent.bind(ai),
  defineCustomAgent: ai.defineCustomAgent.bind(ai),
});

const pairings = [
  { name: 'our agent delegates to ours', parent: ours, child: ours },
  { name: 'Genkit’s agent delegates to ours', parent: genkits, child: ours },
  { name: 'our agent delegates to Genkit’s', parent: ours, child: genkits },
];

describe.each(pairings)('$name', ({ parent, child }) => {
  const setUp = () => {
    const ai = genkitOfGenkit({});
    const model = scriptedModel(ai, { name: 'boss', otherwise: 'Done.' });
    const worker = scriptedModel(ai, { name: 'worker', otherwise: 'Found it.' });
    const ask = ai.defineInterrupt({ name: 'ask', description: 'Asks the user.', inputSchema: z.object({}) });
    child(ai).defineAgent({
      name: 'researcher',
      description: 'Looks things up.',
      model: 'worker',
      tools: [ask],
      store: new InMemorySessionStore(),
    });
    child(ai).defineAgent({ name: 'forgetful', model: 'worker' });
    child(ai).defineCustomAgent({ name: 'writer', store: new StoreOfGenkit() }, async (session) => {
      await session.run(async ({ message }) => {
        session.addArtifacts([{ name: 'draft', parts: [{ text: `On ${message?.content[0]?.text}` }] }]);
      });
      return { message: { role: 'model', content: [{ text: 'Written.' }] }, artifacts: session.getArtifacts() };
    });
    const boss = (config: Parameters<typeof agents>[0], store = new InMemorySessionStore()) =>
      parent(ai).defineAgent({ name: 'boss', model: 'boss', store, use: [agents(config), artifacts()] });
    return { model, worker, boss };
  };

  const toldBy = (requests: ReturnType<typeof setUp>['model']['requests']) =>
    requests
      .at(-1)
      ?.messages.at(-1)
      ?.content.map(({ toolResponse }) => toolResponse?.output);

  it('the model gets a list of the agents, and the reply of the one that it calls', async () => {
    const { model, worker, boss } = setUp();
    model.reply([delegate('researcher', 'Look up the moon.')]);
    const chat = boss({ agents: ['researcher', 'writer'] }).chat();
    expect((await chat.send('Go.')).text).toBe('Done.');
    expect(JSON.stringify(model.requests[0]?.messages)).toContain('delegate_to_researcher: Looks things up.');
    expect(worker.requests[0]?.messages.at(-1)?.content).toMatchObject([{ text: 'Look up the moon.' }]);
    expect(toldBy(model.requests)).toEqual([{ response: 'Found it.' }]);
    // The conversation continues, and has the list once.
    expect((await chat.send('And again.')).text).toBe('Done.');
    expect(JSON.stringify(model.requests.at(-1)?.messages).split('<sub-agents>')).toHaveLength(2);
    expect(chat.messages.filter(({ role }) => role === 'user')).toHaveLength(2);
  });

  it('two at a time', async () => {
    const { model, boss } = setUp();
    model.reply([delegate('researcher', 'One.', 'a'), delegate('researcher', 'Two.', 'b')]);
    expect(
      (
        await boss({ agents: ['researcher'] })
          .chat()
          .send('Go.')
      ).text,
    ).toBe('Done.');
    expect(toldBy(model.requests)).toEqual([{ response: 'Found it.' }, { response: 'Found it.' }]);
  });

  it('an agent without a store gets the history', async () => {
    const { model, worker, boss } = setUp();
    model.reply([delegate('forgetful', 'And now?')]);
    await boss({ agents: ['forgetful'], historyLength: 4 })
      .chat()
      .send('We talked of the moon.');
    const texts = worker.requests[0]?.messages.map(({ content }) => content[0]?.text);
    expect(texts).toEqual(['We talked of the moon.', 'And now?']);
  });

  it('artifacts of the called agent become the session’s', async () => {
    const { model, boss } = setUp();
    model.reply([delegate('writer', 'the moon')]);
    const chat = boss({ agents: ['writer'] }).chat();
    await chat.send('Go.');
    const [told] = toldBy(model.requests) as { response: string; artifacts: { name: string; content: string }[] }[];
    expect(told?.response).toBe('Written.');
    expect(told?.artifacts).toMatchObject([{ content: 'On the moon' }]);
    expect(chat.artifacts).toMatchObject([{ name: told?.artifacts[0]?.name, parts: [{ text: 'On the moon' }] }]);
  });

  it('an interrupt and a failure of the called agent are reported to the model, and end nothing', async () => {
    const { model, worker, boss } = setUp();
    worker.reply([{ toolRequest: { name: 'ask', ref: 'q', input: {} } }], () => {
      throw new Error('boom');
    });
    model.reply([delegate('researcher', 'One.')], [delegate('researcher', 'Two.')]);
    expect(
      (
        await boss({ agents: ['researcher'] })
          .chat()
          .send('Go.')
      ).text,
    ).toBe('Done.');
    const told = JSON.stringify(model.requests.at(-1)?.messages);
    expect(told).toContain('interrupted for additional input');
    expect(told).toContain("Error calling agent 'researcher'");
  });

  it('no deeper than the limit', async () => {
    const { model, worker, boss } = setUp();
    model.reply([delegate('researcher', 'One.')], [delegate('researcher', 'Two.')]);
    await boss({ agents: ['researcher'], maxDelegations: 1 })
      .chat()
      .send('Go.');
    expect(worker.requests).toHaveLength(1);
    expect(JSON.stringify(toldBy(model.requests))).toContain('Delegation limit reached');
  });
});

it('an agent of the drop-in genkit() delegates too, in the tenant of its caller', async () => {
  const ai = genkit();
  const prefixes: unknown[] = [];
  const store = new InMemorySessionStore({
    snapshotPathPrefix: ({ context } = {}) => {
      prefixes.push(context?.auth?.uid);
      return context?.auth?.uid;
    },
  });
  const model = scriptedModel(ai, { otherwise: 'Done.', replies: [[delegate('researcher', 'One.')], 'Found it.'] });
  ai.defineAgent({ name: 'researcher', model: model.name, store });
  const boss = ai.defineAgent({ name: 'boss', model: model.name, store, use: [agents({ agents: ['researcher'] })] });
  const { result } = await boss.run(
    { message: { role: 'user', content: [{ text: 'Go.' }] } },
    { init: {}, context: { auth: { uid: 'ada' } } },
  );
  expect(result.message?.content).toEqual([{ text: 'Done.' }]);
  expect(new Set(prefixes)).toEqual(new Set(['ada']));
});
