import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateMiddleware, z } from 'genkit';
import fc from 'fast-check';
import { genkit, InMemorySessionStore as GenkitStore } from 'genkit/beta';
import { defineAgent, definePromptAgent } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { random } from '../../support/scale.ts';
import { scriptedModel } from '../../support/scripted-model.ts';
import { call, model, user } from '../support/helpers.ts';

function setUp(...replies: string[]) {
  const ai = genkit({});
  return { ai, scripted: scriptedModel(ai, { replies }) };
}

describe('the messages of a prompt agent', () => {
  test("the prompt's own messages go to the model each turn and never into the conversation", async () => {
    const { ai, scripted } = setUp('one', 'two');
    const agent = defineAgent(ai, {
      name: 'formal',
      model: scripted.name,
      system: 'Be {{tone}}.',
      prompt: 'Answer {{tone}} now.',
      input: { schema: z.object({ tone: z.string() }) },
      promptInput: { tone: 'kind' },
    });
    const chat = agent.chat();
    await chat.send('a');
    const { raw } = await chat.send('b');
    const preamble = { metadata: { agentPreamble: true } };
    expect(scripted.requests[1]?.messages).toEqual([
      { role: 'system', content: [{ text: 'Be kind.' }], ...preamble },
      user('a'),
      model('one'),
      user('b'),
      { role: 'user', content: [{ text: 'Answer kind now.' }], ...preamble },
    ]);
    expect(raw.state?.messages).toEqual([user('a'), model('one'), user('b'), model('two')]);
  });

  test.each([
    ['a text', 'Be kind.'],
    ['parts', [{ text: 'Be kind.' }]],
  ])('a model that changes what it is asked in place changes it for no other turn: %s', async (_, system) => {
    const ai = genkit({});
    const asked: unknown[] = [];
    ai.defineModel({ name: 'rude', apiVersion: 'v2' }, async ({ messages: [first] }) => {
      asked.push(structuredClone(first!.content));
      first!.content[0]!.text += ' Not.';
      first!.content.push({ text: 'more' });
      return { message: { role: 'model', content: [{ text: 'ok' }] }, finishReason: 'stop' };
    });
    const agent = defineAgent(ai, { name: 'kind', model: 'rude', system });
    for (const text of ['a', 'b', 'c']) await agent.chat().send(text);
    expect(asked).toEqual([[{ text: 'Be kind.' }], [{ text: 'Be kind.' }], [{ text: 'Be kind.' }]]);
  });

  test('a system text reaches the model as the template engine renders it, template or not', async () => {
    const pieces = [
      'Be kind',
      ' ',
      '\n',
      '\r\n',
      '{',
      '{{',
      '}}',
      '{{x}}',
      '\\',
      '\\{{x}}',
      '<',
      '>',
      '<<<',
      '&',
      '"',
      '-',
      '---\n',
      '\0',
    ];
    const text = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 6 }).map((some) => some.join(''));
    const property = fc.asyncProperty(text, async (system) => {
      const { ai, scripted } = setUp('ok');
      const prompt = ai.definePrompt({ name: 'rendered', model: scripted.name, system });
      const agent = defineAgent(ai, { name: 'speaking', model: scripted.name, system });
      const expected = await prompt.render({}).then(
        ({ messages }) => messages?.[0]?.content,
        () => undefined,
      );
      await agent
        .chat()
        .send('a')
        .catch(() => {});
      expect(scripted.requests[0]?.messages[0]?.content).toEqual(expected);
    });
    await fc.assert(property, random(200, 5000));
  });

  test('a template may place the history among examples, and the history stays as it was', async () => {
    const { ai, scripted } = setUp('one', 'two');
    const agent = defineAgent(ai, {
      name: 'exemplary',
      model: scripted.name,
      messages: '{{role "user"}}example{{role "model"}}example reply{{history}}{{role "user"}}Be short.',
    });
    const chat = agent.chat();
    const message = { ...user('a'), metadata: { sent: 'today' } };
    await chat.send({ message });
    const { raw } = await chat.send('b');
    expect(scripted.requests[1]?.messages.map(({ content }) => content[0]?.text)).toEqual([
      'example',
      'example reply',
      'a',
      'one',
      'b',
      'Be short.',
    ]);
    expect(raw.state?.messages).toEqual([message, model('one'), user('b'), model('two')]);
  });

  test('a messages function may omit history, and omitted messages are not kept', async () => {
    const { ai, scripted } = setUp('one', 'two', 'three');
    const agent = defineAgent(ai, {
      name: 'forgetful',
      model: scripted.name,
      messages: (_input, { history }) => history?.slice(-1) ?? [],
    });
    const chat = agent.chat();
    await chat.send('a');
    await chat.send('b');
    const { raw } = await chat.send('c');
    expect(scripted.requests[2]?.messages).toEqual([user('c')]);
    expect(raw.state?.messages).toEqual([user('c'), model('three')]);
  });

  test('middleware that trims in its generate hook trims the session, one that trims for the model alone does not', async () => {
    const { ai, scripted } = setUp('one', 'two', 'one', 'two');
    const trim = <R extends { messages: unknown[] }>(request: R): R => ({
      ...request,
      messages: request.messages.slice(-1),
    });
    const generateHook = generateMiddleware({ name: 'trimSession' }, () => ({
      generate: async (envelope, context, next) => next({ ...envelope, request: trim(envelope.request) }, context),
    }));
    const modelHook = generateMiddleware({ name: 'trimRequest' }, () => ({
      model: async (request, context, next) => next(trim(request), context),
    }));
    for (const [use, kept] of [
      [generateHook(), [user('b'), model('two')]],
      [modelHook(), [user('a'), model('one'), user('b'), model('two')]],
    ] as const) {
      const agent = defineAgent(ai, { name: `trimming-${use.name}`, model: scripted.name, use: [use] });
      const chat = agent.chat();
      await chat.send('a');
      const { raw } = await chat.send('b');
      expect(scripted.requests.at(-1)?.messages).toEqual([user('b')]);
      expect(raw.state?.messages).toEqual(kept);
    }
  });

  test('code that changes the request in place does not change the session', async () => {
    const ai = genkit({});
    const agent = defineAgent(ai, {
      name: 'tampered',
      model: scriptedModel(ai, { otherwise: 'ok' }).name,
      store: new GenkitStore(),
      messages: (_input, { history = [] }) => {
        for (const message of history) delete message.metadata?.['note'];
        return history;
      },
    });
    const message = { ...user('a'), metadata: { note: 'kept?' } };
    const { output } = await call(agent, [{ message }]);
    // The messages are kept as they were sent: the note was removed on purpose.
    expect((await agent.getSnapshot(output.snapshotId as string))?.state?.messages?.[0]).toEqual(user('a'));
    expect(message.metadata).toEqual({ note: 'kept?' });
  });

  test('changes of the history in place by a prompt are undone when the turn fails', async () => {
    const { ai } = setUp();
    const agent = defineAgent(ai, {
      name: 'undone',
      model: scriptedModel(ai, { name: 'empty' }).name,
      messages: (_input, { history = [] }) => {
        for (const { content } of history) content.push({ text: 'added' });
        return history;
      },
    });
    const { output } = await call(agent, ['b'], { state: { messages: [user('a'), model('one')] } });
    expect(output).toMatchObject({ finishReason: 'failed', state: { messages: [user('a'), model('one')] } });
  });

  test('instructions on the output format are for the model only', async () => {
    const { ai, scripted } = setUp('{"n": 1}', '{"n": 2}');
    const agent = defineAgent(ai, {
      name: 'structured',
      model: scripted.name,
      output: { schema: z.object({ n: z.number() }) },
    });
    const chat = agent.chat();
    await chat.send('a');
    const { raw } = await chat.send('b');
    expect(raw.state?.messages?.map(({ content }) => content)).toEqual([
      [{ text: 'a' }],
      [{ text: '{"n": 1}' }],
      [{ text: 'b' }],
      [{ text: '{"n": 2}' }],
    ]);
    const asked = scripted.requests[1]?.messages;
    expect(asked?.[0]?.content).toHaveLength(1);
    expect(asked?.[2]?.content[1]?.metadata).toEqual({ purpose: 'output' });
  });

  test('the custom state is in the prompt as @state', async () => {
    const { ai, scripted } = setUp('hello');
    const agent = defineAgent(ai, { name: 'personal', model: scripted.name, system: 'Speak to {{@state.name}}.' });
    await call(agent, ['hi'], { state: { custom: { name: 'Ada' } } });
    expect(scripted.requests[0]?.messages[0]?.content).toEqual([{ text: 'Speak to Ada.' }]);
  });

  test('all options of a prompt reach the model', async () => {
    const { ai, scripted } = setUp('ok');
    ai.defineTool({ name: 'tool', description: 'A tool.', inputSchema: z.object({}) }, async () => 1);
    const agent = defineAgent(ai, {
      name: 'full',
      model: scripted.name,
      config: { temperature: 0.5 },
      tools: ['tool'],
      toolChoice: 'auto',
      docs: [{ content: [{ text: 'a document' }] }],
      description: 'Does it all.',
    });
    const { output } = await call(agent, ['hi']);
    expect(output.error).toBeUndefined();
    expect(scripted.requests[0]).toMatchObject({
      config: { temperature: 0.5 },
      tools: [{ name: 'tool' }],
      toolChoice: 'auto',
      docs: [{ content: [{ text: 'a document' }] }],
    });
    expect(agent.__action.description).toBe('Does it all.');
  });

  test.each([1, 2])(
    '%i tools of one reply run; requests, results and last reply are in the conversation',
    async (n) => {
      const ai = genkit({});
      const places = ['Paris', 'Rome'].slice(0, n);
      const ask = places.map((place) => ({ toolRequest: { name: 'weather', ref: place, input: { place } } }));
      const told = places.map((place) => ({
        toolResponse: { name: 'weather', ref: place, output: `rain in ${place}` },
      }));
      const scripted = scriptedModel(ai, { replies: [ask, 'Stay at home.'] });
      const inputSchema = z.object({ place: z.string() });
      const weather = ai.defineTool(
        { name: 'weather', description: 'Tells.', inputSchema },
        async ({ place }) => `rain in ${place}`,
      );
      const agent = defineAgent(ai, { name: 'forecaster', model: scripted.name, tools: [weather] });
      const { chunks, output } = await call(agent, ['Where to?']);
      expect(chunks).toMatchObject([
        { modelChunk: { role: 'tool', content: told } },
        { turnEnd: { finishReason: 'stop' } },
      ]);
      const asked = [user('Where to?'), { role: 'model', content: ask }, { role: 'tool', content: told }];
      expect(scripted.requests[1]?.messages).toMatchObject(asked);
      expect(output.message).toEqual(model('Stay at home.'));
      expect(output.state?.messages).toMatchObject([...asked, model('Stay at home.')]);
    },
  );

  test('a turn without a message sends the prompt alone', async () => {
    const { ai, scripted } = setUp('ready');
    const agent = defineAgent(ai, { name: 'starter', model: scripted.name, prompt: 'Begin.' });
    const { output } = await call(agent, [{}]);
    expect(output.state?.messages).toEqual([model('ready')]);
  });

  test('a prompt with a variant is found', async () => {
    const { ai, scripted } = setUp('ok');
    const agent = defineAgent(ai, { name: 'varied', variant: 'b', model: scripted.name, system: 'Variant b.' });
    expect((await call(agent, ['hi'])).output.message).toEqual(model('ok'));
    expect(agent.__action.name).toBe('varied');
  });
});

