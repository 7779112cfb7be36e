import { isUnreadable } from '../../errors.ts';
import { stringifyJson } from '../../json/value.ts';
import {
  keepsRecords,
  type ScopeId,
  type ScopeRecord,
  type SessionRecord,
  type SessionSnapshot,
  type SessionStoreOptions,
  type SessionSummary,
  type SnapshotStore,
  type Unreadable,
} from '../contract.ts';
import { snapshotsOf } from '../list/items-of.ts';

/**
 * One line of an export or an archive, distinguished by `kind`. A session's line comes before those of its records and of its snapshots, which are
 * in the order of their first saves.
 */
export type ExportedLine = SessionLine | RecordLine | SnapshotLine | ScopeLine | MemoryLine | UnreadableLine | EndLine;

/** A session. */
export interface SessionLine {
  /** The kind of the line. */
  readonly kind: 'session';
  /** Its entry in the session list. */
  readonly session: SessionSummary;
}

/** A session record. */
export interface RecordLine {
  /** The kind of the line. */
  readonly kind: 'record';
  /** Its session. */
  readonly sessionId: string;
  /** The record. */
  readonly record: Omit<SessionRecord, 'revision'>;
}

/** A snapshot of a session. */
export interface SnapshotLine {
  /** The kind of the line. */
  readonly kind: 'snapshot';
  /** The snapshot with its whole state. */
  readonly snapshot: SessionSnapshot;
}

/** The user's record of an app. */
export interface ScopeLine {
  /** The kind of the line. */
  readonly kind: 'scope';
  /** Names the record. */
  readonly scope: ScopeId;
  /** Its keys and values. */
  readonly values: ScopeRecord;
}

/** A memory of the user. */
export interface MemoryLine {
  /** The kind of the line. */
  readonly kind: 'memory';
  /** A line of the memory manager's own export. */
  readonly line: object;
}

/** Data that can't be read; in an export of a user, the user's or that of an unknown owner. */
export interface UnreadableLine extends Unreadable {
  /** The kind of the line. */
  readonly kind: 'unreadable';
  /** The unreadable snapshot of the session. Missing: its records or its whole data can't be read. */
  readonly snapshotId?: string;
  /** The reason, if it is known. */
  readonly problem?: string;
}

/** @throws The error, unless it says that data can't be read. */
export function unreadableLine(error: unknown, found: Omit<UnreadableLine, 'kind' | 'problem'> = {}): UnreadableLine {
  if (!isUnreadable(error)) throw error;
  return { kind: 'unreadable', ...found, problem: error.originalMessage };
}

/** The last line: a file without it was cut off. */
export interface EndLine extends ExportCounts {
  /** The kind of the line. */
  readonly kind: 'end';
}

/** How many lines there were of each kind. */
export interface ExportCounts {
  /** Sessions. */
  sessions: number;
  /** Snapshots of the sessions. */
  snapshots: number;
  /** Session records. */
  records: number;
  /** Records of users. */
  scopes: number;
  /** Lines with memories. Missing when there are none. */
  memories?: number;
  /** Lines about unreadable data. Missing when there are none. */
  unreadable?: number;
}

/**
 * A session with its records and its snapshots.
 *
 * @param options.skipsUnreadable Whether unreadable data gets a line that reports it. Default: it throws.
 */
export async function* linesOfSession(
  store: SnapshotStore,
  session: SessionSummary,
  { context, skipsUnreadable = false }: SessionStoreOptions & { readonly skipsUnreadable?: boolean },
): AsyncGenerator<ExportedLine> {
  const { sessionId } = session;
  const lineFor = (error: unknown, snapshotId?: string): UnreadableLine => {
    if (!skipsUnreadable) throw error;
    return unreadableLine(error, { sessionId, ...(snapshotId !== undefined && { snapshotId }) });
  };
  yield { kind: 'session', session };
  const read = keepsRecords(store) ? store.readRecords({ sessionId, context }) : Promise.resolve([]);
  const toLine = (all: SessionRecord): RecordLine => {
    const { revision: _, ...record } = all;
    return { kind: 'record', sessionId, record };
  };
  yield* await read.then((records) => records.map(toLine)).catch((error: unknown) => [lineFor(error)]);
  for await (const { snapshotId } of snapshotsOf(store, { sessionId, context })) {
    const reading = store.getSnapshot({ snapshotId, context, frozen: true });
    const line = await reading
      .then((snapshot) => snapshot && { kind: 'snapshot' as const, snapshot })
      .catch((error: unknown) => lineFor(error, snapshotId));
    if (line) yield line;
  }
}

/** The lines as text, with a last one that counts them. */
export async function* jsonLines(lines: AsyncIterable<ExportedLine>): AsyncGenerator<string> {
  const counts: ExportCounts = { sessions: 0, snapshots: 0, records: 0, scopes: 0 };
  for await (const line of lines) {
    if (line.kind === 'memory') counts.memories = (counts.memories ?? 0) + 1;
    else if (line.kind === 'unreadable') counts.unreadable = (counts.unreadable ?? 0) + 1;
    else if (line.kind !== 'end') counts[`${line.kind}s`]++;
    yield `${stringifyJson(line)}
`;
  }
  yield `${JSON.stringify({ kind: 'end', ...counts } satisfies ExportedLine)}\n`;
}
