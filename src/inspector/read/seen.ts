import type { MessageData } from 'genkit';
import { readSummary } from '../../context/compaction/read-summary.ts';
import { logOf } from '../../session/log/session-log.ts';
import { sessionOf } from '../../snapshot/snapshot.ts';
import { keepsRecords } from '../../store/contract.ts';
import type { ContextReport, SeenRange, SeenSummary, SeenView } from '../api.ts';
import type { Params } from '../http/params.ts';
import type { ReadSnapshot, Source } from '../source.ts';
import { reportOf } from './node.ts';
import { lookupOf } from './snapshot-view.ts';

/** The model's input in the turn of a snapshot, from its report, the conversation and the stored summary. At most two requests. */
export async function readSeen(source: Source, params: Params): Promise<SeenView> {
  const snapshot = await source.mustRead(lookupOf(params));
  const report = reportOf(snapshot);
  const summary = report && (await summaryOf(source, snapshot, report));
  return { report, summary, ranges: rangesOf(snapshot, report) };
}

async function summaryOf(
  { store, caller }: Source,
  snapshot: ReadSnapshot,
  { summary }: ContextReport,
): Promise<SeenSummary | undefined> {
  const sessionId = sessionOf(snapshot);
  if (!summary || sessionId === undefined || !keepsRecords(store)) return undefined;
  const found = await readSummary(store, { sessionId, sha256: summary.sha256, ...caller });
  if (!found) return undefined;
  const { text, to, model, tokens, createdAt } = found;
  return { text, to, model, tokens, createdAt };
}

/** Ranges for all messages of the session, without a gap. */
export function rangesOf(snapshot: ReadSnapshot, report: ContextReport | undefined): SeenRange[] {
  const messages = snapshot.state?.messages ?? [];
  const ranges = report && [...report.sent, ...report.dropped];
  const reportEnd = Math.max(0, report?.summary?.to ?? 0, ...(ranges ?? []).map(([, to]) => to));
  // The report covers all earlier messages, unless its lists were shortened.
  const isKnown = report && !report.isShortened;
  const begin = Math.min(messages.length, isKnown ? reportEnd : beginOfTurn(snapshot, messages));
  const uses: SeenRange['as'][] = Array.from({ length: begin }, () =>
    !report ? 'sent' : isKnown ? 'dropped' : 'unknown',
  );
  const mark = (as: SeenRange['as'], from: number, to: number) => uses.fill(as, from, Math.min(to, begin));
  if (report?.summary) mark('covered', 0, report.summary.to);
  for (const [from, to] of report?.dropped ?? []) mark('dropped', from, to);
  for (const [from, to] of report?.sent ?? []) mark('sent', from, to);
  for (const [from, to] of report?.changed ?? []) mark('changed', from, to);
  return [
    ...toRanges(uses),
    ...(messages.length > begin ? [{ from: begin, to: messages.length, as: 'turn' as const }] : []),
  ];
}

/** The position of the turn's first message; if the snapshot does not have it, that of the user's last message. */
function beginOfTurn(snapshot: ReadSnapshot, messages: readonly MessageData[]): number {
  return (
    logOf(snapshot).messages?.kept ??
    Math.max(
      0,
      messages.findLastIndex(({ role }) => role === 'user'),
    )
  );
}

function toRanges(uses: readonly SeenRange['as'][]): SeenRange[] {
  const ranges: SeenRange[] = [];
  for (const [i, as] of uses.entries()) {
    const last = ranges.at(-1);
    if (last?.as === as) last.to = i + 1;
    else ranges.push({ from: i, to: i + 1, as });
  }
  return ranges;
}
