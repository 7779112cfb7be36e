import { z } from 'genkit';
import type { AgentsGenkit } from 'genkitx-agents';
import { signedInEmail } from '../customer.ts';
import { totalOf, type Order, type OrderBook } from '../orders.ts';
import { remember } from './remember.ts';

const OutputSchema = z.object({
  customer: z.object({ name: z.string(), email: z.string() }).optional(),
  orders: z.array(
    z.object({ id: z.string(), status: z.string(), placedOn: z.string(), total: z.string(), items: z.string() }),
  ),
});

export type ListOrdersOutput = z.infer<typeof OutputSchema>;

/** Lists the orders of the signed-in customer. */
export function defineListOrders(ai: AgentsGenkit, book: OrderBook) {
  return ai.defineTool(
    {
      name: 'listOrders',
      description: 'Lists the orders of the signed-in customer, newest first.',
      inputSchema: z.object({}),
      outputSchema: OutputSchema,
    },
    async (_input, { context }) => {
      const orders = await book.ofCustomer(signedInEmail(context));
      const customer = orders[0]?.customer;
      if (customer) remember(ai, () => ({ customer, topic: 'orders' }));
      return { customer, orders: orders.map((order) => lineOf(order, book)) };
    },
  );
}

function lineOf(order: Order, book: OrderBook) {
  const items = order.items
    .map((item) => (item.quantity > 1 ? `${item.quantity} × ${item.name}` : item.name))
    .join(', ');
  const status = order.refund ? 'refunded' : order.status;
  return { id: order.id, status, placedOn: order.placedOn, total: book.money(totalOf(order)), items };
}
