import type { ActionContext } from 'genkit';
import type { RecordStore } from '../../store/contract.ts';
import { parseChain, type CompactionRecord } from './record.ts';
import { readChainRecord } from './session-compactions.ts';

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
 * @returns `undefined` if the session has no such summary, or none any more: it keeps its newest 16.
 * @example
 * const snapshot = await support.getSnapshot({ sessionId: 's-1' }, { context });
 * const sent = snapshot?.contextReport?.summary;
 * const summary = sent && (await readSummary(records, { sessionId: 's-1', sha256: sent.sha256, context }));
 */
export async function readSummary(
  records: RecordStore,
  { sessionId, sha256, context }: ReadSummaryOptions,
): Promise<CompactionRecord | undefined> {
  const [record] = await readChainRecord({ records, sessionId, context });
  return parseChain(record?.value).records.find((summary) => summary.sha256 === sha256);
}
