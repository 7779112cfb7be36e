import type { AgentConfig, AgentsGenkit, SnapshotStore } from 'genkitx-agents';
import type { MemoryManager } from 'genkitx-agents/memory';
import type { SupportModel } from '../models/choose-model.ts';
import { withoutToken } from './customer.ts';
import type { OrderBook } from './orders.ts';
import { defineReportAgent, type ReportState } from './report-agent.ts';
import type { SupportState } from './state.ts';
import { defineSupportAgent } from './support-agent.ts';

export interface AgentsOptions {
  book: OrderBook;
  model: SupportModel;
  /** The store of conversations. */
  store: SnapshotStore<SupportState>;
  /** The store of reports. */
  reports: SnapshotStore<ReportState>;
  /** The memory of customers. */
  memory: MemoryManager;
  /** How long one step of a report takes, in ms. */
  stepMs: number;
  background?: AgentConfig['background'];
}

/** The two agents: the support agent, and the report agent that it runs in the background. */
export function defineAgents(
  ai: AgentsGenkit,
  { book, model, store, reports, stepMs, memory, ...options }: AgentsOptions,
) {
  const background = { ...options.background, keepContext: withoutToken };
  const reporter = defineReportAgent(ai, { book, store: reports, stepMs, background });
  return {
    reporter,
    support: defineSupportAgent(ai, { book, model, reporter, store, memory, background }),
  };
}
