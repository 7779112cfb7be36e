import type { ShowMemoriesOutput } from '../agent/tools/customer-memories.ts';
import type { FindOrderOutput } from '../agent/tools/find-order.ts';
import type { ListOrdersOutput } from '../agent/tools/list-orders.ts';
import type { RefundOutput } from '../agent/tools/request-refund.ts';

const EXAMPLES = `- Where is order **1042**?
- What are **my orders**?
- **Refund** order 1035, it is late.
- What is your refund **policy**?
- Write the monthly **report**.
- **Remember** that I prefer express delivery.
- **What do you remember about me?**
- **Forget** that I prefer express delivery.
- **Forget me**.`;

/** The replies of the offline model without tools. */
export const SAY = {
  greeting: `Hello! I am the offline stand-in for a language model: I follow simple rules, but the tools I use are real. Try:\n\n${EXAMPLES}`,
  help: `I can look up orders, list them, make refunds and write a report. I am not a language model, so keep it simple:\n\n${EXAMPLES}`,
  thanks: 'You are welcome. Is there anything else?',
  report: 'The report is being written in the background. You can go on here, close the page, or stop it.',
  whichOrder: 'Which order is it? Tell me its number, such as 1042.',
  whichRefund: 'Which order shall I refund? Tell me its number.',
  brief: 'I will be brief from now on, in your other conversations too.',
  full: 'I will answer in full from now on, in your other conversations too.',
  forgotten: 'Done: I have forgotten all that I remembered of you. Your orders are as they were.',
  unclear: `I am only the offline model and did not understand that. I do understand:\n\n${EXAMPLES}`,
};

export function sayFound({ order, problem }: FindOrderOutput, style: 'brief' | 'full' = 'full'): string {
  if (!order) return `${problem ?? 'I found no such order.'} Please check the number.`;
  if (style === 'brief') return `Order **${order.id}** is **${order.status}**. ${order.statusNote}`;
  const items = order.items.map(({ name, quantity }) => `- ${quantity} × ${name}`).join('\n');
  const refund = order.refund ? `It was refunded: ${order.refund.refundId}.` : `Refund: ${order.refundable.why}`;
  return `Order **${order.id}** for ${order.customer.name} (${order.total}) is **${order.status}**. ${order.statusNote}\n\n${items}\n\n${refund}`;
}

export function sayListed({ customer, orders }: ListOrdersOutput): string {
  if (!customer) return 'I found no orders of yours.';
  const lines = orders.map(
    ({ id, placedOn, status, total, items }) => `| **${id}** | ${placedOn} | ${items} | ${total} | ${status} |`,
  );
  const table = ['| Order | Placed | Items | Total | Status |', '|---|---|---|--:|---|', ...lines].join('\n');
  return `${customer.name}, you have ${orders.length} ${orders.length === 1 ? 'order' : 'orders'} with us:\n\n${table}\n\nWhich one is it about?`;
}

export function sayMemories({ memories }: ShowMemoriesOutput): string {
  if (memories.length === 0) return 'I remember nothing of you.';
  return `I remember this of you:\n\n${memories.map(({ memory, why }) => `- ${memory} ${why}`).join('\n')}\n\nSay **forget** and what, or **forget me** for all of it.`;
}

export function sayNoRefund({ order, problem }: FindOrderOutput): string {
  if (!order) return sayFound({ problem });
  return `I can't refund order **${order.id}**. ${order.refundable.why}`;
}

export function sayRefunded({ outcome, refund, why }: RefundOutput, orderId: string): string {
  if (outcome === 'rejected') return `All right, I did not refund order **${orderId}**.`;
  if (!refund) return `I can't refund order **${orderId}**. ${why ?? ''}`.trim();
  const receipt = `The receipt **${refund.refundId}** is with this conversation.`;
  if (outcome === 'refunded before') return `Order **${orderId}** was refunded before: ${refund.amount}. ${receipt}`;
  return `Done: I refunded **${refund.amount}** for order **${orderId}**. ${receipt}`;
}

/** @param instructions The system message, which contains the policy. */
export function sayPolicy(instructions: string): string {
  return /^Refund policy: (.*)$/m.exec(instructions)?.[1] ?? 'I was not told the refund policy.';
}
