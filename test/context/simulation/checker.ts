import { createHash } from 'node:crypto';
import type { GenerateRequest, MessageData } from 'genkit';
import type { ContextReport } from '../../../src/context/types.ts';

/**
 * Decides whether a window is right, by the request that the model got and the session's messages alone; it shares no code with the window.
 *
 * Each message of a test session carries marks such as `[id:u7]`, and the summarizer of the tests answers the marks of all that it read: so
 * the marks in a summary are what it covers.
 */
export interface WindowCase {
  /** The messages of the snapshot that the turn continues. */
  readonly earlier: readonly MessageData[];
  readonly request: GenerateRequest;
  readonly report: ContextReport;
  /** Messages before this position must not be dropped: a summary of them is ready. */
  readonly readyTo: number;
}

const MARK = /\[id:([\w-]+)\]/g;

/** The marks in a value, in their order. */
export function marksOf(value: unknown): string[] {
  return [...JSON.stringify(value).matchAll(MARK)].map((match) => match[1]!);
}

/** What is wrong with the window; empty when nothing is. */
export function violations({ earlier, request, report, readyTo }: WindowCase): string[] {
  const wrong: string[] = [];
  const isData = ({ text }: { text?: string }) => text?.startsWith('[Summary of') ?? false;
  const parts = request.messages.flatMap(({ content }) => content);
  const summaries = parts.filter(isData);
  if (summaries.length > 1) wrong.push(`${summaries.length} summaries in one request`);
  const summary = marksOf(summaries);
  const covered = new Set(summary);
  const raw = marksOf(parts.filter((part) => !isData(part)));
  const places = new Map(raw.map((mark, i) => [mark, i]));
  if (places.size !== raw.length) wrong.push('a message was sent twice');

  const own = new Set(marksOf(earlier));
  for (const mark of summary)
    if (!own.has(mark)) wrong.push(`the summary covers ${mark}, which is in no message of this branch`);

  let last = -1;
  let hasOlder = false;
  earlier.forEach((message, position) => {
    const marks = marksOf(message);
    if (marks.length === 0) return;
    const isIn = (ranges: readonly (readonly [number, number])[] = []) =>
      ranges.some(([from, to]) => position >= from && position < to);
    const isChanged = isIn(report.changed);
    const isRaw = isChanged || marks.some((mark) => places.has(mark));
    const isCovered = marks.some((mark) => covered.has(mark));
    const isDropped = isIn(report.dropped);
    const states = [isRaw, isCovered, isDropped].filter(Boolean).length;
    const name = `message ${position} (${marks.join(', ')})`;
    if (states !== 1) wrong.push(`${name} is raw: ${isRaw}, covered: ${isCovered}, dropped: ${isDropped}`);
    if (isRaw && !isChanged && !marks.every((mark) => places.has(mark))) wrong.push(`${name} was sent in part`);
    if (isCovered && !marks.every((mark) => covered.has(mark))) wrong.push(`${name} is covered in part`);
    if (isDropped && position < readyTo) wrong.push(`${name} was dropped although a summary of it is ready`);
    if (isDropped && hasOlder) wrong.push(`${name} was dropped although an older one is sent`);
    hasOlder ||= isRaw;
    if (!isRaw || isChanged) return;
    const place = places.get(marks[0]!)!;
    if (place < last) wrong.push(`${name} was sent before an older one`);
    last = place;
  });

  if ((report.summary === undefined) !== (summary.length === 0))
    wrong.push('the report and the request disagree about a summary');
  if (report.summary) {
    const { to, sha256 } = report.summary;
    if (hashOf(earlier.slice(0, to)) !== sha256) wrong.push(`the hash of the messages before ${to} is another`);
    if (earlier.slice(to).some((message) => marksOf(message).some((mark) => covered.has(mark)))) {
      wrong.push(`the summary covers a message after ${to}`);
    }
  }
  return wrong;
}

/** Written from the description of the hash, not from its code. */
export function hashOf(messages: readonly MessageData[]): string {
  const sha256 = (...texts: string[]) => createHash('sha256').update(texts.join('')).digest('hex');
  return messages.reduce((hash, { role, content }) => sha256(hash, sorted({ content, role })), sha256(''));
}

function sorted(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sorted(member)}`).join(',')}}`;
}
