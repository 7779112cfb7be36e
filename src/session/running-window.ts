import type { MessageData } from 'genkit';

/** A context window during one turn. */
export interface RunningWindow {
  /** Called after the turn was saved; begins the work after the reply. Never throws. The promise resolves when that work has ended. */
  afterTurn(turn: {
    snapshotId?: string | undefined;
    /** The session's messages, as its store keeps them. */
    messages: readonly MessageData[];
    /** Summarize the session now. */
    isForced?: boolean;
  }): Promise<void>;
}

/** By session, the windows of the running turn: that of the agent, and those of other model calls in the turn. */
const windows = new WeakMap<object, Map<object, RunningWindow>>();

/** @param key The same for all model calls through one window, so that it is added once. */
export function noteRunningWindow(session: object, key: object, window: RunningWindow): void {
  const noted = windows.get(session) ?? new Map<object, RunningWindow>();
  windows.set(session, noted.set(key, window));
}

/** The windows of the turn that has ended. */
export function takeRunningWindows(session: object): readonly RunningWindow[] {
  const noted = [...(windows.get(session)?.values() ?? [])];
  windows.delete(session);
  return noted;
}
