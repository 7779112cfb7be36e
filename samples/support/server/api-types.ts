/** The data that the page gets from the server besides the agents. Only types, used by both. */
import type { ContextReport, ModelUsage, SessionSummary, SnapshotMetadata } from 'genkitx-agents';

/** A preview of the turn that a snapshot ends. */
export interface Preview {
  /** The conversation's first message. */
  title: string;
  /** The customer's message. */
  asked: string;
  /** Names of the tools that the turn used. */
  tools: string[];
  /** The number of the customer's messages so far: 0 in the snapshot that begins a conversation. */
  turn: number;
  /** A question waits for an answer. */
  isWaiting: boolean;
}

export type SessionItem = SessionSummary & { title: string; isWaiting: boolean };

/** `GET api/sessions?cursor=<nextCursor of the previous page>`: the newest first. */
export interface SessionList {
  items: SessionItem[];
  nextCursor?: string;
}

/** `POST api/sessions` with `{ sessionId }`: the snapshot that the first turn continues from. */
export interface BegunSession {
  snapshotId: string;
}

/** One node of a session's tree. */
export type SnapshotNode = Pick<SnapshotMetadata, 'snapshotId' | 'parentId' | 'createdAt' | 'status'> & {
  preview: Preview;
  /** The usage of the turn's model calls. */
  usage?: ModelUsage;
};

/** `GET api/snapshots?sessionId=<sessionId>`: the oldest first. */
export interface SnapshotList {
  items: SnapshotNode[];
}

/** `GET api/context?snapshotId=<snapshotId>`: what the model saw in the turn that the snapshot ends. */
export interface SeenContext {
  /** Optional: missing for example if the turn was stopped before the model was called. */
  report?: ContextReport;
  /** The summary that the model got. Optional: missing if it got none, or if the summary was removed. */
  summary?: {
    text: string;
    /** The model that wrote it; `custom` for a function. */
    model: string;
    createdAt: string;
  };
}

/** How a caller signs in: `GET api/sign-in`, which every caller may request. */
export type SignIn =
  | { kind: 'none' }
  /** With an API key. */
  | { kind: 'key' }
  /** With Firebase Authentication, in the project with this web API key. */
  | { kind: 'firebase'; apiKey: string };

/** The first event of `GET api/events`. */
export interface ServerHello {
  type: 'hello';
  model: { kind: 'gemini' | 'ollama' | 'offline'; label: string; note?: string };
  /** The e-mail address of the signed-in user. */
  customer?: string;
  /** Whether the store keeps titles of sessions. */
  canRename: boolean;
}

/** Each later event: a snapshot of this session was saved. */
export interface SessionChanged {
  type: 'saved';
  sessionId: string;
}

export type ServerEvent = ServerHello | SessionChanged;
