import type { MessageData } from 'genkit';
import { describe, expect, it } from 'vitest';
import { noteWriter } from '../../samples/support/models/offline-notes.ts';
import { planReply, understand, type Intent } from '../../samples/support/models/offline-rules.ts';

const user = (text: string): MessageData => ({ role: 'user', content: [{ text }] });
const model = (text: string): MessageData => ({ role: 'model', content: [{ text }] });
const asks = (name: string, input: object): MessageData => ({
  role: 'model',
  content: [{ toolRequest: { name, input } }],
});
const gets = (name: string, output: object): MessageData => ({
  role: 'tool',
  content: [{ toolResponse: { name, output } }],
});

const ANA = { name: 'Ana Silva', email: 'ana@example.com' };
/** A conversation about order 1042. */
const ABOUT_1042 = [
  user('Where is 1042?'),
  asks('findOrder', { orderId: '1042' }),
  gets('findOrder', { order: { id: '1042', status: 'shipped', customer: ANA } }),
  model('It is on its way.'),
];

describe('what the offline model understands', () => {
  const cases: [said: string, before: MessageData[], intent: Intent][] = [
    ['Hi there', [], { kind: 'greeting' }],
    ['What can you do?', [], { kind: 'help' }],
    ['thank you!', [], { kind: 'thanks' }],
    ['What is your return policy?', [], { kind: 'policy' }],
    ['where is order #1042', [], { kind: 'order', orderId: '1042' }],
    ['Where is my parcel?', [], { kind: 'whichOrder' }],
    ['Where is my parcel?', ABOUT_1042, { kind: 'order', orderId: '1042' }],
    ['I want my money back', [], { kind: 'whichRefund' }],
    ['I want my money back', ABOUT_1042, { kind: 'refund', orderId: '1042', reason: 'not given' }],
    ['Refund 1038 because it broke.', [], { kind: 'refund', orderId: '1038', reason: 'it broke' }],
    [
      '1038',
      [user('I want a refund'), model('Which order shall I refund? Tell me its number.')],
      { kind: 'refund', orderId: '1038', reason: 'not given' },
    ],
    ['Refund 1038, because it broke!', [], { kind: 'refund', orderId: '1038', reason: 'it broke' }],
    ['What are my orders?', [], { kind: 'orders' }],
    ["I'm Ben Okafor", [], { kind: 'unclear' }],
    ["I'm not happy", [], { kind: 'unclear' }],
    ['Remember that I like tea.', [], { kind: 'remember', sentence: 'I like tea.' }],
    ['Please remember: I like tea.', [], { kind: 'remember', sentence: 'I like tea.' }],
    ['please, remember, I like tea', [], { kind: 'remember', sentence: 'I like tea' }],
    ['Do you remember order 1042?', [], { kind: 'order', orderId: '1042' }],
    ['What do you remember about me?', [], { kind: 'memories' }],
    ['Forget me, please', [], { kind: 'forget' }],
    ['', [], { kind: 'unclear' }],
  ];

  it.each(cases)('"%s"', (said, before, intent) => {
    expect(understand(said, before)).toEqual(intent);
  });
});

describe('a refund by the offline model', () => {
  const order = { id: '1038', customer: ANA, items: [], refundable: { allowed: true, amount: '€80.00', why: '' } };
  const asked = [user('Refund 1038, it broke')];
  const looked = [...asked, asks('findOrder', { orderId: '1038' }), gets('findOrder', { order })];

  it('looks at the order, then refunds it, then says so', () => {
    expect(planReply(asked)).toMatchObject({ tool: 'findOrder', input: { orderId: '1038' } });
    expect(planReply(looked)).toMatchObject({ tool: 'requestRefund', input: { orderId: '1038', reason: 'it broke' } });
    const refund = { refundId: 'R-1038', amount: '€80.00', reason: 'it broke', at: '' };
    const paid = [...looked, asks('requestRefund', {}), gets('requestRefund', { outcome: 'refunded', refund })];
    expect(planReply(paid)).toMatchObject({ text: expect.stringContaining('€80.00') });
  });

  it('is not asked for when the order does not allow it', () => {
    const refused = {
      ...order,
      refundable: { allowed: false, amount: '€0.00', why: 'Everything in it was marked final sale.' },
    };
    const plan = planReply([...asked, asks('findOrder', {}), gets('findOrder', { order: refused })]);
    expect(plan).toMatchObject({ text: expect.stringContaining('final sale') });
  });
});

describe('the notes of the offline model', () => {
  const { signal: abortSignal } = new AbortController();
  const write = (messages: MessageData[], previous?: string, maxTokens = 1_000) =>
    noteWriter(0)({ messages, previous, maxTokens, abortSignal, text: '' }) as Promise<string>;

  it('have a line for each turn, go on from those before, and are the same each time', async () => {
    const first = await write([...ABOUT_1042, user('Thanks'), model('You are welcome.')]);
    expect(first.split('\n').slice(1)).toEqual([
      '- “Where is 1042?” – looked up order 1042: shipped.',
      '- “Thanks” – answered “You are welcome.”.',
    ]);
    const second = await write([user('Bye'), model('Good bye.')], first);
    expect(second).toBe(`${first}\n- “Bye” – answered “Good bye.”.`);
    expect(await write([user('Bye'), model('Good bye.')], first)).toBe(second);
  });

  it('keep the newest lines when they get long', async () => {
    const turns = Array.from({ length: 50 }, (_, i) => [user(`Question ${i}`), model('Fine.')]).flat();
    const lines = (await write(turns, undefined, 100)).split('\n');
    expect(lines.join('\n').length).toBeLessThanOrEqual(300);
    expect(lines.at(-1)).toBe('- “Question 49” – answered “Fine.”.');
  });

  it('stand in for the turns: a number alone answers the question that the last of them has', async () => {
    const text = `[Summary.]\n| ${await write([user('I want a refund'), model('Which order shall I refund? Tell me its number.')])}\n[End of the data.]`;
    const data = {
      role: 'user' as const,
      content: [{ text, metadata: { purpose: 'context-data' } }, { text: '1038' }],
    };
    const found = gets('findOrder', {
      order: { id: '1038', customer: ANA, items: [], refundable: { allowed: true, amount: '€80.00', why: '' } },
    });
    expect(planReply([data, asks('findOrder', { orderId: '1038' }), found])).toMatchObject({ tool: 'requestRefund' });
  });
});
