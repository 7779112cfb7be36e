import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'genkit';
import { SetupError } from '../setup-error.ts';

const SEED = new URL('../data/orders.json', import.meta.url);

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

const OrderFileSchema = z.object({
  shop: z.string(),
  currency: z.string(),
  refundPolicy: z.string(),
  orders: z.array(OrderSchema),
});

export type Order = z.infer<typeof OrderSchema>;
export type Refund = z.infer<typeof RefundSchema>;
type OrderFile = z.infer<typeof OrderFileSchema>;

/** What the refund policy says about one order. */
export interface RefundDecision {
  allowed: boolean;
  /** What is paid back; 0 when not allowed. */
  amount: number;
  why: string;
}

/** The price of everything in the order. */
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

/**
 * The shop's orders. They are read from `data/orders.json`; the first refund puts a copy into the data folder, which is read and written
 * from then on.
 */
export class OrderBook {
  readonly #file: string;
  readonly #data: OrderFile;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(file: string, data: OrderFile) {
    this.#file = file;
    this.#data = data;
  }

  /** @throws SetupError when the copy in `dataDir` can't be used. */
  static async open(dataDir: string): Promise<OrderBook> {
    const copy = join(dataDir, 'orders.json');
    return new OrderBook(copy, await readOrders(existsSync(copy) ? copy : fileURLToPath(SEED)));
  }

  get shop(): string {
    return this.#data.shop;
  }

  get refundPolicy(): string {
    return this.#data.refundPolicy;
  }

  /** `€12.50` */
  money(amount: number): string {
    return new Intl.NumberFormat('en', { style: 'currency', currency: this.#data.currency }).format(amount);
  }

  find(id: string): Order | undefined {
    return this.#data.orders.find((order) => order.id === id.trim().replace(/^#/, ''));
  }

  /** The orders of the customer with this e-mail address, name or first name; newest first. */
  ofCustomer(who: string): Order[] {
    const wanted = who.trim().toLowerCase();
    const matches = ({ customer }: Order) =>
      [customer.email, customer.name, customer.name.split(' ')[0]].some((known) => known?.toLowerCase() === wanted);
    return this.#data.orders.filter(matches).sort((a, b) => b.placedOn.localeCompare(a.placedOn));
  }

  /**
   * Refunds the order. Asking again answers the same refund, so a model that repeats itself, or a conversation that took another way from
   * an earlier message, can't pay twice.
   */
  async refund(order: Order, reason: string): Promise<Refund> {
    const work = this.#writing.then(async () => {
      if (order.refund) return order.refund;
      const { amount } = decideRefund(order);
      order.refund = { refundId: `R-${order.id}`, amount, reason, at: new Date().toISOString() };
      await writeWhole(this.#file, this.#data).catch((error: unknown) => {
        delete order.refund;
        throw error;
      });
      return order.refund;
    });
    this.#writing = work.catch(() => {});
    return work;
  }
}

function sum(items: Order['items']): number {
  const cents = items.reduce((total, item) => total + item.quantity * Math.round(item.price * 100), 0);
  return cents / 100;
}

async function readOrders(file: string): Promise<OrderFile> {
  try {
    return OrderFileSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    throw new SetupError(`'${file}' holds no list of orders; delete it to start again with the orders of the sample.`);
  }
}

/** A reader sees the old file or the new one, never half of it. */
async function writeWhole(file: string, data: OrderFile): Promise<void> {
  const temporary = `${file}.new`;
  await writeFile(temporary, JSON.stringify(data, undefined, 2), { mode: 0o600 });
  await rename(temporary, file);
}
