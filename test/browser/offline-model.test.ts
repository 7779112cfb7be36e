import type { MessageData } from 'genkit';
import { describe, expect, it } from 'vitest';
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
  gets('findOrder', { order: { id: '1042', customer: ANA } }),
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
