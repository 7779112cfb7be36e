import { z } from 'genkit';
import type { AgentsGenkit } from 'genkitx-agents';
import { signedInEmail } from '../customer.ts';
import { decideRefund, OrderSchema, totalOf, type Order, type OrderBook } from '../orders.ts';
import { remember, scratchpad } from './remember.ts';

const OrderViewSchema = OrderSchema.extend({
  total: z.string(),
  refundable: z.object({ allowed: z.boolean(), amount: z.string(), why: z.string() }),
});

const OutputSchema = z.object({ order: OrderViewSchema.optional(), problem: z.string().optional() });

export type FindOrderOutput = z.infer<typeof OutputSchema>;

/** Looks up one order of the signed-in customer. */
export function defineFindOrder(ai: AgentsGenkit, book: OrderBook) {
  return ai.defineTool(
    {
      name: 'findOrder',
      description:
        'Looks up an order of the signed-in customer by its number: what is in it, where it is, and whether it can be refunded.',
      inputSchema: z.object({ orderId: z.string().describe('The order number, such as 1042') }),
      outputSchema: OutputSchema,
    },
    async ({ orderId }, { context }) => {
      const order = await book.find(orderId, signedInEmail(context));
      if (!order) return { problem: `The customer who is signed in has no order ${orderId}.` };
      remember(ai, () => ({ orderId: order.id, customer: order.customer, topic: 'order' }));
      scratchpad().update('temp:lookedUp', (ids) => [...((ids as string[] | undefined) ?? []), order.id]);
      return { order: viewOf(order, book) };
    },
  );
}

function viewOf(order: Order, book: OrderBook): z.infer<typeof OrderViewSchema> {
  const decision = decideRefund(order);
  return {
    ...order,
    total: book.money(totalOf(order)),
    refundable: { ...decision, amount: book.money(decision.amount) },
  };
}
