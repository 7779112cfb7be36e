import { useCallback, useEffect, useState } from 'react';
import type { SessionList } from '../../server/api-types.ts';
import { deleteSession, listSessions, sentenceFor } from './api.ts';

export interface Sessions {
  items: SessionList['items'];
  /** Lists more of them; `undefined` when these are all. */
  showMore?: () => void;
  /** Why the last removal did not work, as a sentence. */
  problem?: string;
  remove: (sessionId: string) => Promise<void>;
}

/** @param version The list is read again when this changes. */
export function useSessions(version: string): Sessions {
  const [items, setItems] = useState<SessionList['items']>([]);
  const [hasMore, setHasMore] = useState(false);
  const [pages, setPages] = useState(1);
  const [problem, setProblem] = useState<string>();

  const refresh = useCallback(
    async (isCurrent: () => boolean = () => true) => {
      // While the server is away the list stays as it was; the notice at the top says why.
      const fresh = await listSessions(pages).catch(() => undefined);
      if (!fresh || !isCurrent()) return;
      setItems(fresh.items);
      setHasMore(fresh.hasMore);
    },
    [pages],
  );

  useEffect(() => {
    let current = true;
    void refresh(() => current);
    return () => {
      current = false;
    };
  }, [refresh, version]);

  const remove = useCallback(
    async (sessionId: string) => {
      setProblem(await deleteSession(sessionId).then(() => undefined, sentenceFor));
      await refresh();
    },
    [refresh],
  );

  const showMore = useCallback(() => setPages((shown) => shown + 1), []);
  return { items, problem, remove, ...(hasMore && { showMore }) };
}
