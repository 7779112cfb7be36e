import { useCallback, useEffect, useState } from 'react';
import type { InspectorError } from '../../../../src/inspector/api.ts';
import { addressOf, factsOf, read, type Answers, type Asks, type ReadName } from './requests.ts';

export interface Reading<T> {
  /** The last answer; while a request runs, the answer before. */
  data?: T;
  error?: InspectorError;
  isLoading: boolean;
  again: () => void;
}

interface Known<T> {
  key?: string;
  data?: T;
  error?: InspectorError;
}

/**
 * Reads again whenever `asks` changes.
 *
 * @param asks `undefined`: does not read.
 * @param delayMs Waits this long for the next change, so that moving through many items reads only the last one. Default: 0.
 */
export function useRead<N extends ReadName>(name: N, asks: Asks<N> | undefined, delayMs = 0): Reading<Answers<N>> {
  const [known, setKnown] = useState<Known<Answers<N>>>({});
  const [round, setRound] = useState(0);
  const key = asks && `${round} ${addressOf(name, asks)}`;

  useEffect(() => {
    if (key === undefined || !asks) return;
    const stop = new AbortController();
    const load = async () => {
      try {
        const data = await read(name, asks, stop.signal);
        setKnown({ key, data });
      } catch (error) {
        if (!stop.signal.aborted) setKnown({ key, error: factsOf(error) });
      }
    };
    const timer = setTimeout(() => void load(), delayMs);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
    // The key contains all of `asks`.
  }, [name, key, delayMs]);

  const again = useCallback(() => setRound((count) => count + 1), []);
  if (key === undefined) return { isLoading: false, again };
  return { data: known.data, error: known.error, isLoading: known.key !== key, again };
}
