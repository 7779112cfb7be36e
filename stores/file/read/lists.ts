import { join, relative } from 'node:path';
import { copyJson } from '../../../src/json/value.ts';
import type { Page, SessionSummary, SnapshotMetadata, Unreadable } from '../../../src/store/contract.ts';
import { pageOf, type PageRequest, type Position } from '../../../src/store/list/page.ts';
import { summarize, usageOf, usageOfSession } from '../../../src/store/list/session-summary.ts';
import { isRefused, isSystemError } from '../disk/io-error.ts';
import { Pace } from '../disk/pace.ts';
import { readBeginning, readFrom } from '../disk/read-file.ts';
import { fileNameOf } from '../format/names.ts';
import { parseHeader, parseLines } from '../format/save-log.ts';
import type { SnapshotHead } from '../format/snapshot-file.ts';
import { headIfReadable, type FileSession } from '../file-session.ts';
import type { IndexNode } from '../session-index.ts';
import type { TenantSessions } from '../tenant-sessions.ts';

/** Bytes to read at each end of a session's log. A list needs no more. */
const END_OF_LOG = 4096;

/** A session, and its position in the list. */
interface ListedSession {
  readonly sessionId: string;
  readonly name: string;
  readonly writtenAt: number;
}

/** Reads the heads of snapshots, if they are unknown or outdated. A head that `read` returns `undefined` for stays unknown. */
export async function loadHeads(
  session: FileSession,
  nodes: Iterable<IndexNode>,
  read: typeof headIfReadable = headIfReadable,
): Promise<void> {
  const pace = new Pace();
  for (const node of nodes) {
    await pace.rest();
    if (!read(session, node)) node.seen = undefined;
  }
}

/** The head, or its stored form if it can't be decrypted: then reading the snapshot fails, but not a list. */
function openedIfPossible(session: FileSession, head: SnapshotHead): Promise<SnapshotHead> {
  return session.opened(head).catch(() => head);
}

/** A page of the session's snapshots, in the order of their first saves. */
export async function listSnapshots(
  session: FileSession,
  { limit, after: [after] = [0] }: PageRequest<Position<['number']>>,
): Promise<Page<SnapshotMetadata>> {
  await session.refresh();
  const rest = [...session.index.tree.nodes()].filter(({ place }) => place > after);
  await loadHeads(session, rest.slice(0, limit));
  for (const { seen } of rest.slice(0, limit)) if (seen) await openedIfPossible(session, seen.head);
  return pageOf(rest, limit, (node) => ({ position: [node.place], item: metadataOf(session, node) }));
}

/** The snapshot's metadata; for a damaged file only the data in the log. */
function metadataOf(session: FileSession, node: IndexNode): SnapshotMetadata {
  if (node.seen) return copyJson(node.seen.head.meta);
  const { snapshotId, parentId, createdAt } = node;
  return { snapshotId, ...(parentId !== undefined && { parentId }), createdAt, sessionId: session.id };
}

/**
 * The ids of the tenant's sessions, and when each was last written. A session whose log does not say this is opened.
 *
 * @param unreadable Gets the sessions that can't be opened.
 */
export async function* sessionsOf(tenant: TenantSessions, unreadable: Unreadable[]): AsyncGenerator<ListedSession> {
  const pace = new Pace();
  for (const name of await tenant.sessionNames()) {
    await pace.rest();
    // A link is not followed.
    const found = (tenant.hasSession(name) && (await peek(tenant, name))) || (await open(tenant, name, unreadable));
    if (found) yield { name, ...found };
  }
}

/**
 * A page of the tenant's sessions, the one written last first.
 *
 * @param ownerId `undefined`: sessions of any owner.
 */
