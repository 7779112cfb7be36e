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

/** What windows say about the running turns, by session. */
const unsavedContexts = new WeakMap<object, Omit<UsageField, 'usage'>>();

/** Keeps what a window says after the last model call for the snapshot of the running turn. */
export function noteContext(session: object, context: Omit<UsageField, 'usage'>): void {
  unsavedContexts.set(session, context);
}

/** The fields of a snapshot about its model calls. */
export interface UsageField {
  /** Missing when no model call reported any. */
  readonly usage?: GenerationUsage;
  /** Missing when the agent has no context window. */
  readonly contextReport?: ContextReport;
  /** What the summaries of the session took, all that the turn knew of. Missing when none took any. */
  readonly summaryUsage?: GenerationUsage;
}

/** What is noted of the session's model calls, for the snapshot that is written now. Resets it. */
export function takeUsage(session: object): UsageField {
  const usage = unsaved.get(session);
  const context = unsavedContexts.get(session);
  unsaved.delete(session);
  unsavedContexts.delete(session);
  return { ...(usage && { usage }), ...context };
}
