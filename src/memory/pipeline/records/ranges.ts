/**
 * Records which messages of a source were read. A source may have branches, so a range contains for each position the hash of all messages
 * before it. In another branch, the range is valid up to the last equal hash.
 *
 * A note has at most {@link MOST_HASHES}. Beyond that, the oldest ranges keep only their last hash, and are joined if no other branch
 * begins between them. A branch that begins inside such a range is read again from the start of the range.
 */
/** The number of hex digits that are stored of a hash. */
const HASH_LENGTH = 16;
/** The most hashes in the ranges of a note. The ranges then take 40 to 180 KB as JSON: a store takes 512 KiB. */
const MOST_HASHES = 2_000;
/** The most ranges of a note. If they can't be joined, because the first messages are removed repeatedly, the oldest are dropped. */
const MOST_RANGES = 1_000;
/** The most hashes in `SourceNote.seen`. */
const MOST_SEEN = 100;
/** The most dead jobs in a note. With the hashes of 80 messages each they take 70 KB. */
const MOST_DEAD = 50;
const PROCEDURE_MARK = 'procedure:';

/** Positions of messages: `from` inclusive, `to` exclusive. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A range of messages that count as read. */
export interface ReadRange extends Range {
  /** The hash of the messages before `from`. */
  readonly base: string;
  /** The hashes at the positions after `from`, joined; an old range has only the one at `to`. */
  readonly hashes: string;
  /** Whether a job has learned from the messages. Otherwise they were skipped. */
  readonly isLearned?: boolean;
}

/** The messages that belong to a dead job. */
export interface DeadJob extends ReadRange {
  readonly jobId: string;
  readonly task: string;
}

/** The note about a source. */
export interface SourceNote {
  readonly version: 1;
  readonly ranges: readonly ReadRange[];
  /** Hashes of facts that were given instead of messages, until the source states something else; and {@link procedureMark}s. */
  readonly seen: readonly string[];
  /**
   * Messages that belong to dead jobs, so that no other job learns from them. Each message belongs to one job. At most {@link MOST_DEAD};
   * the oldest are dropped first.
   */
  readonly deadJobs?: readonly DeadJob[];
}

/** The note of a source of which nothing was read. */
export const UNREAD: SourceNote = { version: 1, ranges: [], seen: [] };

/** Parses a stored note. Without a valid note the source counts as unread. */
export function parseSourceNote(value: unknown): SourceNote {
  const note = value as SourceNote | undefined;
  return note?.version === 1 && Array.isArray(note.ranges) ? note : UNREAD;
}

/** Shortens a hash for a range. */
export function shortHash(sha256: string): string {
  return sha256.slice(0, HASH_LENGTH);
}

/** Returns the hash of a range at a position, if the range contains it. */
export function hashInRange({ from, to, base, hashes }: ReadRange, position: number): string | undefined {
  if (position === from) return base;
  if (hashes.length === HASH_LENGTH) return position === to ? hashes : undefined;
  const start = (position - from - 1) * HASH_LENGTH;
  return hashes.slice(start, start + HASH_LENGTH);
}

/** Returns the hashes of a range, without `base`. */
export function hashesOf({ hashes }: ReadRange): string[] {
  return hashes.match(new RegExp(`.{${HASH_LENGTH}}`, 'g')) ?? [];
}

/** Returns a part of a range that has all its hashes. */
export function rangePart(range: ReadRange, { from, to }: Range): ReadRange {
  const at = (position: number) => (position - range.from) * HASH_LENGTH;
  return { from, to, base: hashInRange(range, from)!, hashes: range.hashes.slice(at(from), at(to)) };
}

/** Returns the parts of a range that were not read yet. `hashAt` returns the hashes of the range's branch. */
export function unreadRanges(
  range: Range,
  hashAt: (position: number) => string | undefined,
  read: readonly ReadRange[],
): Range[] {
  let unread: Range[] = [{ from: range.from, to: range.to }];
  for (const known of read) {
    const from = Math.max(range.from, known.from);
    let to = Math.min(range.to, known.to);
    while (to > from && !(hashAt(to) !== undefined && hashAt(to) === hashInRange(known, to))) to--;
    if (to > from) unread = unread.flatMap((part) => without(part, { from, to }));
  }
  return unread;
}

