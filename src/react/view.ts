import type { AgentError } from '../client/errors.ts';
import type { KnownSnapshots } from './known-snapshots.ts';
import { artifactsWith, messagesWith, type Point, type RunningTurn } from './point.ts';
import type { SnapshotNode } from './snapshot-tree.ts';
import type { ChatView } from './types.ts';

/** The state of a page's conversation. */
interface Known<State, Node extends SnapshotNode> {
  sessionId: string | undefined;
  point: Point<State>;
  /** The turn that continues from the point. */
  turn: RunningTurn<State> | undefined;
  /** A turn runs, from this or another point. */
  isBusy: boolean;
  known: KnownSnapshots<State, Node>;
  /** The conversation has been read. */
  isRead: boolean;
  readError: AgentError | undefined;
}

export function viewOf<State, Node extends SnapshotNode>(page: Known<State, Node>): ChatView<State, Node> {
  const { sessionId, point, turn, isBusy, known, readError } = page;
  const { snapshotId } = point;
  const isLatest = snapshotId === undefined || known.tree.childrenOf(snapshotId).length === 0;
  return {
    sessionId,
    snapshotId,
    messages: turn ? messagesWith(point, turn) : point.messages,
    status: statusOf(page),
    isBusy,
    isStopped: turn ? turn.phase === 'stopped' : point.status === 'aborted' && isLatest,
    reconnecting: turn?.reconnecting === true,
    state: turn?.state ?? point.state,
    artifacts: turn ? artifactsWith(point, turn) : point.artifacts,
    interrupts: turn || !isLatest ? [] : point.interrupts,
    branches: known.branchesOf(point),
    tree: known.nodes,
    error: turn?.error ?? readError,
  };
}

function statusOf<State, Node extends SnapshotNode>({
  turn,
  isRead,
  readError,
}: Known<State, Node>): ChatView['status'] {
  if (turn?.phase === 'failed') return 'error';
  if (turn?.phase === 'running') return turn.isStreaming ? 'streaming' : 'submitted';
  if (isRead) return 'ready';
  return readError ? 'error' : 'loading';
}
