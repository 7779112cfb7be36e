import { totalOf, type Order, type OrderBook } from './orders.ts';

/** The monthly report, in Markdown. */
export function writeReport(orders: readonly Order[], book: OrderBook): string {
  return [
    `# ${book.shop}: monthly report`,
    '',
    table(['Status', 'Orders', 'Sales'], salesByStatus(orders, book)),
    '',
    '## Refunds',
    '',
    refundsOf(orders, book),
  ].join('\n');
}

function salesByStatus(orders: readonly Order[], book: OrderBook): string[][] {
  const statuses = [...new Set(orders.map(({ status }) => status))];
  const rows = statuses.map((status) => {
    const some = orders.filter((order) => order.status === status);
    return [status, String(some.length), book.money(salesOf(some))];
  });
  return [...rows, ['**all**', `**${orders.length}**`, `**${book.money(salesOf(orders))}**`]];
}

function refundsOf(orders: readonly Order[], book: OrderBook): string {
  const rows = orders.flatMap(({ id, refund }) => (refund ? [[id, book.money(refund.amount), refund.reason]] : []));
  return rows.length > 0 ? table(['Order', 'Amount', 'Reason'], rows) : 'None.';
}

function salesOf(orders: readonly Order[]): number {
  return orders.reduce((total, order) => total + totalOf(order), 0);
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
