/**
 * How far each source was read. The messages of a source are a history that may branch, so a range counts for every history that has the same
 * messages up to its end: each position has the hash of all messages before it.
 */
import type { Json } from '../../../json/value.ts';

/** Hex digits of a hash that are kept. */
const HASH_LENGTH = 16;
/** Ranges whose hashes are kept for each position; older ones keep the last, and join what they continue. */
const MOST_DETAILED = 20;
/** Directly given facts of a source that are recognized when they come again. */
const MOST_SEEN = 100;

/** Positions of messages: `from` inclusive, `to` exclusive. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Messages that were read. */
export interface ReadRange extends Range {
  /** The hash of the messages before `from`. */
  readonly base: string;
  /** The hashes at the positions after `from`, one after the other; of an old range the one at `to` alone. */
  readonly hashes: string;
}

/** The note about a source. */
export interface SourceNote {
  readonly version: 1;
  readonly ranges: readonly ReadRange[];
  /** Hashes of facts that were given directly. */
  readonly seen: readonly string[];
  /** Jobs that bring nothing back, while the source is being forgotten. */
  readonly forgottenJobs?: readonly string[];
}

const UNREAD: SourceNote = { version: 1, ranges: [], seen: [] };

/** The note in a store's value; what can't be read counts as unread. */
export function parseSourceNote(value: unknown): SourceNote {
  const note = value as SourceNote | undefined;
  return note?.version === 1 && Array.isArray(note.ranges) ? note : UNREAD;
}

/** A note as a store takes it. */
export function sourceNoteValue(note: SourceNote): Json {
  return structuredClone(note) as unknown as Json;
}

/** A hash as ranges keep it. */
export function shortHash(sha256: string): string {
  return sha256.slice(0, HASH_LENGTH);
}

/** The hash that a range has at a position, if it keeps it. */
export function hashInRange({ from, to, base, hashes }: ReadRange, position: number): string | undefined {
  if (position === from) return base;
  if (hashes.length === HASH_LENGTH) return position === to ? hashes : undefined;
  const start = (position - from - 1) * HASH_LENGTH;
  return hashes.slice(start, start + HASH_LENGTH);
}

/** What of a range was not read yet. `hashAt` has the hashes of the history that the range is of. */
export function unreadRanges(
  range: Range,
  hashAt: (position: number) => string | undefined,
  read: readonly ReadRange[],
): Range[] {
  let unread: Range[] = [{ from: range.from, to: range.to }];
  for (const known of read) {
    const from = Math.max(range.from, known.from);
    let to = Math.min(range.to, known.to);
    while (to > from && !isSame(hashInRange(known, to), hashAt(to))) to--;
    if (to > from) unread = unread.flatMap((part) => without(part, { from, to }));
  }
  return unread;
}

function isSame(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && a === b;
}

function without(part: Range, taken: Range): Range[] {
  if (taken.to <= part.from || taken.from >= part.to) return [part];
  const before = { from: part.from, to: taken.from };
  const after = { from: taken.to, to: part.to };
  return [before, after].filter(({ from, to }) => to > from);
}

/** The note with one more range. */
export function withRange(note: SourceNote, range: ReadRange): SourceNote {
  const ranges = [...note.ranges, range];
  const detailed = ranges.filter(({ from, to, hashes }) => hashes.length > HASH_LENGTH || to - from === 1);
  if (detailed.length <= MOST_DETAILED) return { ...note, ranges };
  return { ...note, ranges: shorten(ranges, detailed[0]!) };
}

/** The ranges with `old` reduced to its end, as part of the range that it continues if there is one. */
function shorten(ranges: readonly ReadRange[], old: ReadRange): ReadRange[] {
  const hashes = old.hashes.slice(-HASH_LENGTH);
  const isContinued = (one: ReadRange) =>
    one !== old && one.to === old.from && one.hashes.slice(-HASH_LENGTH) === old.base;
  const continued = ranges.find(isContinued);
  const joined = { from: continued?.from ?? old.from, to: old.to, base: continued?.base ?? old.base, hashes };
  return [joined, ...ranges.filter((one) => one !== old && one !== continued)];
}

/** The note with the hash of facts that were given directly. */
export function withSeen(note: SourceNote, sha256: string): SourceNote {
  return { ...note, seen: [...note.seen.filter((one) => one !== sha256), sha256].slice(-MOST_SEEN) };
}

/** Names the procedure of a history, among what was seen of a source. */
export function procedureMark({ hashes }: ReadRange): string {
  return `procedure:${hashes.slice(-HASH_LENGTH)}`;
}
