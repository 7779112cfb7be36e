import { useCallback, useEffect, useState } from 'react';
import type { SessionItem } from '../../../server/api-types.ts';
import { deleteSession, listSessions, renameSession } from '../logic/api.ts';
import { sentenceFor } from '../../../../../ui/logic/problem.ts';

export interface Sessions {
  items: SessionItem[];
  /** Lists more of them; `undefined` if all are listed. */
  showMore?: () => void;
  /** Why the last change failed, as a sentence. */
  problem?: string;
  rename: (sessionId: string, title: string) => Promise<void>;
  remove: (sessionId: string) => Promise<void>;
}

/** @param version A change reads the list again. */
export function useSessions(version: string): Sessions {
  const [items, setItems] = useState<SessionItem[]>([]);
  const [hasMore, setHasMore] = useState(false);
  const [pages, setPages] = useState(1);
  const [problem, setProblem] = useState<string>();

  const refresh = useCallback(
    async (isCurrent: () => boolean = () => true) => {
      // While the server is away, the list stays; the notice at the top explains it.
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

  const change = useCallback(
    async (work: Promise<void>) => {
      setProblem(await work.then(() => undefined, sentenceFor));
      await refresh();
    },
    [refresh],
  );
  const rename = useCallback((sessionId: string, title: string) => change(renameSession(sessionId, title)), [change]);
  const remove = useCallback((sessionId: string) => change(deleteSession(sessionId)), [change]);
  const showMore = useCallback(() => setPages((shown) => shown + 1), []);
  return { items, problem, rename, remove, ...(hasMore && { showMore }) };
}
