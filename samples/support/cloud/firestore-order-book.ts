import type { Firestore } from '@google-cloud/firestore';
import orders from '../data/orders.json' with { type: 'json' };
import { OrderBook, OrderListSchema, RefundSchema, type Order, type Refund } from '../agent/orders.ts';

/** gRPC's code for a document that already exists. */
const ALREADY_EXISTS = 6;

/** The orders of `data/orders.json`, with their refunds in Firestore: one document an order, for any number of instances. */
export class FirestoreOrderBook extends OrderBook {
  readonly #db: Firestore;

  constructor(db: Firestore) {
    super(OrderListSchema.parse(orders));
    this.#db = db;
  }

  protected override async current(order: Order): Promise<Order> {
    const found = await this.#refundOf(order).get();
    return found.exists ? { ...order, refund: RefundSchema.parse(found.data()) } : order;
  }

  /** If several instances pay at the same time, one creates the document, and the others return its refund. */
  protected override async pay(order: Order, refund: Refund): Promise<Refund> {
    try {
      await this.#refundOf(order).create(refund);
      return refund;
    } catch (error) {
      if ((error as { code?: unknown }).code !== ALREADY_EXISTS) throw error;
      return RefundSchema.parse((await this.#refundOf(order).get()).data());
    }
  }

  #refundOf({ id }: Order) {
    return this.#db.collection('support-refunds').doc(id);
  }
}
