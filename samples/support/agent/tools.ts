import { z } from 'genkit';
import { currentSession, type AgentsGenkit } from 'genkitx-agents';
import { decideRefund, OrderSchema, RefundSchema, totalOf, type Order, type OrderBook } from './orders.ts';
import { NOTHING_KNOWN, PreferencesSchema, type Preferences, type SupportState } from './state.ts';

const OrderViewSchema = OrderSchema.extend({
  total: z.string(),
  refundable: z.object({ allowed: z.boolean(), amount: z.string(), why: z.string() }),
});

const FindOrderOutputSchema = z.object({ order: OrderViewSchema.optional(), problem: z.string().optional() });
const ListOrdersOutputSchema = z.object({
  customer: z.object({ name: z.string(), email: z.string() }).optional(),
  orders: z.array(
    z.object({ id: z.string(), status: z.string(), placedOn: z.string(), total: z.string(), items: z.string() }),
  ),
});
const RefundOutputSchema = z.object({
  outcome: z.enum(['refunded', 'refunded before', 'refused']),
  refund: RefundSchema.extend({ amount: z.string() }).optional(),
  why: z.string().optional(),
});

export type FindOrderOutput = z.infer<typeof FindOrderOutputSchema>;
export type ListOrdersOutput = z.infer<typeof ListOrdersOutputSchema>;
export type RefundOutput = z.infer<typeof RefundOutputSchema>;

/** Changes what the running conversation knows. The change is streamed to the page at once and saved with the turn. */
export function remember(ai: AgentsGenkit, change: (known: SupportState) => Partial<SupportState>): void {
  ai.currentSession<SupportState>().updateCustom((known = NOTHING_KNOWN) => ({ ...known, ...change(known) }));
}

/** The scratchpad of the running turn: the conversation's keys, the user's, and those of this turn alone. */
function scratchpad() {
  return currentSession<SupportState, Preferences>().state;
}

/** Looks up one order. */
export function defineFindOrder(ai: AgentsGenkit, book: OrderBook) {
  return ai.defineTool(
    {
      name: 'findOrder',
      description: 'Looks up an order by its number: what is in it, where it is, and whether it can be refunded.',
      inputSchema: z.object({ orderId: z.string().describe('The order number, such as 1042') }),
      outputSchema: FindOrderOutputSchema,
    },
    async ({ orderId }) => {
      const order = await book.find(orderId);
      if (!order) return { problem: `There is no order ${orderId}.` };
      remember(ai, () => ({ orderId: order.id, customer: order.customer, topic: 'order' }));
      scratchpad().update('temp:lookedUp', (ids) => [...((ids as string[] | undefined) ?? []), order.id]);
      return { order: viewOf(order, book) };
    },
  );
}

/** Lists a customer's orders. */
export function defineListOrders(ai: AgentsGenkit, book: OrderBook) {
  return ai.defineTool(
    {
      name: 'listOrders',
      description: "Lists a customer's orders, newest first.",
      inputSchema: z.object({ customer: z.string().describe('An e-mail address, a full name or a first name') }),
      outputSchema: ListOrdersOutputSchema,
    },
    async ({ customer: who }) => {
      const orders = await book.ofCustomer(who);
      const customer = orders[0]?.customer;
      if (customer) remember(ai, () => ({ customer, topic: 'orders' }));
      return { customer, orders: orders.map((order) => lineOf(order, book)) };
    },
  );
}

/** Refunds an order, once, and leaves a receipt with the conversation. */
export function defineRequestRefund(ai: AgentsGenkit, book: OrderBook) {
  return ai.defineTool(
    {
      name: 'requestRefund',
      description: 'Refunds an order when the refund policy allows it. Only when the customer asked for it.',
      inputSchema: z.object({
        orderId: z.string(),
        reason: z.string().describe("The customer's reason, in a few words"),
      }),
      outputSchema: RefundOutputSchema,
    },
    async ({ orderId, reason }) => {
      const order = await book.find(orderId);
      if (!order) return { outcome: 'refused' as const, why: `There is no order ${orderId}.` };
      remember(ai, () => ({ orderId: order.id, customer: order.customer, topic: 'refund' }));

      // What was true in an earlier turn may not be so any more: money goes out on what was looked up in this one.
      const lookedUp = (scratchpad().get('temp:lookedUp') ?? []) as string[];
      if (!lookedUp.includes(order.id)) {
        return {
          outcome: 'refused' as const,
          why: 'Look the order up first (findOrder), then ask for the refund again.',
        };
      }
      const before = order.refund !== undefined;
      const decision = decideRefund(order);
      if (!before && !decision.allowed) return { outcome: 'refused' as const, why: decision.why };

      const refund = await book.refund(order, reason);
      const { refundId, amount } = refund;
      remember(ai, ({ refunds }) => ({
        refunds: [...refunds.filter((other) => other.refundId !== refundId), { refundId, orderId: order.id, amount }],
      }));
      ai.currentSession<SupportState>().addArtifacts([receiptFor({ ...order, refund }, book)]);
      return {
        outcome: before ? ('refunded before' as const) : ('refunded' as const),
        refund: { ...refund, amount: book.money(amount) },
      };
    },
  );
}

/** Keeps how the customer wants to be answered, in this conversation and all others. */
export function defineSetStyle(ai: AgentsGenkit) {
  return ai.defineTool(
    {
      name: 'setStyle',
      description:
        'Keeps how the customer wants to be answered from now on: brief or full. Only when the customer asked for it.',
      inputSchema: PreferencesSchema,
      outputSchema: PreferencesSchema,
    },
    async ({ style }) => {
      scratchpad().set('user:style', style);
      return { style };
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

function lineOf(order: Order, book: OrderBook) {
  const items = order.items
    .map((item) => (item.quantity > 1 ? `${item.quantity} × ${item.name}` : item.name))
    .join(', ');
  const status = order.refund ? 'refunded' : order.status;
  return { id: order.id, status, placedOn: order.placedOn, total: book.money(totalOf(order)), items };
}

/** The receipt is an artifact: a named document that belongs to the conversation. */
function receiptFor(order: Order, book: OrderBook) {
  const { refund } = order;
  if (!refund) throw new Error(`Order ${order.id} was not refunded.`);
  const text = [
    `${book.shop} — refund ${refund.refundId}`,
    '',
    `Customer   ${order.customer.name} <${order.customer.email}>`,
    `Order      ${order.id}, placed ${order.placedOn}`,
    `Amount     ${book.money(refund.amount)}`,
    `Reason     ${refund.reason}`,
    `Date       ${refund.at.slice(0, 10)}`,
  ].join('\n');
  return { name: `receipt-${refund.refundId}.txt`, parts: [{ text }], metadata: { orderId: order.id } };
}