export async function listSessions(
  tenant: TenantSessions,
  { limit, after }: PageRequest<Position<['number', 'string']>>,
  ownerId: string | undefined,
): Promise<Page<SessionSummary>> {
  const position = after && { writtenAt: after[0], name: after[1] };
  const listed: ListedSession[] = [];
  const unreadable: Unreadable[] = [];
  for await (const one of sessionsOf(tenant, unreadable)) {
    if (!position || newestFirst(position, one) < 0) listed.push(one);
  }
  const rest: (ListedSession & { summary: SessionSummary })[] = [];
  for (const one of listed.toSorted(newestFirst)) {
    const summary = await summaryOf(tenant.session(one.sessionId), ownerId, unreadable);
    if (summary) rest.push({ ...one, summary });
    if (rest.length > limit) break;
  }
  const page = pageOf(rest, limit, ({ writtenAt, name, summary }) => ({ position: [writtenAt, name], item: summary }));
  return unreadable.length > 0 ? { ...page, unreadable } : page;
}

function newestFirst(a: Omit<ListedSession, 'sessionId'>, b: Omit<ListedSession, 'sessionId'>): number {
  return b.writtenAt - a.writtenAt || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

/**
 * @param ownerId `undefined`: a session of any owner.
 * @param unreadable Gets the session if its owner can't be read.
 */
async function summaryOf(
  session: FileSession,
  ownerId: string | undefined,
  unreadable: Unreadable[],
): Promise<SessionSummary | undefined> {
  await session.refresh();
  const { tree, updatedAt } = session.index;
  const head = session.headWithDetails();
  if (!head && (tree.size > 0 ? ownerId !== undefined : session.isRebuilt)) unreadable.push({ sessionId: session.id });
  if (!tree.latestLeaf()) return undefined;
  const details = head && (await openedIfPossible(session, head)).details;
  if (ownerId !== undefined && details?.ownerId !== ownerId) return undefined;
  await loadHeads(session, tree.nodes());
  const usage = usageOfSession([...tree.nodes()].map((node) => usageOf(node.seen?.head.meta ?? {})));
  const summary = summarize(session.id, tree, { ...details, ...(usage && { usage }) });
  return summary && updatedAt !== undefined ? { ...summary, updatedAt } : summary;
}

async function peek(tenant: TenantSessions, name: string): Promise<Omit<ListedSession, 'name'> | undefined> {
  const { fs } = tenant.folder.store;
  const path = tenant.folder.log(name);
  try {
    const content = readBeginning(fs, path, END_OF_LOG);
    if (typeof content === 'string') return undefined;
    const { bytes, stats } = content;
    const rest = stats.size <= END_OF_LOG ? content : await readFrom(fs, path, stats.size - END_OF_LOG);
    if (typeof rest === 'string') return undefined;
    const { session } = parseHeader(bytes.subarray(0, bytes.indexOf(10) + 1));
    // Skips the header, or a partial line.
    const lines = parseLines(rest.bytes.subarray(rest.bytes.indexOf(10) + 1, rest.bytes.lastIndexOf(10) + 1));
    const last = lines.findLast((line) => 'at' in line && typeof line.at === 'number') as { at: number } | undefined;
    if (last && fileNameOf(session) === name) return { sessionId: session, writtenAt: last.at };
  } catch (error) {
    if (isSystemError(error) && !isRefused(error)) throw error;
    // The caller then opens the session, which rebuilds the index from the snapshots' files.
  }
  return undefined;
}

async function open(
  tenant: TenantSessions,
  name: string,
  unreadable: Unreadable[],
): Promise<Omit<ListedSession, 'name'> | undefined> {
  const { store, sessions } = tenant.folder;
  const path = join(sessions, name);
  const session = await tenant.sessionOfName(name);
  try {
    await session?.refresh();
    if (session) return { sessionId: session.id, writtenAt: session.index.writtenAt };
    // An interrupted save or removal leaves an empty folder.
    if (tenant.hasSession(name) && store.namesIn(path).length === 0) return undefined;
  } catch (error) {
    if (!isRefused(error)) throw error;
  }
  unreadable.push(session ? { sessionId: session.id } : { place: relative(store.path, path) });
  return undefined;
}
