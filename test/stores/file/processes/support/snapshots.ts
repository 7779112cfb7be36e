import { createHash } from 'node:crypto';
import type { SessionSnapshot, SessionSnapshotInput, SnapshotMutator } from '../../../../../src/store/contract.ts';
import type { FileSessionStore } from '../../../../../stores/file/file-session-store.ts';

const CREATED_AT = '2026-01-02T03:04:05.678Z';

/** A new snapshot for a turn. */
export function pending(sessionId: string): SessionSnapshotInput {
  return {
    sessionId,
    createdAt: CREATED_AT,
    updatedAt: CREATED_AT,
    status: 'pending',
    state: { sessionId, custom: {} },
  };
}

/** The next turn after `parent`, with `text` as its message. */
export function turn(sessionId: string, parent: SessionSnapshot | undefined, text: string): SessionSnapshotInput {
  const messages = [...(parent?.state?.messages ?? []), { role: 'user' as const, content: [{ text }] }];
  return {
    sessionId,
    createdAt: CREATED_AT,
    updatedAt: CREATED_AT,
    status: 'completed',
    ...(parent && { parentId: parent.snapshotId }),
    state: { sessionId, messages, custom: { turns: messages.length } },
  };
}

/** The texts of the messages of a snapshot. */
export function textsOf(snapshot: SessionSnapshot | undefined): string[] {
  return (snapshot?.state?.messages ?? []).map((message) => message.content[0]?.text ?? '');
}

/** Adds one to `custom.n`. */
export const increment: SnapshotMutator = (current) => ({
  ...(current ?? pending('counters')),
  state: { ...current?.state, custom: { n: counterOf(current) + 1 } },
});

export function counterOf(snapshot: SessionSnapshot | undefined): number {
  return (snapshot?.state?.custom as { n?: number } | undefined)?.n ?? 0;
}

/** The ids of a session's snapshots, in the order of first saves. */
export async function idsOf(store: FileSessionStore, sessionId: string): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listSnapshots({ sessionId, limit: 1000, ...(cursor !== undefined && { cursor }) });
    ids.push(...page.items.map((item) => item.snapshotId));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return ids;
}

/** A text that is the same only for equal snapshots, in any order of their members. */
export function fingerprint(snapshot: SessionSnapshot): string {
  const ordered = JSON.stringify(snapshot, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(ordered).digest('hex').slice(0, 24);
}
