import { z } from 'genkit';
import { genkit, type SessionStore } from 'genkit/beta';
import { defineAgent, defineCustomAgent, type Agent } from 'genkitx-agents';
import { scriptedModel, type ScriptedModel } from '../support/scripted-model.ts';

/** The agents that the conformance cases name, and the model they run on. */
export interface ConformanceAgents {
  model: ScriptedModel;
  // oxlint-disable-next-line typescript/no-explicit-any -- The cases know nothing of the agents' states.
  agents: Record<string, Agent<any>>;
}

type Counted = { counter?: number; status?: string };

/** Defines them all, each agent with a store on a store of its own. */
export async function conformanceAgents(makeStore: () => Promise<SessionStore>): Promise<ConformanceAgents> {
  const ai = genkit({});
  const model = scriptedModel(ai, { name: 'programmableModel' });
  const store = async <S>() => (await makeStore()) as SessionStore<S>;

  const testTool = ai.defineTool(
    { name: 'testTool', description: 'Answers.', inputSchema: z.object({}) },
    async () => 'tool called',
  );
  const interruptTool = ai.defineInterrupt({
    name: 'interruptTool',
    description: 'Asks.',
    inputSchema: z.object({ query: z.string() }),
    outputSchema: z.object({ answer: z.string() }),
  });
  const restartTool = ai.defineTool(
    {
      name: 'restartTool',
      description: 'Acts when it is approved.',
      inputSchema: z.object({ action: z.string() }),
      outputSchema: z.object({ result: z.string() }),
    },
    async ({ action }, { interrupt, resumed }) => (resumed ? { result: `did ${action}` } : interrupt()),
  );
  const prompt = { model: model.name };
  const done = { message: { role: 'model' as const, content: [{ text: 'done' }] } };

  const counting = async (name: string, counterStore?: SessionStore<Counted>) =>
    defineCustomAgent<Counted>(ai, { name, store: counterStore }, async (sess) => {
      await sess.run(async () => {
        sess.updateCustom((custom) => ({ ...custom, counter: (custom?.counter ?? 0) + 1 }));
      });
      return done;
    });

  const agents = [
    defineAgent(ai, { ...prompt, name: 'promptAgent' }),
    defineAgent(ai, { ...prompt, name: 'promptAgentWithStore', store: await store() }),
    defineAgent(ai, { ...prompt, name: 'promptAgentWithTools', tools: [testTool] }),
    defineAgent(ai, { ...prompt, name: 'promptAgentWithInterrupt', tools: [interruptTool], store: await store() }),
    defineAgent(ai, { ...prompt, name: 'promptAgentWithRestartTool', tools: [restartTool], store: await store() }),
    defineCustomAgent(ai, { name: 'customAgentBlocking', store: await store() }, async (sess, { abortSignal }) => {
      await sess.run(
        () => new Promise((resolve) => abortSignal.addEventListener('abort', () => resolve(), { once: true })),
      );
      return {};
    }),
    defineCustomAgent(ai, { name: 'customAgentFailing', store: await store() }, async (sess) => {
      await sess.run(() => Promise.reject(new Error('intentional failure')));
      return {};
    }),
    defineCustomAgent(ai, { name: 'customAgentWithArtifacts' }, async (sess) => {
      await sess.run(async () => {
        sess.addArtifacts([{ name: 'doc1', parts: [{ text: 'v1' }] }]);
        sess.addArtifacts([{ name: 'doc1', parts: [{ text: 'v2' }] }]);
        sess.addArtifacts([{ name: 'doc2', parts: [{ text: 'other' }] }]);
      });
      return { ...done, artifacts: sess.getArtifacts() };
    }),
    await counting('customAgentWithCustomState'),
    await counting('customAgentWithCustomStateStore', await store()),
    defineCustomAgent<Counted>(ai, { name: 'customAgentWithMultiCustomState' }, async (sess) => {
      await sess.run(async () => {
        sess.updateCustom(() => ({ counter: 1, status: 'working' }));
        sess.updateCustom((custom) => ({ ...custom, counter: 2 }));
        sess.updateCustom((custom) => ({ ...custom, status: 'done' }));
      });
      return done;
    }),
    defineCustomAgent(ai, { name: 'customAgentWithArtifactsStore', store: await store() }, async (sess) => {
      await sess.run(async () => {
        const next = sess.getArtifacts().length + 1;
        sess.addArtifacts([{ name: `doc${next}`, parts: [{ text: `content${next}` }] }]);
      });
      return { ...done, artifacts: sess.getArtifacts() };
    }),
  ];
  return { model, agents: Object.fromEntries(agents.map((agent) => [agent.__action.name, agent])) };
}
