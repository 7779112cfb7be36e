import { generateMiddleware, type MiddlewareRef } from 'genkit';
import { defineAgent, type AgentConfig, type AgentsGenkit, type SnapshotStore } from 'genkitx-agents';
import { clearToolOutputs, contextWindow, lastTurns, summarize, tokenBudget } from 'genkitx-agents/context';
import type { MemoryManager } from 'genkitx-agents/memory';
import type { SupportModel } from '../models/choose-model.ts';
import { signedInEmail } from './customer.ts';
import type { OrderBook } from './orders.ts';
import { PreferencesSchema, SupportStateSchema, type Preferences, type SupportState } from './state.ts';
import type { ReportAgent } from './report-agent.ts';
import { defineForgetCustomer, defineShowMemories } from './tools/customer-memories.ts';
import { defineFindOrder } from './tools/find-order.ts';
import { defineListOrders } from './tools/list-orders.ts';
import { remember } from './tools/remember.ts';
import { defineRequestRefund } from './tools/request-refund.ts';
import { defineSetStyle } from './tools/set-style.ts';
import { defineStartReport } from './tools/start-report.ts';

/** The parts of the agent. */
export interface SupportAgentOptions {
  book: OrderBook;
  model: SupportModel;
  /** Writes the monthly report in the background. */
  reporter: ReportAgent;
  store: SnapshotStore<SupportState>;
  /** The memory of customers. */
  memory: MemoryManager;
  background?: AgentConfig['background'];
}

export type SupportAgent = ReturnType<typeof defineSupportAgent>;

/** The support agent: a model and its tools, a typed state, a store of all turns, a context window, and a memory. */
export function defineSupportAgent(
  ai: AgentsGenkit,
  { book, model, reporter, store, memory, background }: SupportAgentOptions,
) {
  // Facts from earlier conversations with the signed-in customer.
  const attached = memory.attach({
    scope: 'user',
    preload: { k: 5, maxTokens: 500 },
    tools: ['load_memory', 'create_memory', 'forget_memory'],
  });
  return defineAgent(ai, {
    name: 'support',
    description: `Answers questions about orders of ${book.shop} and makes refunds.`,
    model: model.name,
    system: async (_input, { state, context }) =>
      instructions(book, state as PromptState | undefined, signedInEmail(context)),
    tools: [
      defineFindOrder(ai, book),
      defineListOrders(ai, book),
      defineRequestRefund(ai, book),
      defineSetStyle(ai),
      defineStartReport(ai, reporter),
      defineShowMemories(ai, memory),
      defineForgetCustomer(ai, memory),
    ],
    use: [countTurns(ai), ...model.use],
    stateSchema: SupportStateSchema,
    scopes: { user: PreferencesSchema },
    store,
    memory: attached,
    context: contextWindow({
      maxTokens: 8_000,
      history: [
        clearToolOutputs({ keepTurns: 3 }),
        summarize({ everyTurns: 5, model: model.name, ...model.summaries }),
        lastTurns(10),
        tokenBudget(4_000),
      ],
    }),
    // A stopped turn keeps the question and the reply so far, and can be run again.
    onAbort: 'keep',
    background,
  });
}

/** The state that the prompt reads: keys of the conversation and of the user. */
type PromptState = SupportState & { 'user:style'?: Preferences['style'] };

/** The prompt contains the state, so the model has the knowledge of the current branch. */
function instructions(book: OrderBook, state: PromptState | undefined, email: string | undefined): string {
  const customer = email ? `The customer who is signed in: ${email}.` : 'No customer is signed in.';
  const known = state?.customer
    ? `The orders in question are those of ${state.customer.name} <${state.customer.email}>.`
    : '';
  const order = state?.orderId ? `The order in question is ${state.orderId}.` : '';
  return [
    `You are the support agent of ${book.shop}. Be brief and friendly. Use the tools; never guess about an order.`,
    `Refund policy: ${book.refundPolicy}`,
    customer,
    'Ask for an order number when you need one. Refund only when the customer asked for it. The tools know the orders of the signed-in customer only.',
    `Reply style: ${state?.['user:style'] ?? 'full'}.`,
    `${known} ${order}`.trim(),
  ].join('\n');
}

/** Counts the customer's messages. Like a tool, a middleware may change the state. A turn that is run again counts once. */
function countTurns(ai: AgentsGenkit): MiddlewareRef {
  const middleware = generateMiddleware({ name: 'countTurns' }, () => ({
    generate: (call, options, next) => {
      // A turn calls the model again after each round of tools; its first call is number 0.
      if (call.currentTurn === 0) {
        const messages = ai.currentSession().getMessages();
        remember(ai, () => ({ turns: messages.filter(({ role }) => role === 'user').length }));
      }
      return next(call, options);
    },
  }));
  return middleware();
}
