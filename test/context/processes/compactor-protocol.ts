import type { MessageData } from 'genkit';

/** What the parent says: summarize the session, at a time that is so much ahead; or what the summarizer answers. */
export type CompactorOrder = { kind: 'compact'; aheadMs: number } | { kind: 'answer'; text: string };
/** What the process tells: that it is ready; that the summarizer was asked; up to which message it knows a summary. */
export type CompactorReport = { kind: 'ready' } | { kind: 'asked' } | { kind: 'done'; coveredTo: number };

/** The session that is summarized, and its messages. */
export const SESSION = { sessionId: 'shared', snapshotId: 'leaf' };
export const MESSAGES: readonly MessageData[] = Array.from({ length: 10 }, (_, i) => ({
  role: i % 2 ? ('model' as const) : ('user' as const),
  content: [{ text: `message ${i}` }],
}));
