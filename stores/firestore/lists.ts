import { FieldPath, Timestamp, type DocumentSnapshot, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import { copyJson } from '../../src/json/value.ts';
import type { Page, SessionSummary, SnapshotMetadata } from '../../src/store/contract.ts';
import { pageOf, type PageRequest } from '../../src/store/page.ts';
import { FOREIGN_POINTER_FIELDS, isForeignPointer } from './genkit-format.ts';
import { adoptedView, snapshotsOf } from './genkit-session.ts';
import { isAlive } from './lineage.ts';
import { keyOf, orderRange } from './names.ts';
import { isThere, LIST_FIELDS, readPointer, summaryOf } from './pointer-document.ts';
import { HEAD_FIELDS, readHead } from './snapshot-document.ts';
import { SnapshotReader } from './snapshot-reader.ts';
import type { Tenant } from './tenant.ts';

/** A page of the session's snapshots; positions are their places in the session's order of first saves. */
export async function listSnapshots(
  tenant: Tenant,
  sessionId: string,
  { limit, after: [after] = [-1] }: PageRequest<readonly [seq: number]>,
): Promise<Page<SnapshotMetadata>> {
  const { collections, database } = tenant;
  const { from, below } = orderRange(keyOf('session', sessionId), after + 1);
  const query = collections.snapshots.where('at', '>=', from).where('at', '<', below).orderBy('at');
  const [pointer, found] = await Promise.all([
    database.get(tenant.pointerRef(sessionId), [...LIST_FIELDS, ...FOREIGN_POINTER_FIELDS]),
    database.query(query.limit(limit + 1).select(...HEAD_FIELDS)),
  ]);
  const data = pointer.data();
  if (data && isForeignPointer(data)) {
    const rest = (await snapshotsOf(tenant, sessionId)).slice(after + 1);
    return pageOf(rest, limit, (meta, i) => ({ position: [after + 1 + i], item: copyJson(meta) }));
  }
  const now = Date.now();
  if (!data || !isThere(readPointer(pointer, sessionId), now)) return { items: [] };
  return pageOf(found, limit, (document) => {
    const head = readHead(document.id, document.data());
    return { position: [head.seq], item: isAlive(head, now) ? copyJson(head.meta) : undefined };
  });
}

/** A session in a list, and where: sessions are ordered by their last write, then by their document's id. */
interface ListedSession {
  readonly time: Timestamp;
  readonly name: string;
  readonly summary: SessionSummary;
}

/** Heartbeats that a list looks at; more snapshots than that are hardly running at a time. */
const MOST_BEATS = 1000;

/**
 * A page of the tenant's sessions, the one written last first.
 *
 * A heartbeat writes the snapshot alone, so there are two orders to be merged: of the pointers, and of the snapshots written last by a
 * heartbeat. Sessions of Genkit's own store are a third.
 */
export async function listSessions(
  tenant: Tenant,
  { limit, after: position }: PageRequest<readonly [seconds: number, nanoseconds: number, name: string]>,
): Promise<Page<SessionSummary>> {
  const after = position && { time: new Timestamp(position[0], position[1]), name: position[2] };
  const beats = await lastBeats(tenant);
  const [beating, foreign] = await Promise.all([beatingSessions(tenant, beats), foreignSessions(tenant)]);
  const candidates = [...beating, ...foreign].filter((session) => !after || newestFirst(after, session) < 0);
  const listed = new Set(beating.map((session) => session.name));
  for (let from = after, isAtEnd = false; !isAtEnd;) {
    const documents = await pointerPage(tenant, limit + 1, from);
    isAtEnd = documents.length <= limit;
    for (const document of documents) {
      const session = await listedSession(tenant, document);
      if (session && !listed.has(document.id)) candidates.push(session);
    }
    const last = documents.at(-1);
    if (last) from = { time: last.get('written') as Timestamp, name: last.id };
    if (candidates.filter((session) => from && newestFirst(session, from) <= 0).length > limit) break;
  }
  return pageOf(candidates.toSorted(newestFirst), limit, ({ time, name, summary }) => ({
    position: [time.seconds, time.nanoseconds, name],
    item: summary,
  }));
}

function pointerPage(
  tenant: Tenant,
  limit: number,
  after: { time: Timestamp; name: string } | undefined,
): Promise<QueryDocumentSnapshot[]> {
  const { collections, database } = tenant;
  const id = FieldPath.documentId();
  const query = collections.pointers
    .orderBy('written', 'desc')
    .orderBy(id, 'desc')
    .select(...LIST_FIELDS);
  return database.query((after ? query.startAfter(after.time, after.name) : query).limit(limit));
}

async function listedSession(
  tenant: Tenant,
  document: DocumentSnapshot,
  beat?: Beat,
): Promise<ListedSession | undefined> {
  const known = readPointer(document);
  const pointer = isThere(known, Date.now()) ? await new SnapshotReader(tenant).surviving(known) : known;
  const summary = summaryOf(pointer, Date.now());
  if (!summary || !pointer.written) return undefined;
  const session = { time: pointer.written, name: document.id, summary };
  if (!beat || beat.time.valueOf() <= pointer.written.valueOf()) return session;
  return { ...session, time: beat.time, summary: { ...summary, updatedAt: beat.updatedAt } };
}

interface Beat {
  readonly time: Timestamp;
  readonly updatedAt: string;
}

/** Of each session that has snapshots written last by a heartbeat the last one. */
async function lastBeats({ collections, database }: Tenant): Promise<Map<string, Beat>> {
  const query = collections.snapshots
    .orderBy('beat', 'desc')
    .limit(MOST_BEATS)
    .select(...HEAD_FIELDS);
  const beats = new Map<string, Beat>();
  for (const document of await database.query(query)) {
    const { meta, sessionId } = readHead(document.id, document.data());
    if (sessionId === undefined || beats.has(sessionId)) continue;
    beats.set(sessionId, { time: document.get('beat') as Timestamp, updatedAt: meta.updatedAt ?? meta.createdAt });
  }
  return beats;
}

async function beatingSessions(tenant: Tenant, beats: ReadonlyMap<string, Beat>): Promise<ListedSession[]> {
  const entries = [...beats];
  const refs = entries.map(([sessionId]) => tenant.pointerRef(sessionId));
  const documents = await tenant.database.getAll(refs, LIST_FIELDS);
  const there = documents.flatMap((document, i) => (document.exists ? [{ document, beat: entries[i]![1] }] : []));
  const sessions = await Promise.all(there.map(({ document, beat }) => listedSession(tenant, document, beat)));
  return sessions.filter((session) => session !== undefined);
}

async function foreignSessions(tenant: Tenant): Promise<ListedSession[]> {
  const { collections, database } = tenant;
  const found = await database.query(collections.pointers.orderBy('updatedAt', 'desc'));
  const sessions: ListedSession[] = [];
  for (const document of found.filter((pointer) => isForeignPointer(pointer.data()))) {
    const summary = summaryOf(await adoptedView(tenant, document.id, document), Date.now());
    const time = Timestamp.fromMillis(Date.parse(document.get('updatedAt') as string) || 0);
    if (summary) sessions.push({ time, name: document.id, summary });
  }
  return sessions;
}

function newestFirst(a: { time: Timestamp; name: string }, b: { time: Timestamp; name: string }): number {
  const [x, y] = [a.time.valueOf(), b.time.valueOf()];
  if (x !== y) return x < y ? 1 : -1;
  return a.name < b.name ? 1 : a.name > b.name ? -1 : 0;
}
