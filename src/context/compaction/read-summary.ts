import type { ActionContext } from 'genkit';
import type { RecordStore } from '../../store/contract.ts';
import { COMPACTION_KIND, parseRecords, type CompactionRecord } from './record.ts';

/** Options of {@link readSummary}. */
export interface ReadSummaryOptions {
  /** The session of the report. */
  sessionId: string;
  /** Names the summary, as the `summary` of a context report does. */
  sha256: string;
  /** The caller's context; it names the tenant. Optional. */
  context?: ActionContext;
}

/**
 * Reads a summary that a window sent, to show what the model saw. The store checks the tenant but not the owner of the session: first
 * read the snapshot whose report names the summary by `agent.getSnapshot`, which refuses other users.
 *
 * @param records The store of the agent, or the window's `records`.
 * @returns `undefined` when there is no such summary.
 * @example
 * const snapshot = await support.getSnapshot({ sessionId: 's-1' }, { context });
 * const sent = snapshot?.contextReport?.summary;
 * const summary = sent && (await readSummary(records, { sessionId: 's-1', sha256: sent.sha256, context }));
 */
export async function readSummary(
  records: RecordStore,
  { sessionId, sha256, context }: ReadSummaryOptions,
): Promise<CompactionRecord | undefined> {
  const found = await records.readRecords({ sessionId, kind: COMPACTION_KIND, ...(context && { context }) });
  return found.flatMap(({ value }) => parseRecords(value)).find((summary) => summary.sha256 === sha256);
}
