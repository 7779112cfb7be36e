import { useEffect, useMemo, useRef } from 'react';
import { useAgent, type AgentConversation } from 'genkitx-agents/react';
import type { SupportState } from '../../../agent/state.ts';
import { beginSession, listSnapshots, support, type TreeNode } from '../logic/api.ts';
import { newSessionId, type Place } from '../logic/place.ts';
import { pathTo } from '../logic/tree.ts';
import type { Go } from './use-place.ts';

export interface Conversation extends AgentConversation<SupportState, TreeNode> {
  /** The path from the conversation's first snapshot to the shown one. */
  path: TreeNode[];
  /** Whether the URL has a conversation that does not exist. */
  isMissing: boolean;
}

export interface ConversationOptions {
  place: Place;
  go: Go;
  /** A change reads the conversation again. */
  version: string;
}

/** The conversation at `place`. Updates the place when the conversation changes. */
export function useConversation({ place, go, version }: ConversationOptions): Conversation {
  const chat = useAgent<SupportState, TreeNode>({
    agent: support,
    sessionId: place.sessionId,
    snapshotId: place.snapshotId,
    listSnapshots,
    begin,
    storageKey: 'support.turn',
  });
  const { sessionId, snapshotId, status, tree, messages, isBusy, refresh } = chat;
  const path = useMemo(() => pathTo(tree, snapshotId), [tree, snapshotId]);

  const before = useRef({ sessionId, snapshotId, isBusy });
  useEffect(() => {
    const { sessionId: session, snapshotId: snapshot, isBusy: wasBusy } = before.current;
    before.current = { sessionId, snapshotId, isBusy };
    // The first view comes from the URL.
    const isMoved = session === sessionId ? snapshot !== undefined && snapshot !== snapshotId : wasBusy || isBusy;
    if (!isMoved || sessionId === undefined || snapshotId === place.snapshotId) return;
    go({ sessionId, snapshotId }, wasBusy ? 'push' : 'replace');
  }, [sessionId, snapshotId, isBusy, place.snapshotId, go]);

  useEffect(() => void refresh(), [version, refresh]);

  const isMissing = sessionId !== undefined && status === 'ready' && tree.length === 0 && messages.length === 0;
  return { ...chat, path, isMissing };
}

/** Makes an empty first snapshot, so that a branch can also begin before the first message. */
async function begin(sessionId = newSessionId()): Promise<{ sessionId: string; snapshotId: string }> {
  return { sessionId, snapshotId: await beginSession(sessionId) };
}
