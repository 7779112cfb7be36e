/** An interrupt that waits for a person is found by loading the conversation, in process and over HTTP. */
import { z } from 'genkit';
import { genkit, InMemorySessionStore } from 'genkitx-agents';
import { remoteAgent, type AgentAPI, type AgentInterrupt } from 'genkitx-agents/client';
import { agentHandler } from 'genkitx-agents/server';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { scriptedModel } from '../../support/scripted-model.ts';

type Refund = AgentInterrupt<{ orderId: string }, string, { amount: number }>;

function setUp() {
  const ai = genkit({});
  const { name } = scriptedModel(ai, {
    replies: [[{ toolRequest: { name: 'refund', ref: 'r1', input: { orderId: 'A7' } } }]],
    otherwise: 'Done.',
  });
  const refunded: unknown[] = [];
  const refund = ai.defineTool(
    { name: 'refund', description: 'Pays an order back.', inputSchema: z.object({ orderId: z.string() }) },
    async ({ orderId }, { interrupt, resumed }) => {
      if (!resumed) interrupt({ amount: 30 });
      refunded.push({ orderId, resumed });
      return 'refunded';
    },
  );
  const agent = ai.defineAgent({ name: 'shop', model: name, tools: [refund], store: new InMemorySessionStore() });
  return { agent, refunded };
}

const WAYS = [
  { name: 'in process', reach: ({ agent }: ReturnType<typeof setUp>): AgentAPI => agent },
  {
    name: 'over HTTP',
    reach: ({ agent }: ReturnType<typeof setUp>): AgentAPI => {
      const handler = agentHandler({ shop: agent }, { context: () => ({}) });
      return remoteAgent({
        url: 'http://agents.test/shop',
        fetch: (url, init) => handler(new Request(url as string, init)),
      });
    },
  },
];

describe.each(WAYS)('an interrupt, $name', ({ reach }) => {
  it("has the tool's own question", async () => {
    const { interrupts } = await reach(setUp()).chat().send('Refund A7.');
    expect(interrupts).toMatchObject([
      { name: 'refund', ref: 'r1', input: { orderId: 'A7' }, question: { amount: 30 } },
    ]);
    const refund = interrupts.find((interrupt): interrupt is Refund => interrupt.name === 'refund');
    expectTypeOf(refund?.question?.amount).toEqualTypeOf<number | undefined>();
  });

  it('waits in a chat that was loaded, and is approved there', async () => {
    const made = setUp();
    const { sessionId = '' } = await reach(made).chat().send('Refund A7.');
    const chat = await reach(made).loadChat({ sessionId });
    const [interrupt] = chat.interrupts;
    expect(interrupt).toMatchObject({ name: 'refund', input: { orderId: 'A7' }, question: { amount: 30 } });
    expect((await chat.resume({ restart: [interrupt!.restart({ by: 'Ada' })] })).text).toBe('Done.');
    expect(chat.interrupts).toEqual([]);
    expect(made.refunded).toEqual([{ orderId: 'A7', resumed: { by: 'Ada' } }]);
    expect((await reach(made).loadChat({ sessionId })).interrupts).toEqual([]);
  });

  it('waits in a snapshot, and is rejected from there', async () => {
    const made = setUp();
    const agent = reach(made);
    const { sessionId = '' } = await agent.chat().send('Refund A7.');
    const snapshot = await agent.getSnapshot({ sessionId });
    const [interrupt] = snapshot!.interrupts;
    expect(interrupt?.question).toEqual({ amount: 30 });
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot);
    const chat = agent.chat({ snapshotId: snapshot!.snapshotId });
    expect((await chat.resume({ respond: [interrupt!.respond('rejected')] })).text).toBe('Done.');
    expect(made.refunded).toEqual([]);
  });

  it('waits in the snapshot of a turn in the background', async () => {
    const agent = reach(setUp());
    const task = await agent.chat().detach('Refund A7.');
    for (const snapshot of [await agent.waitForSnapshot(task.snapshotId), await task.wait({ intervalMs: 1 })]) {
      expect(snapshot.interrupts).toMatchObject([{ name: 'refund', question: { amount: 30 } }]);
    }
    const metadata = await agent.getSnapshot(task.snapshotId, { metadataOnly: true });
    expect(metadata?.interrupts).toEqual([]);
  });
});
