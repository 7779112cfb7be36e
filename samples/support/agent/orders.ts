import { z } from 'genkit';

const ItemSchema = z.object({
  name: z.string(),
  quantity: z.number().int().positive(),
  price: z.number(),
  finalSale: z.boolean().optional(),
});

export const RefundSchema = z.object({ refundId: z.string(), amount: z.number(), reason: z.string(), at: z.string() });

export const OrderSchema = z.object({
  id: z.string(),
  customer: z.object({ name: z.string(), email: z.string() }),
  placedOn: z.string(),
  status: z.enum(['processing', 'shipped', 'delayed', 'delivered', 'cancelled']),
  statusNote: z.string(),
  items: z.array(ItemSchema),
  refund: RefundSchema.optional(),
});

export const OrderListSchema = z.object({
  shop: z.string(),
  currency: z.string(),
  refundPolicy: z.string(),
  orders: z.array(OrderSchema),
});

export type Order = z.infer<typeof OrderSchema>;
export type Refund = z.infer<typeof RefundSchema>;
export type OrderList = z.infer<typeof OrderListSchema>;

/** The result of the refund policy for one order. */
export interface RefundDecision {
  allowed: boolean;
  /** The refunded amount; 0 if no refund is allowed. */
  amount: number;
  why: string;
}

/** The price of all items of the order. */
export function totalOf(order: Order): number {
  return sum(order.items);
}

/** Applies the shop's refund policy. */
export function decideRefund(order: Order): RefundDecision {
  const refuse = (why: string): RefundDecision => ({ allowed: false, amount: 0, why });
  if (order.refund) return refuse(`It was refunded before (${order.refund.refundId}).`);
  if (order.status === 'cancelled') return refuse('It was cancelled and nothing was charged.');
  if (order.status === 'shipped') return refuse('It is on its way; it can be refunded once it is delivered or late.');
  const amount = sum(order.items.filter((item) => !item.finalSale));
  if (amount === 0) return refuse('Everything in it was marked final sale.');
  const all = amount === totalOf(order);
  return {
    allowed: true,
    amount,
    why: all ? 'All of it can be refunded.' : 'All but the final-sale items can be refunded.',
  };
}

/** The shop's orders. Its subclasses store the refunds. */
export abstract class OrderBook {
  readonly #list: OrderList;

  protected constructor(list: OrderList) {
    this.#list = list;
  }

  /** The current order, with its refund if it has one. */
  protected abstract current(order: Order): Promise<Order>;

  /** Stores the refund, unless the order has one. Returns the refund of the order. */
  protected abstract pay(order: Order, refund: Refund): Promise<Refund>;

  get shop(): string {
    return this.#list.shop;
  }

  get refundPolicy(): string {
    return this.#list.refundPolicy;
  }

  /** `€12.50` */
  money(amount: number): string {
    return new Intl.NumberFormat('en', { style: 'currency', currency: this.#list.currency }).format(amount);
  }

  /** An order of the customer with this e-mail address; `undefined` for an order of another customer. */
  async find(id: string, email: string | undefined): Promise<Order | undefined> {
    const wanted = id.trim().replace(/^#/, '');
    const found = this.#list.orders.find(({ id: known, customer }) => known === wanted && customer.email === email);
    return found && this.current(found);
  }

  /** The orders of the customer with this e-mail address, newest first; none without an address. */
  async ofCustomer(email: string | undefined): Promise<Order[]> {
    const found = this.#list.orders
      .filter(({ customer }) => customer.email === email)
      .sort((a, b) => b.placedOn.localeCompare(a.placedOn));
    return Promise.all(found.map((order) => this.current(order)));
  }

  /**
   * Refunds the order. Another call returns the same refund. So a model that repeats itself, a turn that runs again after its process died, or
   * a branch from an earlier message can't pay twice.
   */
  async refund(order: Order, reason: string): Promise<Refund> {
    const { amount } = decideRefund(order);
    return this.pay(order, { refundId: `R-${order.id}`, amount, reason, at: new Date().toISOString() });
  }
}

function sum(items: Order['items']): number {
  const cents = items.reduce((total, item) => total + item.quantity * Math.round(item.price * 100), 0);
  return cents / 100;
}
