import type { ContextReport } from '../types.ts';

/** The most bytes of a report as JSON. */
const MOST_BYTES = 1_024;

const LISTS = ['changed', 'sent', 'dropped', 'memories'] as const;

/** The report, with shorter lists if it would be too large. */
export function bounded(report: ContextReport): ContextReport {
  if (Buffer.byteLength(JSON.stringify(report)) <= MOST_BYTES) return report;
  const longest = LISTS.toSorted((a, b) => lengthOf(report[b]) - lengthOf(report[a]))[0]!;
  const shorter = report[longest]?.slice(0, Math.floor(lengthOf(report[longest]) / 2)) ?? [];
  if (lengthOf(report[longest]) > 0) return bounded({ ...report, [longest]: shorter, isShortened: true });
  const { model: _tooLong, ...rest } = report;
  return rest;
}

function lengthOf(list: readonly unknown[] | undefined): number {
  return list?.length ?? 0;
}
