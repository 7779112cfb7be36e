/** What the page has read of the conversation that it shows, and how that changes. Pure. */
import type { AgentSnapshot } from 'genkitx-agents/client';
import type { SupportState } from '../../../agent/state.ts';
import type { SnapshotNode } from '../../../server/api-types.ts';
import { newestLeafFrom } from './tree.ts';

export interface ConversationState {
  /** All snapshots of the session, the oldest first. */
  nodes: SnapshotNode[];
  /** The point that is shown. */
  shown?: AgentSnapshot<SupportState>;
  /** It was the latest point when it was first shown: what goes on from it is shown too. */
  isFollowing?: boolean;
  /** Where the conversation stands by now, if that is to be shown. */
  wentOnTo?: string;
  /** Why it can't be shown, as a sentence. */
  problem?: string;
}

export const EMPTY: ConversationState = { nodes: [] };

/**
 * What is known once the conversation was read again.
 *
 * @param follows The page came to the point by following the conversation.
 */
export function withRead(before: ConversationState, read: ConversationState, follows = false): ConversationState {
  const { nodes, shown } = read;
  if (!shown) return read;
  const { snapshotId } = shown;
  const newest = newestLeafFrom(nodes, snapshotId);
  const isFollowing = snapshotId === before.shown?.snapshotId ? before.isFollowing : follows || newest === snapshotId;
  return { ...read, isFollowing, ...(isFollowing && newest !== snapshotId && { wentOnTo: newest }) };
}
