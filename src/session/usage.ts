import type { GenerationUsage } from 'genkit';
import type { ContextReport } from '../snapshot/context-report.ts';
import { sumUsage } from '../store/list/session-summary.ts';

/** Usage of model calls that is in no snapshot yet, by session. */
const unsaved = new WeakMap<object, GenerationUsage>();

/** Adds the usage of a model call of the running turn. */
export function addUsage(session: object, usage: GenerationUsage | undefined): void {
  const sum = sumUsage([unsaved.get(session), usage]);
  if (sum) unsaved.set(session, sum);
}

/** The usage since the last snapshot. */
export function usageOf(session: object): GenerationUsage | undefined {
  return unsaved.get(session);
}

/** The reports of context windows on the running turns, by session. */
const unsavedContexts = new WeakMap<object, Omit<UsageField, 'usage'>>();

/** Keeps the window's report for the snapshot of the running turn. Called after each model call; the last report counts. */
export function noteContext(
  session: object,
  {
    report,
    summaryUsage,
  }: { readonly report: ContextReport | undefined; readonly summaryUsage: GenerationUsage | undefined },
): void {
  unsavedContexts.set(session, {
    ...unsavedContexts.get(session),
    ...(report && { contextReport: report }),
    ...(summaryUsage && { summaryUsage }),
  });
}

/** The fields of a snapshot about its model calls. */
export interface UsageField {
  /** Missing when no model call reported any. */
  readonly usage?: GenerationUsage;
  /** Missing when the agent has no context window. */
  readonly contextReport?: ContextReport;
  /** The usage of all summaries of the session that the turn knows of. Missing when there is none. */
  readonly summaryUsage?: GenerationUsage;
}

/** Takes the usage and the report, for the snapshot that is written now; the session then has none. */
export function takeUsage(session: object): UsageField {
  const usage = unsaved.get(session);
  const context = unsavedContexts.get(session);
  unsaved.delete(session);
  unsavedContexts.delete(session);
  return { ...(usage && { usage }), ...context };
}
