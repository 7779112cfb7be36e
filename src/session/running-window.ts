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

/** By session, the window of the running turn: that of the agent, or that of a model call which a custom agent makes. */
const windows = new WeakMap<object, RunningWindow>();

export function noteRunningWindow(session: object, window: RunningWindow): void {
  windows.set(session, window);
}

/** The window of the turn that has ended. */
export function takeRunningWindow(session: object): RunningWindow | undefined {
  const window = windows.get(session);
  windows.delete(session);
  return window;
}
