import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'genkit';
import {
  defineCustomAgent,
  type AgentConfig,
  type AgentsGenkit,
  type SaveSnapshotOptions,
  type SnapshotStore,
} from 'genkitx-agents';
import { signedInEmail } from './customer.ts';
import type { Order, OrderBook } from './orders.ts';
import { writeReport } from './report.ts';

/** The progress of the report. */
export const ReportStateSchema = z.object({ done: z.number().int(), total: z.number().int(), step: z.string() });

export type ReportState = z.infer<typeof ReportStateSchema>;

export interface ReportAgentOptions {
  book: OrderBook;
  store: SnapshotStore<ReportState>;
  /** The duration of one step, in ms. */
  stepMs: number;
  background?: AgentConfig['background'];
}

export type ReportAgent = ReturnType<typeof defineReportAgent>;

/** Writes the monthly report of the signed-in customer's orders, step by step. Run it with `detach`. */
export function defineReportAgent(ai: AgentsGenkit, { book, store, stepMs, background }: ReportAgentOptions) {
  return defineCustomAgent(
    ai,
    {
      name: 'reporter',
      description: `Writes the monthly report of a customer of ${book.shop}.`,
      stateSchema: ReportStateSchema,
      store,
      onAbort: 'keep',
      background,
    },
    async (sess, { abortSignal, context }) => {
      await sess.run(async (_input, { snapshotId }) => {
        const orders = await book.ofCustomer(signedInEmail(context));
        const steps = stepsFor(orders);
        // A run that was taken over from a dead process continues from the progress of that process.
        const before = await store.getSnapshot({ snapshotId, context });
        for (let done = before?.state?.custom?.done ?? 0; done < steps.length; done++) {
          const progress = { done, total: steps.length, step: steps[done]! };
          sess.updateCustom(() => progress);
          await saveProgress(store, snapshotId, progress, { context });
          await pause(stepMs, undefined, { signal: abortSignal });
        }
        sess.updateCustom(() => ({ done: steps.length, total: steps.length, step: 'Done' }));
        sess.addArtifacts([{ name: 'monthly-report.md', parts: [{ text: writeReport(orders, book) }] }]);
        sess.addMessages([{ role: 'model', content: [{ text: 'The monthly report is ready.' }] }]);
      });
      return {};
    },
  );
}

function stepsFor(orders: readonly Order[]): string[] {
  return [...orders.flatMap(({ id }) => [`Order ${id}: delivery`, `Order ${id}: payment`]), 'Writing it up'];
}

/**
 * Writes the progress into the run's own snapshot, which is pending until the run ends, so that a reader of the snapshot in any process gets
 * the progress.
 */
async function saveProgress(
  store: SnapshotStore<ReportState>,
  snapshotId: string,
  custom: ReportState,
  options: SaveSnapshotOptions,
): Promise<void> {
  await store.saveSnapshot(
    snapshotId,
    (run) => (run?.status === 'pending' ? { ...run, state: { ...run.state, custom } } : null),
    options,
  );
}
