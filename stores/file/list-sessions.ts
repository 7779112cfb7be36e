import { summarize } from '../../src/store/session-summary.ts';
import type { SessionSummary } from '../../src/store/contract.ts';
import { parseJson } from '../../src/json/value.ts';
import { closeQuietly, codeOf, READ } from './file-system.ts';
import { NO_SESSION, type SessionName } from './names.ts';
import { Pace } from './pace.ts';
import type { Tenant } from './tenant.ts';

/** The end of a log that is looked at; its last line is nearly always a confirmation, which is shorter. */
const END_OF_LOG = 256;

/** Where a list goes on: after the session of this time and name. */
export interface ListPosition {
  readonly time: number;
  readonly name: SessionName;
}

/**
 * The tenant's sessions, the one written last first, from a position on; at most `limit`, and whether there are more.
 *
 * Orders all sessions by the ends of their logs, and reads only those whole that it answers.
 */
export async function listSessions(
  tenant: Tenant,
  limit: number,
  after: ListPosition | undefined,
): Promise<{ sessions: (SessionSummary & { position: ListPosition })[]; hasMore: boolean }> {
  const positions: ListPosition[] = [];
  const pace = new Pace();
  for (const name of await tenant.sessionNames()) {
    if (name === NO_SESSION) continue;
    positions.push({ name, time: endTimeOf(tenant, name) ?? (await tenant.session(name)).index.lastTime });
    await pace.rest();
  }
  const sorted = positions.toSorted(newestFirst);
  const sessions: (SessionSummary & { position: ListPosition })[] = [];
  for (const position of sorted.filter((candidate) => !after || newestFirst(after, candidate) < 0)) {
    await pace.rest();
    const session = await tenant.session(position.name);
    const summary = typeof session.id === 'string' ? summarize(session.id, session.index.tree) : undefined;
    if (!summary) continue;
    if (sessions.length === limit) return { sessions, hasMore: true };
    sessions.push({ ...summary, position });
  }
  return { sessions, hasMore: false };
}

function newestFirst(a: ListPosition, b: ListPosition): number {
  return b.time - a.time || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

/** When a session was saved to last, if the last line of its log says so. */
function endTimeOf({ folder }: Tenant, name: SessionName): number | undefined {
  const { fs } = folder.store;
  let fd: number;
  try {
    fd = fs.open(folder.log(name), READ);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const end = Buffer.alloc(END_OF_LOG);
    const length = fs.read(fd, end, Math.max(0, fs.statOpen(fd).size - END_OF_LOG));
    return timeIn(end.toString('latin1', 0, length));
  } finally {
    closeQuietly(fs, fd);
  }
}

function timeIn(end: string): number | undefined {
  const last = /\n(\{"op":"ok".*\})\n$/.exec(end)?.[1];
  if (last === undefined) return undefined;
  try {
    const { t } = parseJson(last) as { t?: unknown };
    return typeof t === 'number' ? t : undefined;
  } catch {
    return undefined;
  }
}
