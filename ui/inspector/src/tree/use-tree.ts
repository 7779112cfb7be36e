import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { InspectorError, SnapshotView, TreeNode } from '../../../../src/inspector/api.ts';
import { listen } from '../api/live.ts';
import { factsOf, read } from '../api/requests.ts';
import { layOut, type TreeLayout } from '../logic/tree-layout.ts';

export interface Tree {
  layout: TreeLayout;
  isLoading: boolean;
  isGone: boolean;
  error?: InspectorError;
  again: () => void;
  /** The latest leaf as the server sent it, while `follow` is called with it. */
  latest?: SnapshotView;
  /** Begins to listen. With the shown leaf, the server also sends each new leaf; `null`: another snapshot is shown. */
  follow: (leaf: SnapshotView | null) => void;
}

/** The snapshots of a session, live. */
export function useTree(sessionId: string, tenant: string | undefined): Tree {
  const [nodes, setNodes] = useState<readonly TreeNode[]>([]);
  const [isLoading, setIsLoading] = useState(true);
  const [isGone, setIsGone] = useState(false);
  const [error, setError] = useState<InspectorError>();
  const [round, setRound] = useState(0);
  const [latest, setLatest] = useState<SnapshotView>();
  const [followed, setFollowed] = useState<SnapshotView | null>();

  useEffect(() => {
    const stop = new AbortController();
    const load = async () => {
      let cursor: string | undefined;
      setError(undefined);
      setIsLoading(true);
      do {
        const page = await read('tree', { sessionId, tenant, cursor }, stop.signal);
        setNodes((before) => merged(before, page.nodes));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
    };
    void load()
      .catch((failure: unknown) => !stop.signal.aborted && setError(factsOf(failure)))
      .finally(() => !stop.signal.aborted && setIsLoading(false));
    return () => stop.abort();
  }, [sessionId, tenant, round]);

  const layout = useMemo(() => layOut(nodes), [nodes]);
  const leafId = layout.leaf?.node.snapshotId;
  const base = useRef<SnapshotView>(undefined);
  const from = useRef<{ leafId?: string; view?: SnapshotView | null; pending?: string[] }>({});
  from.current = { leafId, view: followed, pending: runningOf(nodes) };
  const isListening = !isLoading && followed !== undefined;
  const isFollowing = Boolean(followed);

  useEffect(() => {
    if (!isListening) return;
    const { view: first } = from.current;
    return listen(
      () => {
        const { leafId: known, pending } = from.current;
        return { sessionId, tenant, leafId: known, follow: isFollowing || undefined, pending };
      },
      {
        nodes: (event) => setNodes((before) => merged(before, event.nodes)),
        snapshot: (view) => {
          const known = base.current?.messages ?? [];
          if (known.length < view.messagesFrom) return;
          const whole = {
            ...view,
            messages: [...known.slice(0, view.messagesFrom), ...view.messages],
            messagesFrom: 0,
          };
          base.current = whole;
          setLatest(whole);
        },
        gone: () => setIsGone(true),
      },
      // Each connection begins with the leaf of the first one.
      () => (base.current = first ?? undefined),
    );
  }, [sessionId, tenant, isListening, isFollowing]);

  const again = useCallback(() => setRound((count) => count + 1), []);
  return { layout, isLoading, isGone, error, again, latest, follow: setFollowed };
}

/** The most snapshots that the server checks besides the leaf. */
const MOST_PENDING = 20;

function runningOf(nodes: readonly TreeNode[]): string[] {
  return nodes
    .filter(({ status }) => status === 'pending' || status === 'expired')
    .slice(-MOST_PENDING)
    .map(({ snapshotId }) => snapshotId);
}

/** Replaces known nodes, and appends new ones. */
function merged(before: readonly TreeNode[], added: readonly TreeNode[]): readonly TreeNode[] {
  if (added.length === 0) return before;
  const byId = new Map(before.map((node) => [node.snapshotId, node]));
  for (const node of added) byId.set(node.snapshotId, node);
  return [...byId.values()];
}
