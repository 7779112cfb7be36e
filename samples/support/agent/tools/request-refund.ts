import { z } from 'genkit';
import type { AgentsGenkit } from 'genkitx-agents';
import { signedInEmail } from '../customer.ts';
import { decideRefund, RefundSchema, type Order, type OrderBook } from '../orders.ts';
import type { SupportState } from '../state.ts';
import { remember, scratchpad } from './remember.ts';

const InputSchema = z.object({
  orderId: z.string(),
  reason: z.string().describe("The customer's reason, in a few words"),
});

const OutputSchema = z.object({
  outcome: z.enum(['refunded', 'refunded before', 'refused', 'rejected']),
  refund: RefundSchema.extend({ amount: z.string() }).optional(),
  why: z.string().optional(),
});

export type RefundInput = z.infer<typeof InputSchema>;
export type RefundOutput = z.infer<typeof OutputSchema>;

/** The question before a refund. The page shows it on a card with Approve and Reject. */
export type RefundQuestion = {
  orderId: string;
  amount: string;
  customer: string;
  items: string[];
  reason: string;
};

/** Refunds an order, once, after a person approved it, and leaves a receipt with the conversation. */
export function defineRequestRefund(ai: AgentsGenkit, book: OrderBook) {
  return ai.defineTool(
    {
      name: 'requestRefund',
      description:
        'Refunds an order of the signed-in customer when the refund policy allows it. Only when the customer asked for it. ' +
        'The customer is asked to approve before anything is paid.',
      inputSchema: InputSchema,
      outputSchema: OutputSchema,
    },
    async ({ orderId, reason }, { context, interrupt, resumed }): Promise<RefundOutput> => {
      const order = await book.find(orderId, signedInEmail(context));
      if (!order) return { outcome: 'refused', why: `The customer who is signed in has no order ${orderId}.` };
      remember(ai, () => ({ orderId: order.id, customer: order.customer, topic: 'refund' }));

      if (order.refund) return { outcome: 'refunded before', refund: keepReceipt(ai, order, book) };
      const decision = decideRefund(order);
      if (!decision.allowed) return { outcome: 'refused', why: decision.why };
      if (!resumed) {
        // The order may have changed since an earlier turn, so the question uses the lookup of this turn.
        const lookedUp = (scratchpad().get('temp:lookedUp') ?? []) as string[];
        if (!lookedUp.includes(order.id)) {
          return { outcome: 'refused', why: 'Look the order up first (findOrder), then ask for the refund again.' };
        }
        // Ends the turn here. The tool runs again, with `resumed`, once the question is answered with Approve.
        interrupt({ ...questionAbout(order, reason, book) });
      }
      const refund = await book.refund(order, reason);
      return { outcome: 'refunded', refund: keepReceipt(ai, { ...order, refund }, book) };
    },
  );
}

function questionAbout(order: Order, reason: string, book: OrderBook): RefundQuestion {
  const refunded = order.items.filter(({ finalSale }) => !finalSale);
  return {
    orderId: order.id,
    amount: book.money(decideRefund(order).amount),
    customer: `${order.customer.name} <${order.customer.email}>`,
    items: refunded.map(({ name, quantity }) => `${quantity} × ${name}`),
    reason,
  };
}

/** Stores the refund in the state, and the receipt as an artifact: a named document of the conversation. */
function keepReceipt(ai: AgentsGenkit, order: Order, book: OrderBook): RefundOutput['refund'] {
  const { refund } = order;
  if (!refund) throw new Error(`Order ${order.id} was not refunded.`);
  const { refundId, amount } = refund;
  remember(ai, ({ refunds }) => ({
    refunds: [...refunds.filter((other) => other.refundId !== refundId), { refundId, orderId: order.id, amount }],
  }));
  const text = [
    `${book.shop} — refund ${refundId}`,
    '',
    `Customer   ${order.customer.name} <${order.customer.email}>`,
    `Order      ${order.id}, placed ${order.placedOn}`,
    `Amount     ${book.money(amount)}`,
    `Reason     ${refund.reason}`,
    `Date       ${refund.at.slice(0, 10)}`,
  ].join('\n');
  ai.currentSession<SupportState>().addArtifacts([
    { name: `receipt-${refundId}.txt`, parts: [{ text }], metadata: { orderId: order.id } },
  ]);
  return { ...refund, amount: book.money(amount) };
}
