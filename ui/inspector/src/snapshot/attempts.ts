import { useCallback, useSyncExternalStore } from 'react';
import type { InspectorError } from '../../../../src/inspector/api.ts';

/** Where a new turn goes: `instead` of the turn, `after` it, or as an answer to the tools that wait at its end. */
export type Way = 'instead' | 'after' | 'approve' | 'deny';

/** The draft of a new turn in a session, and the result of the last attempt. */
export interface Attempt {
  text: string;
  way?: Way;
  agent?: string;
  model?: string;
  isBusy?: boolean;
  error?: InspectorError;
}

const NONE: Attempt = { text: '' };
/** By session. Not in a component, so that a turn continues and a draft stays while the page shows other views. */
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
