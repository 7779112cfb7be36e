import { useCallback, useSyncExternalStore } from 'react';
import type { InspectorError } from '../../../../src/inspector/api.ts';

/** `instead` of the turn or `after` it, or by an answer to the tools that wait at its end. */
export type Way = 'instead' | 'after' | 'approve' | 'deny';

/** What is written to try again in a session, and how the last try ended. */
export interface Attempt {
  text: string;
  way?: Way;
  agent?: string;
  model?: string;
  isBusy?: boolean;
  error?: InspectorError;
}

const NONE: Attempt = { text: '' };
/** By session. Not in a component: a turn goes on, and a draft stays, while other parts of the page are looked at. */
const attempts = new Map<string, Attempt>();
const listeners = new Set<() => void>();

/** @returns The attempt, and a function that changes it; `undefined` ends it. */
export function useAttempt(session: string): [Attempt, (change: Partial<Attempt> | undefined) => void] {
  const attempt = useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
    },
    () => attempts.get(session) ?? NONE,
  );
  const change = useCallback(
    (next: Partial<Attempt> | undefined) => {
      if (next) attempts.set(session, { ...(attempts.get(session) ?? NONE), ...next });
      else attempts.delete(session);
      for (const notify of listeners) notify();
    },
    [session],
  );
  return [attempt, change];
}
