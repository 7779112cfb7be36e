import { existsSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import orders from '../data/orders.json' with { type: 'json' };
import { SetupError } from '../setup-error.ts';
import { OrderBook, OrderListSchema, type Order, type OrderList, type Refund } from './orders.ts';

/**
 * Orders in a file. It reads `data/orders.json`; the first refund copies the file to the data folder, and from then on the copy is read and
 * written.
 */
export class FileOrderBook extends OrderBook {
  readonly #file: string;
  readonly #list: OrderList;
  readonly #redact: (reason: string) => Promise<string>;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(file: string, list: OrderList, redact: (reason: string) => Promise<string>) {
    super(list);
    this.#file = file;
    this.#list = list;
    this.#redact = redact;
  }

  /**
   * @param redact Returns the part of a reason, the customer's own text, that is stored. Default: all of it.
   * @throws SetupError if the copy in `dataDir` can't be used.
   */
  static async open(
    dataDir: string,
    redact = async (reason: string): Promise<string> => reason,
  ): Promise<FileOrderBook> {
    const copy = join(dataDir, 'orders.json');
    const list = existsSync(copy) ? await readOrders(copy) : OrderListSchema.parse(orders);
    return new FileOrderBook(copy, list, redact);
  }

  protected override async current(order: Order): Promise<Order> {
    return order;
  }

  protected override async pay(order: Order, refund: Refund): Promise<Refund> {
    const work = this.#writing.then(async () => {
      if (order.refund) return order.refund;
      order.refund = { ...refund, reason: await this.#redact(refund.reason) };
      await writeWhole(this.#file, this.#list).catch((error: unknown) => {
        delete order.refund;
        throw error;
      });
      return order.refund;
    });
    this.#writing = work.catch(() => {});
    return work;
  }
}

async function readOrders(file: string): Promise<OrderList> {
  try {
    return OrderListSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    throw new SetupError(
      `'${file}' does not contain a list of orders; delete it to start again with the orders of the sample.`,
    );
  }
}

/** A reader gets the old file or the new one, never an incomplete one. */
async function writeWhole(file: string, list: OrderList): Promise<void> {
  const temporary = `${file}.new`;
  await writeFile(temporary, JSON.stringify(list, undefined, 2), { mode: 0o600 });
  await rename(temporary, file);
}