/** Returns the parts of a range that were not read yet, with their hashes. The range must have all its hashes. */
export function unreadParts(range: ReadRange, read: readonly ReadRange[]): ReadRange[] {
  return unreadRanges(range, (position) => hashInRange(range, position), read).map((part) => rangePart(range, part));
}

/** Whether none of the messages of a range were read. The range must have all its hashes. */
export function isUnread(range: ReadRange, read: readonly ReadRange[]): boolean {
  const [part] = unreadParts(range, read);
  return part?.from === range.from && part.to === range.to;
}

function without(part: Range, taken: Range): Range[] {
  if (taken.to <= part.from || taken.from >= part.to) return [part];
  const before = { from: part.from, to: taken.from };
  const after = { from: taken.to, to: part.to };
  return [before, after].filter(({ from, to }) => to > from);
}

/** Adds a range to a note. */
export function withRange(note: SourceNote, range: ReadRange): SourceNote {
  let ranges: readonly ReadRange[] = [...note.ranges, range];
  const isTooLong = () =>
    ranges.length > MOST_RANGES ||
    ranges.reduce((sum, { hashes }) => sum + hashes.length, 0) > MOST_HASHES * HASH_LENGTH;
  while (isTooLong()) {
    const shorter = shortened(ranges);
    if (!shorter) break;
    ranges = shorter;
  }
  return { ...note, ranges: ranges.slice(-MOST_RANGES) };
}

/**
 * Reduces the oldest range to its last hash, and joins it with the range that it continues, unless another branch also continues that
 * range, or only one of the two is learned. `undefined` if no range can be reduced.
 */
function shortened(ranges: readonly ReadRange[]): ReadRange[] | undefined {
  for (const old of ranges) {
    const hashes = old.hashes.slice(-HASH_LENGTH);
    const isBranch = ranges.some((one) => one !== old && one.from === old.from && one.base === old.base);
    const continued = isBranch
      ? undefined
      : ranges.find(
          ({ to, hashes: before, isLearned }) =>
            to === old.from && before.slice(-HASH_LENGTH) === old.base && !isLearned === !old.isLearned,
        );
    if (!continued && hashes === old.hashes) continue;
    const { from, base } = continued ?? old;
    return [{ ...old, from, base, hashes }, ...ranges.filter((one) => one !== old && one !== continued)];
  }
  return undefined;
}

/** Notes that a job is dead. The messages that were not read, and that belong to no other dead job of its task, then belong to this job. */
export function withDeadJob(note: SourceNote, { jobId, task, ...range }: DeadJob): SourceNote {
  const others = withoutDeadJob(note, jobId).deadJobs ?? [];
  const taken = [...note.ranges, ...others.filter((one) => one.task === task)];
  const kept = unreadParts(range, taken).map((part): DeadJob => ({ ...part, jobId, task }));
  return { ...note, deadJobs: [...others, ...kept].slice(-MOST_DEAD) };
}

/** Removes a job from the note, because it was removed or is no longer dead. */
export function withoutDeadJob(note: SourceNote, jobId: string): SourceNote {
  const deadJobs = note.deadJobs?.filter((job) => job.jobId !== jobId);
  return { ...note, ...(deadJobs && { deadJobs }) };
}

/** Adds a hash to `seen`. */
export function withSeen(note: SourceNote, sha256: string): SourceNote {
  return { ...note, seen: [...note.seen.filter((one) => one !== sha256), sha256].slice(-MOST_SEEN) };
}

/** Returns the note of a source whose facts can be given again. */
export function withoutFacts(note: SourceNote): SourceNote {
  const seen = note.seen.filter((one) => one.startsWith(PROCEDURE_MARK));
  return seen.length === note.seen.length ? note : { ...note, seen };
}

/** Returns the entry of `SourceNote.seen` for the procedure of a range. */
export function procedureMark({ hashes }: ReadRange): string {
  return PROCEDURE_MARK + hashes.slice(-HASH_LENGTH);
}
