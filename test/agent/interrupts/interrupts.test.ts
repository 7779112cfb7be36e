import { toolApproval } from '@genkit-ai/middleware';
import { generateMiddleware, z } from 'genkit';
import { genkit, type Part } from 'genkit/beta';
import { defineAgent, InMemorySessionStore, type AgentConfig, type AgentInput } from 'genkitx-agents';
import { describe, expect, test } from 'vitest';
import { scriptedModel, type ScriptedReply } from '../../support/scripted-model.ts';
import { call, model, user } from '../support/helpers.ts';
import { CHANGING_STORE_KINDS } from '../support/stores.ts';

const ask = (ref: string, question = 'sure?'): Part => ({ toolRequest: { name: 'ask', input: { question }, ref } });
const pay = (ref: string, amount = 5): Part => ({ toolRequest: { name: 'pay', input: { amount }, ref } });

describe.each(CHANGING_STORE_KINDS)('interrupts on $name', ({ make }) => {
  async function setUp(...replies: ScriptedReply[]) {
    const ai = genkit({});
    const scripted = scriptedModel(ai, { replies });
    const paid: { amount: number; resumed: unknown }[] = [];
    ai.defineInterrupt({ name: 'ask', description: 'Asks.', inputSchema: z.object({ question: z.string() }) });
    ai.defineTool(
      { name: 'pay', description: 'Pays.', inputSchema: z.object({ amount: z.number() }) },
      async ({ amount }, { interrupt, resumed }) => {
        if (!resumed) interrupt({ reason: 'money' });
        paid.push({ amount, resumed });
        return 'paid';
      },
    );
    let flags = 0;
    ai.defineTool({ name: 'flag', description: 'Answers nothing much.', inputSchema: z.object({}) }, async () => {
      flags++;
      return false;
    });
    const tools = ['ask', 'pay', 'flag'];
    const store = await make();
    const agent = defineAgent(ai, { name: 'careful', model: scripted.name, tools, store });
    const first = await call(agent, ['go']);
    const init = { snapshotId: first.output.snapshotId };
    const resume = (resumed: AgentInput['resume']) => call(agent, [{ resume: resumed }], init);
    return { ai, store, agent, scripted, first, resume, paid, flags: () => flags };
  }

  test('an interrupted turn is completed with the reason ’interrupted’, in the stream too', async () => {
    const { agent, first } = await setUp([ask('1')]);
    const waiting = { ...ask('1'), metadata: { interrupt: true } };
    expect(first.output).toMatchObject({ finishReason: 'interrupted', message: { role: 'model', content: [waiting] } });
    expect(first.chunks).toEqual([
      { modelChunk: { role: 'tool', content: [waiting] } },
      { turnEnd: { finishReason: 'interrupted', snapshotId: first.output.snapshotId } },
    ]);
    const saved = await agent.getSnapshot(first.output.snapshotId as string);
    expect(saved).toMatchObject({ status: 'completed', finishReason: 'interrupted' });
  });

  test('an answer goes to the model and into the conversation', async () => {
    const { agent, scripted, resume } = await setUp([ask('1')], 'thanks');
    const { output, chunks } = await resume({ respond: [{ toolResponse: { name: 'ask', ref: '1', output: 'yes' } }] });
    const response = { toolResponse: { name: 'ask', ref: '1', output: 'yes' } };
    expect(output).toMatchObject({ finishReason: 'stop', message: model('thanks') });
    expect(chunks[0]).toMatchObject({ modelChunk: { role: 'tool', content: [response] } });
    expect(scripted.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', content: [response] });
    const saved = await agent.getSnapshot(output.snapshotId as string);
    expect(saved?.status).toBe('completed');
    const messages = saved?.state?.messages;
    expect(messages).toMatchObject([
      user('go'),
      { role: 'model', content: [ask('1')] },
      { role: 'tool', content: [response] },
      model('thanks'),
    ]);
    expect(messages?.[1]?.content[0]?.metadata).toEqual({ resolvedInterrupt: true });
  });

  test('a restarted tool runs once, with the input it was asked with and what the caller adds', async () => {
    const { first, resume, paid } = await setUp([pay('1')], 'bought');
    expect(first.output).toMatchObject({ finishReason: 'interrupted', message: { content: [pay('1')] } });
    const { output } = await resume({
      restart: [{ ...pay('1'), metadata: { resumed: { by: 'me' } } } as never],
    });
    expect(output).toMatchObject({ finishReason: 'stop', message: model('bought') });
    expect(paid).toEqual([{ amount: 5, resumed: { by: 'me' } }]);
  });

  const restart = (part: Part) => ({ restart: [part as never] });
  const respond = (name: string, ref?: string) => ({ respond: [{ toolResponse: { name, ref, output: 'yes' } }] });

  test('an answer to a tool that has run is refused; after a turn that failed it is accepted', async () => {
    const { resume, paid, scripted } = await setUp([pay('1')], 'bought');
    await resume(restart(pay('1')));
    const { output } = await resume(respond('pay', '1'));
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'FAILED_PRECONDITION' } });
    expect(output.error?.message).toContain('already approved');
    expect([paid.length, scripted.requests.length]).toEqual([1, 2]);

    const fails = () => {
      throw new Error('no model');
    };
    const failing = await setUp([pay('1')], fails, 'I know', 'I know');
    expect((await failing.resume(restart(pay('1')))).output.finishReason).toBe('failed');
    expect((await failing.resume(respond('pay', '1'))).output).toMatchObject({ message: model('I know') });
    expect((await failing.resume(respond('pay', '1'))).output.finishReason).toBe('stop');
    expect(failing.paid).toHaveLength(1);
  });

  test('an agent without the tool that waits refuses the approval, and the tool can still be approved', async () => {
    const { ai, store, scripted, first, resume, paid } = await setUp([pay('1')], 'no tools', 'bought');
    const bare = defineAgent(ai, { name: 'bare', model: scripted.name, store });
    const init = { snapshotId: first.output.snapshotId };
    const { output } = await call(bare, [{ resume: restart(pay('1')) }], init);
    expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'NOT_FOUND' } });
    const answered = await call(bare, [{ resume: respond('pay', '1') }], init);
    expect(answered.output).toMatchObject({ message: model('no tools') });
    expect((await resume(restart(pay('1')))).output.message).toEqual(model('bought'));
    expect(paid).toHaveLength(1);
  });

  test('forged resume: only the last message waits, an earlier interrupt does not', async () => {
    const { agent, paid, resume } = await setUp([pay('1')], 'bought', 'hello');
    const done = await resume(restart(pay('1')));
    const init = { snapshotId: done.output.snapshotId };
    const again = await call(agent, [{ resume: restart(pay('1')) }], init);
    expect(again.output.error?.message).toContain('not found in session history');
    expect(paid).toHaveLength(1);
  });

  test('all waiting requests are answered at once, and before that no tool runs', async () => {
    const { first, resume, paid } = await setUp([pay('1'), ask('2')], 'done');
    expect(first.output.message?.content).toMatchObject([pay('1'), ask('2')]);
    const half = await resume(restart(pay('1')));
    expect(half.output.error?.message).toContain("leaves tool 'ask' (ref '2') unanswered");
    expect(paid).toEqual([]);
    const { output } = await resume({ ...restart(pay('1')), ...respond('ask', '2') });
    expect(output.message).toEqual(model('done'));
    expect(paid).toHaveLength(1);
  });

  test('a tool that ran beside the interrupted one is not run again, whatever it answered', async () => {
    const { resume, flags, scripted } = await setUp(
      [{ toolRequest: { name: 'flag', input: {}, ref: 'f' } }, ask('1')],
      'done',
    );
    expect(flags()).toBe(1);
    const { output } = await resume(respond('ask', '1'));
    expect(output.message).toEqual(model('done'));
    expect(flags()).toBe(1);
    expect(scripted.requests[1]?.messages.at(-1)?.content.map((part) => part.toolResponse?.output)).toEqual([
      false,
      'yes',
    ]);
  });

  test.each([
    ['without a ref', 'in order', [5, 7], {}],
    ['without a ref', 'in another order', [7, 5], {}],
    ['with an empty ref', 'in order', [5, 7], { ref: '' }],
    ['with an empty ref', 'in another order', [7, 5], { ref: '' }],
  ])('requests of one tool %s get each its own input, approved %s', async (_, _order, amounts, ref) => {
    const noRef = (amount: number): Part => ({ toolRequest: { name: 'pay', input: { amount }, ...ref } });
    const { agent, resume, paid } = await setUp([noRef(5), noRef(7), ask('1')], 'done');
    const approved = amounts.map((amount) => ({ ...noRef(amount), metadata: { resumed: { amount } } }));
    const { output } = await resume({ restart: approved as never, ...respond('ask', '1') });
    expect(output).toMatchObject({ finishReason: 'stop', message: model('done') });
    const byAmount = paid.toSorted((a, b) => a.amount - b.amount);
    expect(byAmount).toEqual([5, 7].map((amount) => ({ amount, resumed: { amount } })));
    const { messages } = (await agent.getSnapshot(output.snapshotId as string))!.state!;
    expect(messages?.[2]?.content).toHaveLength(3);
  });

  test.each([{}, { ref: '' }])('answers to one tool without refs go to its requests in order: %o', async (ref) => {
    const noRef = (question: string): Part => ({ toolRequest: { name: 'ask', input: { question }, ...ref } });
    const { resume, scripted } = await setUp([noRef('a'), noRef('b')], 'done');
    const respondTo = (output: string) => ({ toolResponse: { name: 'ask', output, ...ref } });
    const { output } = await resume({ respond: [respondTo('A'), respondTo('B')] });
    expect(output.message).toEqual(model('done'));
    const answers = scripted.requests[1]?.messages.at(-1)?.content.map((part) => part.toolResponse?.output);
    expect(answers).toEqual(['A', 'B']);
  });

  test('a resume is refused when no request waits', async () => {
    const { agent } = await setUp('hello');
    expect((await call(agent, [{ resume: {} }])).output.error?.message).toContain('Nothing to resume');
  });

  test('a conversation may continue without an answer', async () => {
    const flag: Part = { toolRequest: { name: 'flag', input: {}, ref: '2' } };
    const { agent, scripted, first } = await setUp([ask('1'), flag], 'never mind');
    const { output } = await call(agent, ['forget it'], { snapshotId: first.output.snapshotId });
    expect(output.message).toEqual(model('never mind'));
    // Most providers refuse a request without a response. A tool that ran has its output as the response.
    const responses = [
      { toolResponse: { name: 'ask', ref: '1', output: 'Waits for the user.' } },
      { toolResponse: { name: 'flag', ref: '2', output: false } },
    ];
    const [go, asked, ...rest] = scripted.requests[1]!.messages;
    expect([go!.role, asked!.role]).toEqual(['user', 'model']);
    expect(rest).toMatchObject([{ role: 'tool', content: responses }, user('forget it')]);
    const saved = await agent.getSnapshot(output.snapshotId!);
    expect(saved?.state?.messages?.map(({ role }) => role)).toEqual(['user', 'model', 'user', 'model']);
  });
});

