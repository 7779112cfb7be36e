import { copyJson, parseJson } from '../../src/json/value.ts';
import type { Page, SessionSummary, SnapshotMetadata } from '../../src/store/contract.ts';
import { pageOf, type PageRequest } from '../../src/store/page.ts';
import { summarize } from '../../src/store/session-summary.ts';
import { closeQuietly, codeOf, READ } from './file-system.ts';
import { NO_SESSION, type SessionName } from './names.ts';
import { Pace } from './pace.ts';
import type { Session } from './session.ts';
import type { Tenant } from './tenant.ts';

/** The end of a log that is looked at; its last line is nearly always a confirmation, which is shorter. */
const END_OF_LOG = 256;

/** Where a session is in the list. */
interface ListPosition {
  readonly time: number;
  readonly name: SessionName;
}

/** A page of the session's snapshots; positions are their places in the session's order of first saves. */
export function listSnapshots(
  session: Session,
  { limit, after: [after] = [-Infinity] }: PageRequest<readonly [seq: number]>,
): Page<SnapshotMetadata> {
  const rest = [...session.index.tree.nodes()].filter(({ version }) => version.seq > after);
  return pageOf(rest, limit, ({ version, meta }) => ({ position: [version.seq], item: copyJson(meta) }));
}

/**
 * A page of the tenant's sessions, the one written last first.
 *
 * Orders all sessions by the ends of their logs, and reads only those whole that it answers, and the next.
 */
export async function listSessions(
  tenant: Tenant,
  { limit, after: position }: PageRequest<readonly [time: number, name: string]>,
): Promise<Page<SessionSummary>> {
  const after = position && { time: position[0], name: position[1] };
  const positions: ListPosition[] = [];
  const pace = new Pace();
  for (const name of await tenant.sessionNames()) {
    if (name === NO_SESSION) continue;
    positions.push({ name, time: endTimeOf(tenant, name) ?? (await tenant.session(name)).index.lastTime });
    await pace.rest();
  }
  const rest: (ListPosition & { summary: SessionSummary })[] = [];
  for (const candidate of positions.filter((one) => !after || newestFirst(after, one) < 0).toSorted(newestFirst)) {
    await pace.rest();
    const session = await tenant.session(candidate.name);
    const summary = typeof session.id === 'string' ? summarize(session.id, session.index.tree) : undefined;
    if (summary) rest.push({ ...candidate, summary });
    if (rest.length > limit) break;
  }
  return pageOf(rest, limit, ({ time, name, summary }) => ({ position: [time, name], item: summary }));
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
