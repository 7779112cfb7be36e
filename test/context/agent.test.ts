/** An agent with a context window: the model is sent less, and the session keeps everything. */
import type { GenerateRequest, GenerateResponseData, Part } from 'genkit';
import { defineAgent, definePromptAgent, genkit, InMemorySessionStore, type AgentConfig } from 'genkitx-agents';
import { clearToolOutputs, contextWindow, lastTurns, type ContextReport } from 'genkitx-agents/context';
import { describe, expect, test } from 'vitest';
import { scriptedModel, type ScriptedReply } from '../support/scripted-model.ts';
import { user } from '../agent/support/helpers.ts';
import { contextReportOf, textsOf } from './support/context-reports.ts';

const asks = (name: string): Part[] => [{ toolRequest: { name, ref: '1', input: { id: 7 } } }];

function setUp(options: Partial<AgentConfig>, replies: ScriptedReply[] = []) {
  const ai = genkit();
  const scripted = scriptedModel(ai, { replies, otherwise: ({ index }) => `answer ${index + 1}` });
  const store = new InMemorySessionStore();
  const look = ai.defineTool({ name: 'look', description: 'Looks.' }, async () => ({ rows: 'row '.repeat(200) }));
  const ask = ai.defineInterrupt({ name: 'ask', description: 'Asks.' });
  const agent = defineAgent(ai, {
    name: 'support',
    model: scripted.name,
    system: 'Be brief.',
    tools: [look, ask],
    store,
    ...options,
  });
  return { agent, scripted, store };
}

const request = (requests: readonly GenerateRequest[], index: number) => requests.at(index)!;