test('an agent that returns its tool requests gets their answers by resume', async () => {
  const ai = genkit({});
  const scripted = scriptedModel(ai, { replies: [[ask('1')], 'done'] });
  ai.defineTool(
    { name: 'ask', description: 'Asks.', inputSchema: z.object({ question: z.string() }) },
    async () => 'never',
  );
  const agent = defineAgent(ai, { name: 'manual', model: scripted.name, tools: ['ask'], returnToolRequests: true });
  const chat = agent.chat();
  expect((await chat.send('go')).toolRequests).toEqual([ask('1')]);
  const { text, messages } = await chat.resume({
    respond: [{ toolResponse: { name: 'ask', ref: '1', output: 'mine' } }],
  });
  expect(text).toBe('done');
  expect(messages[0]).toEqual(user('go'));
  expect(messages[2]?.content[0]?.toolResponse?.output).toBe('mine');
});

describe('middleware that interrupts a tool again after a restart', () => {
  function setUp(use: NonNullable<AgentConfig['use']>) {
    const ai = genkit({});
    let runs = 0;
    const act = ai.defineTool({ name: 'act', description: 'Acts.', inputSchema: z.object({}) }, async () => {
      runs++;
      return 'done';
    });
    const request: Part = { toolRequest: { name: 'act', ref: '1', input: {} } };
    const scripted = scriptedModel(ai, { replies: [[request]], otherwise: 'bye' });
    const store = new InMemorySessionStore();
    const agent = defineAgent(ai, { name: 'careful', model: scripted.name, tools: [act], store, use });
    const restart = (resumed: unknown) => ({ restart: [{ ...request, metadata: { resumed } } as never] });
    return { chat: agent.chat(), restart, runs: () => runs };
  }

  test('makes an interrupted turn, and the tool runs once it is approved', async () => {
    const { chat, restart, runs } = setUp([toolApproval({ approved: [] })]);
    expect((await chat.send('go')).finishReason).toBe('interrupted');
    const again = await chat.resume(restart({ other: 1 }));
    expect(again.finishReason).toBe('interrupted');
    expect(again.toolRequests[0]?.metadata).toHaveProperty('interrupt');
    expect(runs()).toBe(0);
    const { text } = await chat.resume(restart({ toolApproved: true }));
    expect(text).toBe('bye');
    expect(runs()).toBe(1);
  });

  test('forged resume: one interrupt, one execution: where middleware failed before the tool started it may be approved again', async () => {
    let isBroken = true;
    const breaking = generateMiddleware({ name: 'breaking' }, () => ({
      tool: async (request, options, next) => {
        if (isBroken && request.metadata?.['resumed']) throw new Error('the policy server is down');
        return next(request, options);
      },
    }));
    const { chat, restart, runs } = setUp([toolApproval({ approved: [] }), breaking()]);
    await chat.send('go');
    await expect(chat.resume(restart({ toolApproved: true }))).rejects.toThrow('the policy server is down');
    expect(runs()).toBe(0);
    isBroken = false;
    expect((await chat.resume(restart({ toolApproved: true }))).text).toBe('bye');
    expect(runs()).toBe(1);
  });
});
