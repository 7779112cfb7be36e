import {
  keepsRecords,
  type ScopeId,
  type ScopeRecord,
  type SessionRecord,
  type SessionSnapshot,
  type SessionStoreOptions,
  type SessionSummary,
  type SnapshotStore,
} from '../store/contract.ts';
import { itemsOf } from './lists.ts';

/** One line of an export or an archive. A session's line comes before those of its records and snapshots, which are in the order of their saves. */
export type ExportedLine =
  | { readonly kind: 'session'; readonly session: SessionSummary }
  | { readonly kind: 'record'; readonly sessionId: string; readonly record: Omit<SessionRecord, 'revision'> }
  | { readonly kind: 'snapshot'; readonly snapshot: SessionSnapshot }
  | { readonly kind: 'scope'; readonly scope: ScopeId; readonly values: ScopeRecord }
  | ({ readonly kind: 'end' } & ExportCounts);

/** How many lines there were of each kind: the last line, so that a file that was cut off is recognized. */
export interface ExportCounts {
  /** Sessions. */
  sessions: number;
  /** Snapshots of the sessions. */
  snapshots: number;
  /** Session records. */
  records: number;
  /** Records of users. */
  scopes: number;
}

/** A session with its records and its snapshots. */
export async function* linesOfSession(
  store: SnapshotStore,
  session: SessionSummary,
  { context }: SessionStoreOptions,
): AsyncGenerator<ExportedLine> {
  const { sessionId } = session;
  yield { kind: 'session', session };
  const records = keepsRecords(store) ? await store.readRecords({ sessionId, context }) : [];
  for (const { revision: _, ...record } of records) yield { kind: 'record', sessionId, record };
  for await (const { snapshotId } of itemsOf((page) => store.listSnapshots(page), {
    sessionId,
    context,
    limit: 1000,
  })) {
    const snapshot = await store.getSnapshot({ snapshotId, context, frozen: true });
    if (snapshot) yield { kind: 'snapshot', snapshot };
  }
}

/** The lines as text, with a last one that counts them. */
export async function* jsonLines(lines: AsyncIterable<ExportedLine>): AsyncGenerator<string> {
  const counts = { sessions: 0, snapshots: 0, records: 0, scopes: 0 };
  for await (const line of lines) {
    if (line.kind !== 'end') counts[`${line.kind}s`]++;
    yield `${JSON.stringify(line)}\n`;
  }
  yield `${JSON.stringify({ kind: 'end', ...counts } satisfies ExportedLine)}\n`;
}
