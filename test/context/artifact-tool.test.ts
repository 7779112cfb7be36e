import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { contextWindow, lastTurns, readArtifact } from 'genkitx-agents/context';
import { expect, test } from 'vitest';
import { scriptedModel } from '../support/scripted-model.ts';
import { textsOf } from './support/context-reports.ts';

test('the model is told the names of artifacts, and reads one by the tool', async () => {
  const ai = genkit();
  const read = (name: string, ref: string) => ({ toolRequest: { name: 'read_artifact', ref, input: { name } } });
  const replies = [
    [{ toolRequest: { name: 'write', input: {} } }],
    'Written.',
    [read('report', '1'), read('letter', '2')],
    'Read.',
  ];
  const model = scriptedModel(ai, { replies });
  const write = ai.defineTool({ name: 'write', description: 'Writes.' }, async () => {
    const picture = { media: { url: 'data:image/png;base64,AA==', contentType: 'image/png' } };
    const parts = [{ text: 'All is well.' }, { data: { sales: 3 } }, picture];
    ai.currentSession().addArtifacts([{ name: 'report', parts, metadata: { description: 'of March' } }]);
    return 'done';
  });
  const tools = [write, readArtifact(ai)];
  expect(readArtifact(ai)).toBe(tools[1]);
  const context = contextWindow({ artifacts: true, maxTokens: 8_000 });
  const agent = defineAgent(ai, {
    name: 'writer',
    model: model.name,
    tools,
    context,
    store: new InMemorySessionStore(),
  });
  const chat = agent.chat();
  await chat.send('Write it.');
  await chat.send('Read it.');
  expect(textsOf(model.requests.at(-2)!).join()).toContain('report: of March');
  expect(textsOf(model.requests.at(-1)!).at(-1)).toBe(
    'tool: read_artifact -> "All is well.\\n{\\"sales\\":3}\\n[media: image/png]" + ' +
      'read_artifact -> "There is no such artifact. There are: report."',
  );
});

test.each([
  ['the factory', contextWindow],
  ['its options', { history: [lastTurns(3)] }],
  ['its budget', { maxTokens: 500 }],
  ['its strategies', [lastTurns(3)]],
])('a context that is %s and no window is refused', (_, context) => {
  const define = () => defineAgent(genkit(), { name: 'a', model: 'm', context });
  expect(define).toThrow(/Write context: contextWindow\(/);
});
