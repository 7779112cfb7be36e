/** The server as the page sees it: the agent, and the lists of conversations and snapshots. */
import { remoteAgent } from 'genkitx-agents/client';
import type { SupportState } from '../../agent/state.ts';
import type { SessionList, SnapshotNode, SnapshotList } from '../../server/api-types.ts';

export const agent = remoteAgent<SupportState>({ url: 'api/support' });

/** The newest conversations: as many pages of them as asked for, and whether there are more. */
export async function listSessions(pages: number): Promise<{ items: SessionList['items']; hasMore: boolean }> {
  const items: SessionList['items'] = [];
  let cursor: string | undefined;
  for (let read = 0; read < pages; read++) {
    const page = (await call(`api/sessions${cursor ? `?${new URLSearchParams({ cursor })}` : ''}`)) as SessionList;
    items.push(...page.items);
    cursor = page.nextCursor;
    if (!cursor) break;
  }
  return { items, hasMore: cursor !== undefined };
}

export async function listSnapshots(sessionId: string): Promise<SnapshotNode[]> {
  const { items } = (await call(`api/snapshots?${new URLSearchParams({ sessionId })}`)) as SnapshotList;
  return items;
}

export async function deleteSession(sessionId: string): Promise<void> {
  await call(`api/sessions?${new URLSearchParams({ sessionId })}`, { method: 'DELETE' });
}

/** What went wrong, as a sentence for the person at the page. */
export function sentenceFor(error: unknown): string {
  const text = messageIn(error) ?? String(error);
  if (error instanceof TypeError || /failed to fetch|network/i.test(text)) return 'The server can’t be reached.';
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

async function call(url: string, init?: RequestInit): Promise<unknown> {
  const response = await fetch(url, init);
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new Error(messageIn(body) ?? `The server answered ${response.status}.`);
  return body;
}

function messageIn(body: unknown): string | undefined {
  return (body as { message?: string } | undefined)?.message;
}
