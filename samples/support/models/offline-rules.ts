import { randomUUID } from 'node:crypto';
import type { MessageData, Part } from 'genkit';
import type { ShowMemoriesOutput } from '../agent/tools/customer-memories.ts';
import type { FindOrderOutput } from '../agent/tools/find-order.ts';
import type { ListOrdersOutput } from '../agent/tools/list-orders.ts';
import type { RefundOutput } from '../agent/tools/request-refund.ts';
import type { StartReportOutput } from '../agent/tools/start-report.ts';
import { askedToForget, askedToRemember, memoryOf } from './offline-memories.ts';
import { SAY, sayFound, sayListed, sayMemories, sayNoRefund, sayPolicy, sayRefunded } from './offline-words.ts';

/** The next step of the offline model: call a tool, or reply. */
export type Plan = { tool: string; ref: string; input: Record<string, string> } | { text: string };

/** The kinds of requests of a customer. */
export type Intent =
  | {
      kind: 'greeting' | 'help' | 'thanks' | 'policy' | 'report' | 'whichOrder' | 'whichRefund' | 'orders' | 'unclear';
    }
  | { kind: 'order'; orderId: string }
  | { kind: 'refund'; orderId: string; reason: string }
  | { kind: 'style'; style: 'brief' | 'full' }
  | { kind: 'remember' | 'forgetOne'; sentence: string }
  | { kind: 'memories' | 'forget' };

type Messages = readonly MessageData[];

/** The answers of the tools. */
export interface Outputs {
  findOrder: FindOrderOutput;
  listOrders: ListOrdersOutput;
  requestRefund: RefundOutput;
  setStyle: { style: string };
  startReport: StartReportOutput;
  showMemories: ShowMemoriesOutput;
  forgetCustomer: { forgotten: number };
  create_memory: string;
  forget_memory: string;
}

const REFUND = /\b(refund|money back|return|send (it|this|them) back)/i;
const BRIEF = /\b(be|keep it|keep replies|answer) (brief|short)/i;
const FULL = /\b(in full|in detail|more details?)\b/i;
const MEMORIES = /\bwhat (?:do )?you (?:remember|know) (?:about|of) me\b/i;
const FORGET = /\bforget (?:me|everything|all)\b|\bforget what you (?:know|remember)\b/i;
const REPORT = /\breport\b/i;
const POLICY = /\b(policy|policies|conditions|rules)\b/i;
const ORDERS = /\b(my orders|orders|what did i (order|buy))\b/i;
const ORDER = /\b(order|package|parcel|delivery|where|when|status|track|arrive)/i;

/** The next step of the turn that the last user message began. */
export function planReply(messages: Messages): Plan {
  const start = messages.findLastIndex(({ role }) => role === 'user');
  const turn = messages.slice(start);
  // A summary is before the customer's message, or in the same message.
  const data: MessageData = { role: 'user', content: turn[0]?.content.filter(isData) ?? [] };
  const intent = understand(textOf(turn[0]), [...messages.slice(0, start), data]);
  const step = (tool: string, input: Record<string, string>): Plan => ({
    tool,
    // The model may get only a part of the conversation, so the ref of a request can't be a count of messages.
    ref: randomUUID(),
    input,
  });

  switch (intent.kind) {
    case 'order': {
      const found = resultOf(turn, 'findOrder');
      return found ? { text: sayFound(found, styleIn(messages)) } : step('findOrder', { orderId: intent.orderId });
    }
    case 'orders': {
      const listed = resultOf(turn, 'listOrders');
      return listed ? { text: sayListed(listed) } : step('listOrders', {});
    }
    case 'refund': {
      // Looks the order up before it pays.
      const refunded = resultOf(turn, 'requestRefund');
      if (refunded) return { text: sayRefunded(refunded, intent.orderId) };
      const found = resultOf(turn, 'findOrder');
      if (!found) return step('findOrder', { orderId: intent.orderId });
      if (!found.order || !(found.order.refund || found.order.refundable.allowed)) return { text: sayNoRefund(found) };
      return step('requestRefund', { orderId: intent.orderId, reason: intent.reason });
    }
    case 'style':
      return resultOf(turn, 'setStyle') ? { text: SAY[intent.style] } : step('setStyle', { style: intent.style });
    case 'report':
      return resultOf(turn, 'startReport') ? { text: SAY.report } : step('startReport', {});
    case 'remember': {
      const answer = resultOf(turn, 'create_memory');
      return answer ? { text: answer } : step('create_memory', { memory: memoryOf(intent.sentence) });
    }
    case 'forgetOne': {
      const answer = resultOf(turn, 'forget_memory');
      return answer ? { text: answer } : step('forget_memory', { memory: memoryOf(intent.sentence) });
    }
    case 'memories': {
      const shown = resultOf(turn, 'showMemories');
      return shown ? { text: sayMemories(shown) } : step('showMemories', {});
    }
    case 'forget':
      return resultOf(turn, 'forgetCustomer') ? { text: SAY.forgotten } : step('forgetCustomer', {});
    case 'policy':
      return { text: sayPolicy(textOf(messages.find(({ role }) => role === 'system'))) };
    default:
      return { text: SAY[intent.kind] };
  }
}

