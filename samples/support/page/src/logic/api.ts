/** The page's client of the server: the agents, and the lists of conversations and snapshots. */
import { remoteAgent } from 'genkitx-agents/client';
import type { ReportState } from '../../../agent/report-agent.ts';
import type { SupportState } from '../../../agent/state.ts';
import type {
  BegunSession,
  SeenContext,
  SessionItem,
  SessionList,
  SnapshotList,
  SnapshotNode,
} from '../../../server/api-types.ts';
import { authHeaders } from './auth.ts';

export const support = remoteAgent<SupportState>({
  url: 'api/support',
  headers: authHeaders,
  reconnect: { attempts: 5, maxDelayMs: 1_000 },
});
export const reporter = remoteAgent<ReportState>({ url: 'api/reporter', headers: authHeaders });

/** The newest conversations: the requested number of pages, and whether there are more. */
export async function listSessions(pages: number): Promise<{ items: SessionItem[]; hasMore: boolean }> {
  const items: SessionItem[] = [];
  let cursor: string | undefined;
  for (let read = 0; read < pages; read++) {
    const page = (await call(`api/sessions${cursor ? `?${new URLSearchParams({ cursor })}` : ''}`)) as SessionList;
    items.push(...page.items);
    cursor = page.nextCursor;
    if (!cursor) break;
  }
  return { items, hasMore: cursor !== undefined };
}

/** Makes a conversation with the page's id. Returns the snapshot that its first turn continues from. */
export async function beginSession(sessionId: string): Promise<string> {
  const { snapshotId } = (await call('api/sessions', 'POST', { sessionId })) as BegunSession;
  return snapshotId;
}

export async function renameSession(sessionId: string, title: string): Promise<void> {
  await call(`api/sessions?${new URLSearchParams({ sessionId })}`, 'PATCH', { title });
}

export async function deleteSession(sessionId: string): Promise<void> {
  await call(`api/sessions?${new URLSearchParams({ sessionId })}`, 'DELETE');
}

/** All snapshots of a session, the oldest first. */
export async function listSnapshots(sessionId: string): Promise<TreeNode[]> {
  const { items } = (await call(`api/snapshots?${new URLSearchParams({ sessionId })}`)) as SnapshotList;
  // The turn is 0 in a preview that is not made yet.
  return items.map((node) => ({ ...node, turns: node.preview.turn || undefined }));
}

/** A snapshot for the hook and the picture of the tree. */
export type TreeNode = SnapshotNode & { turns?: number };

/** What the model saw in the turn that the snapshot ends. */
export async function readContext(snapshotId: string): Promise<SeenContext> {
  return (await call(`api/context?${new URLSearchParams({ snapshotId })}`)) as SeenContext;
}

async function call(url: string, method = 'GET', body?: unknown): Promise<unknown> {
  const headers = { ...(await authHeaders()), ...(body !== undefined && { 'content-type': 'application/json' }) };
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new Error(messageIn(answer) ?? `The server answered ${response.status}.`);
  return answer;
}

function messageIn(body: unknown): string | undefined {
  return (body as { message?: string } | undefined)?.message;
}
