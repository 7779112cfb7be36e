/** What the page gets from the server besides the agents themselves. Types only, shared by both. */
import type { ContextReport, ModelUsage, SessionSummary, SnapshotMetadata } from 'genkitx-agents';

/** What was said in the turn that a snapshot closes. */
export interface Preview {
  /** The conversation's first message. */
  title: string;
  /** The customer's message. */
  asked: string;
  /** Names of the tools that the turn used. */
  tools: string[];
  /** How many messages the customer had sent: 0 in the snapshot that begins a conversation. */
  turn: number;
  /** A question waits for an answer. */
  isWaiting: boolean;
}

export type SessionItem = SessionSummary & { title: string; isWaiting: boolean };

/** `GET api/sessions?cursor=<nextCursor of the page before>`: the newest first. */
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
  /** What the turn's model calls used. */
  usage?: ModelUsage;
};

/** `GET api/snapshots?sessionId=<sessionId>`: the oldest first. */
export interface SnapshotList {
  items: SnapshotNode[];
}

/** `GET api/context?snapshotId=<snapshotId>`: what the model saw in the turn that the snapshot closes. */
export interface SeenContext {
  /** Optional: nothing was kept, say of a turn that was stopped before the model was called. */
  report?: ContextReport;
  /** The summary that the model was sent. Optional: it was sent none, or it is gone. */
  summary?: {
    text: string;
    /** The model that wrote it; `custom` for a function. */
    model: string;
    createdAt: string;
  };
}

/** How a caller becomes known: `GET api/sign-in`, which anybody may ask. */
export type SignIn =
  | { kind: 'none' }
  /** By an API key. */
  | { kind: 'key' }
  /** By Firebase Authentication, of the project with this web API key. */
  | { kind: 'firebase'; apiKey: string };

/** The first event of `GET api/events`. */
export interface ServerHello {
  type: 'hello';
  model: { kind: 'gemini' | 'ollama' | 'offline'; label: string; note?: string };
  /** The e-mail address of who is signed in. */
  customer?: string;
  /** Whether the store keeps a session's title. */
  canRename: boolean;
}

/** Each later event: a snapshot of this session was saved. */
export interface SessionChanged {
  type: 'saved';
  sessionId: string;
}

export type ServerEvent = ServerHello | SessionChanged;