/** @param before Earlier messages, to find the order that "it" means. */
export function understand(text: string, before: Messages): Intent {
  const orderId = /\b(\d{4})\b/.exec(text)?.[1];

  const sentence = askedToRemember(text);
  if (sentence) return { kind: 'remember', sentence };
  if (MEMORIES.test(text)) return { kind: 'memories' };
  if (FORGET.test(text)) return { kind: 'forget' };
  const forgettable = askedToForget(text);
  if (forgettable) return { kind: 'forgetOne', sentence: forgettable };
  if (BRIEF.test(text)) return { kind: 'style', style: 'brief' };
  if (FULL.test(text)) return { kind: 'style', style: 'full' };
  if (REPORT.test(text)) return { kind: 'report' };
  if (POLICY.test(text)) return { kind: 'policy' };
  if (REFUND.test(text) || (orderId && wasAskedWhichRefund(before))) {
    const which = orderId ?? lastOrder(before);
    return which ? { kind: 'refund', orderId: which, reason: reasonIn(text) } : { kind: 'whichRefund' };
  }
  if (orderId) return { kind: 'order', orderId };
  if (/\b(thanks?|thank you|cheers|bye)\b/i.test(text)) return { kind: 'thanks' };
  if (ORDERS.test(text)) return { kind: 'orders' };
  if (/\b(help|what can you|who are you)\b/i.test(text)) return { kind: 'help' };
  if (ORDER.test(text)) {
    const known = lastOrder(before);
    return known ? { kind: 'order', orderId: known } : { kind: 'whichOrder' };
  }
  return { kind: /^\W*(hi|hello|hey|good (morning|evening|day))\b/i.test(text) ? 'greeting' : 'unclear' };
}

/** `Refund 1038, it came broken`: the text after the comma or the "because". */
function reasonIn(text: string): string {
  return /(?:[,:;–-]\s+because|\bbecause|[,:;–-])\s+(.+?)[.!]*$/i.exec(text)?.[1] ?? 'not given';
}

/** The reply style in the instructions. */
function styleIn(messages: Messages): 'brief' | 'full' {
  const instructions = textOf(messages.find(({ role }) => role === 'system'));
  return /^Reply style: brief\.$/m.test(instructions) ? 'brief' : 'full';
}

/** Reads the previous turn, or the last note if notes replace it. */
function wasAskedWhichRefund(before: Messages): boolean {
  const words = parts(before).map((part) => part.text ?? '');
  const lines = words.join('\n').split('\n');
  return lines.findLast((line) => line !== '' && !line.startsWith('['))?.includes(SAY.whichRefund) ?? false;
}

/** Read from the tool requests; if the request no longer contains them, from the instructions. */
function lastOrder(before: Messages): string | undefined {
  const inputs = parts(before).map((part) => part.toolRequest?.input as { orderId?: string } | undefined);
  const instructions = textOf(before.find(({ role }) => role === 'system'));
  return (
    inputs.findLast((input) => input?.orderId)?.orderId ?? /The order in question is (\d+)\./.exec(instructions)?.[1]
  );
}

/** The answer of a tool in this turn, with the type of its schema. */
function resultOf<Tool extends keyof Outputs>(turn: Messages, tool: Tool): Outputs[Tool] | undefined {
  const part = parts(turn).findLast(({ toolResponse }) => toolResponse?.name === tool);
  return part?.toolResponse?.output as Outputs[Tool] | undefined;
}

function parts(messages: Messages) {
  return messages.flatMap(({ content }) => content);
}

/** The text of the message, without the additions of the context window. */
export function textOf(message: MessageData | undefined): string {
  return (message?.content ?? []).map((part) => (isData(part) ? '' : (part.text ?? ''))).join('');
}

function isData({ metadata }: Part): boolean {
  return metadata?.['purpose'] === 'context-data';
}
