/** The status of a turn as the page shows it: each has its own color and shape. Pure. */
import type { SnapshotStatus, TreeNode } from '../../../../src/inspector/api.ts';

/** `waiting`: a completed turn that waits for an answer. */
export type Mark = SnapshotStatus | 'waiting';

export const MARKS: readonly Mark[] = ['completed', 'waiting', 'pending', 'failed', 'aborted', 'expired'];

export const MARK_NAMES: Record<Mark, string> = {
  completed: 'completed',
  waiting: 'waiting for an answer',
  pending: 'running',
  failed: 'failed',
  aborted: 'aborted',
  expired: 'expired',
};

export function markOf({ status = 'completed', finishReason }: Pick<TreeNode, 'status' | 'finishReason'>): Mark {
  return status === 'completed' && finishReason === 'interrupted' ? 'waiting' : status;
}
