import { setTimeout as pause } from 'node:timers/promises';
import type { MessageData, Part } from 'genkit';
import type { Summarizer } from 'genkitx-agents/context';
import { textOf, type Outputs } from './offline-rules.ts';

/** The title of the notes, for the model and the reader. */
const TITLE =
  'Notes by the rules of the offline model, not by a language model. If they get long, only the newest stay.';
/** Fewer characters per token than in most texts, so that the notes are not cut. */
const CHARACTERS_A_TOKEN = 3;
const QUOTE_LENGTH = 90;

/**
 * Summarizes a conversation by rules: one line for each turn, with the quoted question, and the results of the tools or the reply.
 *
 * @param paceMs The time for each line, in ms.
 */
export function noteWriter(paceMs: number): Summarizer {
  return async ({ previous, messages, maxTokens, abortSignal: signal }) => {
    await pause(paceMs * turnsIn(messages).length, undefined, { signal });
    return writeNotes(previous, messages, maxTokens);
  };
}

function writeNotes(previous = '', messages: readonly MessageData[], maxTokens: number): string {
  const earlier = previous.split('\n').filter((line) => line !== '' && line !== TITLE);
  const notes = [...earlier, ...turnsIn(messages).map(noteOf)];
  const room = maxTokens * CHARACTERS_A_TOKEN - TITLE.length;
  while (notes.length > 1 && notes.join('\n').length > room) notes.shift();
  return [TITLE, ...notes].join('\n');
}

function turnsIn(messages: readonly MessageData[]): MessageData[][] {
  const turns: MessageData[][] = [];
  for (const message of messages) {
    if (message.role === 'user' || turns.length === 0) turns.push([]);
    turns.at(-1)!.push(message);
  }
  return turns;
}

function noteOf(turn: readonly MessageData[]): string {
  const parts = turn.flatMap(({ content }) => content);
  const done = parts.flatMap((part) => doneBy(part) ?? []);
  const answered = textOf(turn.findLast(({ role }) => role === 'model')).split('\n')[0]!;
  return `- ${quote(textOf(turn[0]))} – ${done.length > 0 ? done.join('; ') : `answered ${quote(answered)}`}.`;
}

/** The result of a tool, in its own words. */
function doneBy({ toolResponse }: Part): string | undefined {
  switch (toolResponse?.name) {
    case 'findOrder': {
      const { order, problem } = toolResponse.output as Outputs['findOrder'];
      return order ? `looked up order ${order.id}: ${order.status}` : `found no order: ${quote(problem)}`;
    }
    case 'listOrders': {
      const { orders } = toolResponse.output as Outputs['listOrders'];
      return `listed the orders ${orders.map(({ id }) => id).join(', ') || '(none)'}`;
    }
    case 'requestRefund': {
      const { outcome, refund, why } = toolResponse.output as Outputs['requestRefund'];
      const what = refund ? `${refund.amount}, ${refund.refundId}` : why;
      return `refund: ${outcome}${what ? ` (${what.replace(/\.$/, '')})` : ''}`;
    }
    case 'setStyle':
      return `reply style: ${(toolResponse.output as Outputs['setStyle']).style}`;
    case 'startReport':
      return 'began the monthly report';
    default:
      return undefined;
  }
}

function quote(text = ''): string {
  const line = text.replaceAll(/\s+/g, ' ').replaceAll('**', '').trim();
  return `“${line.length > QUOTE_LENGTH ? `${line.slice(0, QUOTE_LENGTH - 1)}…` : line}”`;
}
