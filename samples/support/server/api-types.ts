/** What the page gets from the server besides the agent itself. Types only, shared by both. */
import type { SessionSummary, SnapshotMetadata } from 'genkitx-agents';

/** What was said in the turn that a snapshot closes. */
export interface Preview {
  /** The conversation's first message. */
  title: string;
  /** The customer's message, and the reply to it. */
  asked: string;
  replied: string;
  /** Names of the tools that the turn used. */
  tools: string[];
}

/** `GET /api/sessions?cursor=<nextCursor of the page before>`: the newest first. */
export interface SessionList {
  items: (SessionSummary & { title: string })[];
  nextCursor?: string;
}

/** One node of a session's tree. */
export type SnapshotNode = Pick<SnapshotMetadata, 'snapshotId' | 'parentId' | 'createdAt' | 'status'> & {
  preview: Preview;
};

/** `GET /api/snapshots?sessionId=<sessionId>`: the oldest first. */
export interface SnapshotList {
  items: SnapshotNode[];
}

/** The first event of `GET /api/events`. */
export interface ServerHello {
  model: { kind: 'gemini' | 'ollama' | 'offline'; label: string; note?: string };
}
