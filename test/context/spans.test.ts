import { defineAgent, genkit, handOverRuns } from 'genkitx-agents';
import { contextWindow, summarize } from 'genkitx-agents/context';
import { expect, test } from 'vitest';
import { collectSpans } from '../support/spans.ts';
import { scriptedModel } from '../support/scripted-model.ts';

/** Telemetry must be there before anything is traced. */
const spans = await collectSpans();

test('the spans of a window have counts and no content', async () => {
  const found = { deadlineMs: 1_000, fetch: async () => [{ text: 'secret document' }] };
  const history = [summarize({ everyTurns: 1, summarizer: async () => 'secret notes' })];
  const ai = genkit();
  const scripted = scriptedModel(ai, { otherwise: 'secret answer' });
  const context = contextWindow({ knowledge: found, history });
  const agent = defineAgent(ai, { name: 'talker', model: scripted.name, context });
  await agent.chat().send('secret question');
  await handOverRuns(ai, { graceMs: 60_000 });
  const ours = spans.filter(({ name }) => name.startsWith('context-'));
  expect(ours.map(({ name }) => name).toSorted()).toEqual([
    'context-call',
    'context-fetch',
    'context-prepare',
    'context-upload',
  ]);
  expect(JSON.stringify(ours.map(({ attributes, events }) => ({ attributes, events })))).not.toContain('secret');
  const prepared = ours.find(({ name }) => name === 'context-prepare')!;
  expect(Object.keys(prepared.attributes)).toEqual(expect.arrayContaining(['genkit:metadata:context:estimatedTokens']));
});
