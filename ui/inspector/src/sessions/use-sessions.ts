import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type {
  InspectorError,
  InspectorStart,
  LiveEvents,
  SessionRow,
  SessionsPage,
  SessionsQuery,
} from '../../../../src/inspector/api.ts';
import { listen } from '../api/live.ts';
import { factsOf, read } from '../api/requests.ts';

export interface Sessions {
  lines: readonly SessionRow[];
  isLoading: boolean;
  /** Whether there are more sessions. */
  hasMore: boolean;
  looked: number;
  error?: InspectorError;
  more: () => void;
  again: () => void;
}

interface Known extends Omit<SessionsPage, 'items'> {
  lines: readonly SessionRow[];
  error?: InspectorError;
}

/** The sessions of a query, live. `first` is the answer of the first request, if it fits. */
export function useSessions(query: SessionsQuery, first: InspectorStart | undefined): Sessions {
  const key = JSON.stringify(query);
  const asks = useMemo(() => JSON.parse(key) as SessionsQuery, [key]);
  const [known, setKnown] = useState<Known | undefined>(() => first && knownFrom(first));
  const isLoading = useRef(false);
  const isFirst = useRef(first !== undefined);

  const load = useCallback(
    async (cursor: string | undefined, signal?: AbortSignal) => {
      isLoading.current = true;
      try {
        const page = await read('sessions', { ...asks, cursor }, signal);
        setKnown((before) => (cursor && before ? withPage(before, page) : knownFrom(page)));
      } catch (error) {
        if (!signal?.aborted) setKnown((before) => ({ lines: [], looked: 0, ...before, error: factsOf(error) }));
      }
      isLoading.current = false;
    },
    [asks],
  );

  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    const stop = new AbortController();
    setKnown(undefined);
    void load(undefined, stop.signal);
    return () => stop.abort();
  }, [load]);

  // Only after the list was read: the first event then has all that was written meanwhile.
  const isKnown = known !== undefined;
  useEffect(() => {
    if (!isKnown) return;
    return listen(() => asks, {
      sessions: (event) => setKnown((before) => before && withWritten(before, event)),
    });
  }, [asks, isKnown]);

  const cursor = known?.nextCursor;
  const more = useCallback(() => {
    if (cursor !== undefined && !isLoading.current) void load(cursor);
  }, [cursor, load]);

  return {
    lines: known?.lines ?? [],
    isLoading: !isKnown,
    hasMore: cursor !== undefined,
    looked: known?.looked ?? 0,
    error: known?.error,
    more,
    again: useCallback(() => void load(cursor), [load, cursor]),
  };
}

function knownFrom({ items, looked, nextCursor, error }: SessionsPage & { error?: InspectorError }): Known {
  return { lines: items, looked, nextCursor, error };
}

function withPage(before: Known, { items, looked, nextCursor }: SessionsPage): Known {
  const seen = new Set(before.lines.map(({ sessionId }) => sessionId));
  const added = items.filter(({ sessionId }) => !seen.has(sessionId));
  return { lines: [...before.lines, ...added], looked: before.looked + looked, nextCursor };
}

/** The sessions written last come first. Those that do not meet the conditions any more go away. */
function withWritten(before: Known, { items, written }: LiveEvents['sessions']): Known {
  const others = before.lines.filter(({ sessionId }) => !written.includes(sessionId));
  return { ...before, lines: [...items, ...others].sort((a, b) => b.updatedAt.localeCompare(a.updatedAt)) };
}
