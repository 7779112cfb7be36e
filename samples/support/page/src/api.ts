/** The server as the page sees it: the agent, and the lists of conversations and snapshots. */
import { remoteAgent } from 'genkitx-agents/client';
import type { SupportState } from '../../agent/state.ts';
import type { SessionList, SnapshotNode, SnapshotList } from '../../server/api-types.ts';

export const agent = remoteAgent<SupportState>({ url: 'api/support' });

export async function listSessions(): Promise<SessionList['items']> {
  const { items } = (await call('api/sessions')) as SessionList;
  return items;
}

export async function listSnapshots(sessionId: string): Promise<SnapshotNode[]> {
  const { items } = (await call(`api/sessions/${encodeURIComponent(sessionId)}/snapshots`)) as SnapshotList;
  return items;
}

export async function deleteSession(sessionId: string): Promise<void> {
  await call(`api/sessions/${encodeURIComponent(sessionId)}`, { method: 'DELETE' });
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