describe('an agent with a window', () => {
  test('sends the last turns, and its session has all of them', async () => {
    const { agent, scripted } = setUp({ context: contextWindow({ history: [lastTurns(2, { step: 1 })] }) });
    const chat = agent.chat();
    for (let i = 1; i <= 5; i++) await chat.send(`question ${i}`);
    expect(textsOf(request(scripted.requests, -1))).toEqual([
      'system: Be brief.',
      'user: question 3',
      'model: answer 3',
      'user: question 4',
      'model: answer 4',
      'user: question 5',
    ]);
    expect(chat.messages).toHaveLength(10);
  });

  test('keeps the report with the snapshot: counts and ranges, and what the model counted', async () => {
    const reports: ContextReport[] = [];
    const reply: GenerateResponseData = {
      message: { role: 'model', content: [{ text: 'ok' }] },
      finishReason: 'stop',
      usage: { inputTokens: 33 },
    };
    const window = contextWindow({
      maxTokens: 900,
      history: [lastTurns(1)],
      onReport: (report) => reports.push(report),
    });
    const { agent, store } = setUp({ context: window }, [reply, reply, reply]);
    const chat = agent.chat();
    for (const text of ['a', 'b', 'c']) await chat.send(text);
    const report = await contextReportOf(store, chat.snapshotId!);
    expect(report).toEqual(reports.at(-1));
    expect(report).toMatchObject({
      model: 'scripted',
      maxTokens: 900,
      inputTokens: 33,
      calls: 1,
      messages: 5,
      sent: [[2, 4]],
      dropped: [[0, 2]],
      sections: {
        instructions: { items: 1 },
        tools: { items: 2 },
        history: { items: 2, omitted: 2, reasons: ['strategy'] },
        prompt: { items: 1 },
      },
    });
  });

  test('keeps the report as it is, whatever onReport does to the one that it gets', async () => {
    const window = contextWindow({
      maxTokens: 900,
      onReport: (report) => Object.assign(report, { maxTokens: 1 }) && (report.sent as unknown[]).push('mine'),
    });
    const { agent, store } = setUp({ context: window });
    const chat = agent.chat();
    await chat.send('one');
    expect(await contextReportOf(store, chat.snapshotId!)).toMatchObject({ maxTokens: 900, sent: [] });
  });

  test('applies at every model call of a tool loop', async () => {
    const { agent, scripted } = setUp(
      { context: contextWindow({ history: [clearToolOutputs({ keepTurns: 0, step: 1 })] }) },
      [asks('look'), 'first', asks('look'), 'second'],
    );
    const chat = agent.chat();
    await chat.send('one');
    await chat.send('two');
    const last = request(scripted.requests, -1);
    const outputs = last.messages.flatMap(({ content }) => content.flatMap((part) => part.toolResponse?.output ?? []));
    expect(outputs[0]).toMatch(/^Left out, was an object with rows \(\d+ characters\)\./);
    expect(outputs[1]).toMatchObject({ rows: expect.stringContaining('row row') });
    // The session has both as they were.
    const kept = chat.messages.flatMap(({ content }) => content.flatMap((part) => part.toolResponse?.output ?? []));
    expect(kept[0]).toEqual(kept[1]);
  });

  test('answers an interrupt through the window', async () => {
    const { agent, scripted } = setUp({ context: contextWindow({ history: [lastTurns(0)] }) }, [
      'one',
      asks('ask'),
      'done',
    ]);
    const chat = agent.chat();
    await chat.send('first');
    const waiting = await chat.send('second');
    const [interrupt] = waiting.interrupts;
    const reply = await chat.resume({ respond: [interrupt!.respond('yes')] });
    expect(reply.text).toBe('done');
    expect(textsOf(request(scripted.requests, -1))).toEqual([
      'system: Be brief.',
      'user: second',
      'model: ask()',
      'tool: ask -> "yes"',
    ]);
  });

  test('keeps an interrupt that the user does not answer, and answers it for the model', async () => {
    const { agent, scripted } = setUp({ context: contextWindow({ history: [lastTurns(0)] }) }, [asks('ask'), 'fine']);
    const chat = agent.chat();
    await chat.send('first');
    await chat.send('something else');
    expect(textsOf(request(scripted.requests, -1)).slice(1)).toEqual([
      'user: first',
      'model: ask()',
      'tool: ask -> "Waits for the user."',
      'user: something else',
    ]);
    expect(chat.messages.filter(({ role }) => role === 'tool')).toEqual([]);
  });

  test('works with a prompt that is defined elsewhere, and keeps its messages in their places', async () => {
    const ai = genkit();
    const scripted = scriptedModel(ai, { otherwise: 'ok' });
    ai.definePrompt({ name: 'guide', model: scripted.name, system: 'Guide.', prompt: 'Answer in one sentence.' });
    const context = contextWindow({ history: [lastTurns(1)] });
    const agent = definePromptAgent(ai, { promptName: 'guide', store: new InMemorySessionStore(), context });
    const chat = agent.chat();
    for (const text of ['a', 'b', 'c']) await chat.send(text);
    expect(textsOf(request(scripted.requests, -1))).toEqual([
      'system: Guide.',
      'user: b',
      'model: ok',
      'user: c',
      'user: Answer in one sentence.',
    ]);
  });

  test('has the same log with a window as without, also in a detached turn', async () => {
    const run = async (context: AgentConfig['context']) => {
      const { agent, store } = setUp(context ? { context } : {}, [
        asks('look'),
        'first',
        'second',
        asks('look'),
        'third',
      ]);
      const chat = agent.chat({ sessionId: 's' });
      await chat.send('one');
      await chat.send('two');
      const task = await chat.detach('three');
      await task.wait();
      return (await store.getSnapshot({ sessionId: 's' }))!.state!.messages;
    };
    const windowed = await run(contextWindow({ maxTokens: 500, history: [lastTurns(0)] }));
    expect(windowed).toHaveLength(10);
    expect(windowed).toEqual(await run(undefined));
  });

  test('takes a context of Genkit as before', async () => {
    const { agent } = setUp({ context: { auth: { uid: 'ada' } } });
    expect((await agent.chat().send('hi')).text).toBe('answer 1');
  });

  test('refuses a context that is not a window where only a window makes sense', () => {
    expect(() => definePromptAgent(genkit(), { promptName: 'p', context: {} as never })).toThrow(
      'definePromptAgent: context must be made by contextWindow.',
    );
  });

  test('fails the turn before the model is called when the current message alone is too long', async () => {
    const { agent, scripted } = setUp({ context: contextWindow({ maxTokens: 300 }) });
    const chat = agent.chat();
    await chat.send('short');
    await expect(chat.send('long '.repeat(2_000))).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    expect(scripted.requests).toHaveLength(1);
    // The session goes on.
    expect((await chat.send('short again')).text).toBe('answer 2');
    expect(chat.messages.at(-2)).toMatchObject(user('short again'));
  });
});

test('the model is sent the names of artifacts, those of a tool that has just run included', async () => {
  const ai = genkit();
  const scripted = scriptedModel(ai, { replies: [asks('write'), 'done'] });
  const write = ai.defineTool({ name: 'write', description: '-' }, async () => {
    const metadata = { description: 'Sales of May' };
    ai.currentSession().addArtifacts([{ name: 'report.md', parts: [{ text: 'much text' }], metadata }]);
    return 'written';
  });
  const context = contextWindow({ artifacts: true });
  const agent = defineAgent(ai, { name: 'writer', model: scripted.name, tools: [write], context });
  await agent.chat().send('Write the report.');
  const [before, after] = scripted.requests.map((each) => textsOf(each)[0]);
  expect(before).toBe('user: Write the report.');
  expect(after).toMatch(
    /^user: \[Artifacts of this conversation\..*\n\| report\.md: Sales of May\n.*Write the report\.$/s,
  );
});
