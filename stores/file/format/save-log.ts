import { quote } from '../../../src/errors.ts';
import { parseJson, type Json } from '../../../src/json/value.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';
import { FORMAT } from './sealable.ts';
import { isObject, textOf } from './text.ts';

/** The first line of a session's log. */
export interface LogHeader {
  readonly session: string;
  readonly incarnation: string;
  /** Distinguishes the log from an earlier one in its place. */
  readonly log: string;
}

/** A first save. It is committed when the snapshot's file is in its place; only the last save of a log may lack its commit. */
export interface SaveLine {
  /** The snapshot's place in the order of first saves: one more than the save before, or that of a `next` line. So a lost line is noticed. */
  readonly save: number;
  readonly id: string;
  readonly parent?: string | undefined;
  readonly at: number;
  /** Places of the snapshots that this save removes. */
  readonly removes?: readonly number[];
}

/**
 * A line of a session's log. Times are in µs since 1970; they are used only to order sessions in lists.
 *
 * - `done`: all work of the line before is complete.
 * - `rewrite`: the snapshot of this place was written again.
 * - `remove`: these places were pruned. When the snapshot written last is among them, `at` and `updatedAt` say when that was.
 * - `delete`: the session is deleted.
 * - `next`: the place of the next save. The skipped places belong to snapshots that were removed before the log was compacted.
 */
export type LogLine =
  | SaveLine
  | { readonly done: true }
  | { readonly rewrite: number; readonly at: number }
  | { readonly remove: readonly number[]; readonly at?: number | undefined; readonly updatedAt?: string | undefined }
  | { readonly delete: true }
  | { readonly next: number };

export function formatHeader(header: LogHeader): string {
  return `${JSON.stringify({ format: FORMAT, ...header })}\n`;
}

export function formatLine(line: LogLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** The log can't be read. It is rebuilt from the snapshots' files. */
export class DamagedLog extends Error {}

/**
 * The lines of a log, or of a part of it, without its header.
 *
 * @param bytes Whole lines.
 * @throws DamagedLog when a line is invalid.
 */
export function parseLines(bytes: Buffer): LogLine[] {
  const lines = parseAll(bytes);
  if (!lines.every(isLogLine)) throw new DamagedLog();
  return lines;
}

/**
 * @param bytes The first line.
 * @throws DamagedLog when this is not a header, `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseHeader(bytes: Buffer): LogHeader {
  const { format, session, incarnation, log } = parseAll(bytes)[0] ?? {};
  if (typeof session !== 'string' || typeof incarnation !== 'string' || typeof log !== 'string') throw new DamagedLog();
  assertReadable(format, FORMAT, `The log of session ${quote(session)}`);
  if (format !== FORMAT) throw new DamagedLog();
  return { session, incarnation, log };
}

/** The session in a log's first line, in any format. */
export function sessionOfHeader(bytes: Buffer): string | undefined {
  const session = parseAll(bytes)[0]?.['session'];
  return typeof session === 'string' ? session : undefined;
}

const DONE = formatLine({ done: true });

/** All lines at once: no line has a line break inside. */
function parseAll(bytes: Buffer): Record<string, Json>[] {
  try {
    // A `done` before another line is skipped: the later line implies it.
    const text = (textOf(bytes) ?? 'none').trimEnd().replaceAll(`\n${DONE}`, '\n');
    const json = parseJson(`[${text.replaceAll('\n', ',')}]`) as Json[];
    if (json.every(isObject)) return json;
  } catch {
    // The error is thrown below.
  }
  throw new DamagedLog();
}

function isLogLine(line: Record<string, Json>): line is LogLine & Record<string, Json> {
  const { save, id, parent, at, removes, done, rewrite, remove, updatedAt, next } = line;
  if (save !== undefined) {
    const isNamed = typeof id === 'string' && (parent === undefined || typeof parent === 'string');
    return isPlace(save) && isNamed && isTime(at) && (removes === undefined || isPlaces(removes));
  }
  if (rewrite !== undefined) return isPlace(rewrite) && isTime(at);
  if (remove !== undefined) {
    return (
      isPlaces(remove) && (at === undefined || isTime(at)) && (updatedAt === undefined || typeof updatedAt === 'string')
    );
  }
  if (next !== undefined) return isPlace(next);
  return done === true || line['delete'] === true;
}

function isPlace(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isPlaces(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every(isPlace);
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** The latest time that is a safe integer in µs. It replaces a later time of a wrong clock. */
const LATEST_MS = 8e12;
let lastMs = 0;
let inSameMs = 0;

/** The time in µs. Up to 1,000 calls within a millisecond get ascending times. */
export function timeNow(): number {
  const now = Math.min(Date.now(), LATEST_MS);
  inSameMs = now === lastMs ? Math.min(inSameMs + 1, 999) : 0;
  lastMs = now;
  return now * 1000 + inSameMs;
}
