import { useEffect, useMemo, useRef } from 'react';
import { useAgent, type AgentConversation } from 'genkitx-agents/react';
import type { SupportState } from '../../../agent/state.ts';
import { beginSession, listSnapshots, support, type TreeNode } from '../logic/api.ts';
import { newSessionId, type Place } from '../logic/place.ts';
import { pathTo } from '../logic/tree.ts';
import type { Go } from './use-place.ts';

export interface Conversation extends AgentConversation<SupportState, TreeNode> {
  /** From the conversation's first snapshot to the one that is shown. */
  path: TreeNode[];
  /** The address names a conversation that is not there. */
  isMissing: boolean;
}

export interface ConversationOptions {
  place: Place;
  go: Go;
  /** The conversation is read again when this changes. */
  version: string;
}

/** The conversation at `place`; the place follows it. */
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
    // What is shown first is what the address names.
    const isMoved = session === sessionId ? snapshot !== undefined && snapshot !== snapshotId : wasBusy || isBusy;
    if (!isMoved || sessionId === undefined || snapshotId === place.snapshotId) return;
    go({ sessionId, snapshotId }, wasBusy ? 'push' : 'replace');
  }, [sessionId, snapshotId, isBusy, place.snapshotId, go]);

  useEffect(() => void refresh(), [version, refresh]);

  const isMissing = sessionId !== undefined && status === 'ready' && tree.length === 0 && messages.length === 0;
  return { ...chat, path, isMissing };
}

/** The first message too has a snapshot that another branch can begin at. */
async function begin(sessionId = newSessionId()): Promise<{ sessionId: string; snapshotId: string }> {
  return { sessionId, snapshotId: await beginSession(sessionId) };
}
