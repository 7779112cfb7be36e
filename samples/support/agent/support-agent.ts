import { generateMiddleware, type MiddlewareRef } from 'genkit';
import { defineAgent, type AgentConfig, type AgentsGenkit, type SnapshotStore } from 'genkitx-agents';
import type { SupportModel } from '../models/choose-model.ts';
import type { OrderBook } from './orders.ts';
import { PreferencesSchema, SupportStateSchema, type Preferences, type SupportState } from './state.ts';
import { defineFindOrder, defineListOrders, defineRequestRefund, defineSetStyle, remember } from './tools.ts';

/** What the agent is made of. */
export interface SupportAgentOptions {
  book: OrderBook;
  model: SupportModel;
  store: SnapshotStore<SupportState>;
  /** How turns are treated that are stopped, or go on without their caller: as a deployment needs it. */
  running?: Pick<AgentConfig<SupportState>, 'onAbort' | 'background'>;
}

/** The support agent: a model, four tools, a typed state, and a store that keeps every turn. */
export function defineSupportAgent(ai: AgentsGenkit, { book, model, store, running }: SupportAgentOptions) {
  return defineAgent(ai, {
    name: 'support',
    description: `Answers questions about orders of ${book.shop} and makes refunds.`,
    model: model.name,
    system: async (_input, { state }) => instructions(book, state as PromptState | undefined),
    tools: [defineFindOrder(ai, book), defineListOrders(ai, book), defineRequestRefund(ai, book), defineSetStyle(ai)],
    use: [countTurns(ai), ...model.use],
    stateSchema: SupportStateSchema,
    scopes: { user: PreferencesSchema },
    store,
    ...running,
  });
}

/** What the prompt sees: the conversation's state, and what belongs to the user. */
type PromptState = SupportState & { 'user:style'?: Preferences['style'] };

/** The prompt sees the state, so the model knows what was learned before, and on which branch. */
function instructions(book: OrderBook, state: PromptState | undefined): string {
  const known = state?.customer ? `You are talking to ${state.customer.name} <${state.customer.email}>.` : '';
  const order = state?.orderId ? `The order in question is ${state.orderId}.` : '';
  return [
    `You are the support agent of ${book.shop}. Be brief and friendly. Use the tools; never guess about an order.`,
    `Refund policy: ${book.refundPolicy}`,
    'Ask for an order number or an e-mail address when you need one. Refund only when the customer asked for it.',
    `Reply style: ${state?.['user:style'] ?? 'full'}.`,
    `${known} ${order}`.trim(),
  ].join('\n');
}

/** Counts the customer's messages: a middleware may change the state as well as a tool may. */
function countTurns(ai: AgentsGenkit): MiddlewareRef {
  const middleware = generateMiddleware({ name: 'countTurns' }, () => ({
    generate: (call, options, next) => {
      // A turn calls the model again after each round of tools; its first call is number 0.
      if (call.currentTurn === 0) remember(ai, ({ turns }) => ({ turns: turns + 1 }));
      return next(call, options);
    },
  }));
  return middleware();
}