describe('definePromptAgent', () => {
  test('uses a prompt that is defined later, with its own input', async () => {
    const { ai, scripted } = setUp('ahoy');
    const agent = definePromptAgent(ai, {
      promptName: 'greeter',
      promptInput: { who: 'sailors' },
      description: 'Greets.',
    });
    ai.definePrompt({ name: 'greeter', model: scripted.name, system: 'Greet {{who}}.' });
    expect((await call(agent, ['hi'])).output.message).toEqual(model('ahoy'));
    expect(scripted.requests[0]?.messages[0]?.content).toEqual([{ text: 'Greet sailors.' }]);
    expect(agent.__action).toMatchObject({ name: 'greeter', description: 'Greets.' });
  });

  test('uses a prompt of a file', async () => {
    const promptDir = await mkdtemp(join(tmpdir(), 'prompts-'));
    try {
      await writeFile(
        join(promptDir, 'filed.prompt'),
        '---\nmodel: scripted\n---\n{{role "system"}}From a file.{{history}}',
      );
      const ai = genkit({ promptDir });
      const scripted = scriptedModel(ai, { replies: ['read', 'again'] });
      const chat = definePromptAgent(ai, { promptName: 'filed' }).chat();
      await chat.send('a');
      const { raw } = await chat.send('b');
      expect(scripted.requests[1]?.messages.map(({ content }) => content[0]?.text)).toEqual([
        'From a file.',
        'a',
        'read',
        'b',
      ]);
      expect(raw.state?.messages).toEqual([user('a'), model('read'), user('b'), model('again')]);
    } finally {
      await rm(promptDir, { recursive: true });
    }
  });

  test('a missing prompt ends the turn as failed', async () => {
    const { ai } = setUp();
    const { output } = await call(definePromptAgent(ai, { promptName: 'nowhere' }), ['hi']);
    expect(output.error).toEqual({
      status: 'NOT_FOUND',
      message: "Prompt 'nowhere' was not found. Define it before the agent's first turn.",
    });
  });
});
