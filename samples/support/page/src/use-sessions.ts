import { useCallback, useEffect, useState } from 'react';
import type { SessionList } from '../../server/api-types.ts';
import { deleteSession, listSessions, sentenceFor } from './api.ts';

export interface Sessions {
  items: SessionList['items'];
  /** Why the last removal did not work, as a sentence. */
  problem?: string;
  remove: (sessionId: string) => Promise<void>;
}

/** @param version The list is read again when this changes. */
export function useSessions(version: string): Sessions {
  const [items, setItems] = useState<SessionList['items']>([]);
  const [problem, setProblem] = useState<string>();

  const refresh = useCallback(async (isCurrent: () => boolean = () => true) => {
    // While the server is away the list stays as it was; the notice at the top says why.
    const fresh = await listSessions().catch(() => undefined);
    if (fresh && isCurrent()) setItems(fresh);
  }, []);

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

  return { items, problem, remove };
}
