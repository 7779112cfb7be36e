/**
 * The types of the wire format between an agent and its clients: Genkit's types of the same names, written out, so that a client compiles
 * without Genkit. `test/server/serve/types.test.ts` keeps them assignable to Genkit's, and Genkit's to them.
 */
import type { JsonPatchOperation } from '../json/patch/diff.ts';
import type { ContextReport } from '../snapshot/context-report.ts';

export type {
  ContextReport,
  MessageRange,
  OmissionReason,
  Section,
  SectionReport,
} from '../snapshot/context-report.ts';

/** An image, audio, or a document. */
export interface Media {
  /** Its URL, or a `data:` URL with the content. */
  url: string;
  /** Its MIME type. */
  contentType?: string | undefined;
}

/** The contents that a part can have. */
interface PartContents {
  text: string;
  media: Media;
  toolRequest: {
    /** The tool's name. */
    name: string;
    /** Distinguishes several requests in one message. */
    ref?: string | undefined;
    /** The tool's input. */
    input?: unknown;
    /** The request is still being streamed. */
    partial?: boolean | undefined;
  };
  toolResponse: {
    /** The tool's name. */
    name: string;
    /** The `ref` of the request. */
    ref?: string | undefined;
    /** The tool's output. */
    output?: unknown;
    /** Further output of the tool, for example media. */
    content?: Part[] | undefined;
  };
  reasoning: string;
  resource: {
    /** The resource's URI. */
    uri: string;
  };
}

/** Members that a part can have besides its content. */
interface PartExtras {
  /** Structured data. */
  data?: unknown;
  /** Metadata of the model or of middleware. */
  metadata?: Record<string, unknown> | undefined;
  /** Data of one model provider. */
  custom?: Record<string, unknown> | undefined;
}

type NoContents<Kind extends keyof PartContents> = { [K in Exclude<keyof PartContents, Kind>]?: undefined };

/** One object type with the members of several, so that a value without any of them is refused. */
type Merged<T> = { [K in keyof T]: T[K] };

/** A part with a content of one kind, or of none. */
type PartOf<Kind extends keyof PartContents> = Merged<Pick<PartContents, Kind> & NoContents<Kind> & PartExtras>;

/** A tool request in a message. */
export type ToolRequestPart = PartOf<'toolRequest'>;

/** A tool's answer in a message. */
export type ToolResponsePart = PartOf<'toolResponse'>;

/** A piece of a message: it has a content of one kind, or `data` or `custom` alone. */
export type Part =
  | PartOf<'text'>
  | PartOf<'media'>
  | ToolRequestPart
  | ToolResponsePart
  | PartOf<'reasoning'>
  | PartOf<'resource'>
  | PartOf<never>;

/** A message of a conversation. */
export interface MessageData {
  /** The author's role. */
  role: 'system' | 'user' | 'model' | 'tool';
  /** The content, as parts. */
  content: Part[];
  /** Metadata of the model or of middleware. */
  metadata?: Record<string, unknown> | undefined;
}

/** A result of a turn besides its reply, for example a file. */
export interface Artifact {
  /** Its name; a later artifact of the same name replaces it. */
  name?: string | undefined;
  /** Its content. */
  parts: Part[];
  /** Metadata of the agent. */
  metadata?: Record<string, unknown> | undefined;
}

/** Why a turn ended. */
export type AgentFinishReason =
  | 'stop'
  | 'length'
  | 'blocked'
  | 'interrupted'
  | 'other'
  | 'unknown'
  | 'aborted'
  | 'detached'
  | 'failed';

/** The summed usage of model calls: the numbers of Genkit's `GenerationUsage`. A number that no call reported is missing. */
export type ModelUsage = {
  [
    Name in
      | `${'input' | 'output'}${'Tokens' | 'Characters' | 'Images' | 'Videos' | 'AudioFiles'}`
      | 'totalTokens'
      | 'thoughtsTokens'
      | 'cachedContentTokens'
  ]?: number | undefined;
};

/** The state of a conversation. */
export interface SessionState<State = unknown> {
  /** The session that it belongs to. */
  sessionId?: string;
  /** The messages so far. */
  messages?: MessageData[];
  /** The agent's own state. */
  custom?: State;
  /** The artifacts of the turns. */
  artifacts?: Artifact[];
}

/** A saved state of a conversation. */
export interface SessionSnapshot<State = unknown> {
  /** Its id, which resumes the conversation from here. */
  snapshotId: string;
  /** The session that it belongs to. */
  sessionId?: string;
  /** The snapshot that it continues from. */
  parentId?: string;
  /** The time of its first save, in ISO 8601. */
  createdAt: string;
  /** The time of its last save, in ISO 8601. */
  updatedAt?: string;
  /** The time of the worker's last heartbeat, in ISO 8601. */
  heartbeatAt?: string;
  /** The status of its turn. `expired` is computed on read, never saved: the worker of a pending turn is dead. */
  status?: 'pending' | 'completed' | 'aborted' | 'failed' | 'expired';
  /** Why the turn ended. */
  finishReason?: AgentFinishReason;
  /** The error of a failed turn. */
  error?: AgentOutput['error'];
  /** The summed usage of the turn's model calls. Missing while it runs, when no call reported any, and in snapshots of Genkit's runtime. */
  usage?: ModelUsage;
  /** The usage of the session's summaries until this turn. Missing when they used none. */
  summaryUsage?: ModelUsage;
  /** Counts of the content that the turn's last model call got. Missing for an agent without a `context` window. */
  contextReport?: ContextReport;
  /** The state of the conversation here. */
  state?: SessionState<State>;
}

/** Where a turn continues: one of the three, or a new session. */
export interface AgentInit<State = unknown> {
  /** From this snapshot. */
  snapshotId?: string;
  /** From the latest leaf of this session. */
  sessionId?: string;
  /** From this state, which the caller keeps. For agents without a store. */
  state?: SessionState<State>;
}

/** The input of a turn. */
export interface AgentInput {
  /** The user's message. */
  message?: MessageData | undefined;
  /** Answers to the interrupts of the last message. */
  resume?:
    | {
        /** Answers for the model in place of running the tools. */
        respond?: ToolResponsePart[] | undefined;
        /** Tools that run now. */
        restart?: ToolRequestPart[] | undefined;
      }
    | undefined;
  /** Runs the turn in the background. */
  detach?: boolean | undefined;
}

/** The output of a turn. */
export interface AgentOutput<State = unknown> {
  /** The session of the conversation. */
  sessionId?: string;
  /** The artifacts of the turn. */
  artifacts?: Artifact[];
  /** The reply. */
  message?: MessageData;
  /** The snapshot of the turn; after a failed turn the last completed one. */
  snapshotId?: string;
  /** The state after the turn, if the caller keeps it. */
  state?: SessionState<State>;
  /** Why the turn ended. */
  finishReason?: AgentFinishReason;
  /** The summed usage of the turn's model calls. Missing when none reported any, and for a detached turn. */
  usage?: ModelUsage;
  /** The error of a failed turn. */
  error?: {
    /** The kind of the error, for example `INTERNAL`. */
    status?: string | undefined;
    /** What happened, for a person. */
    message: string;
    /** Further details. */
    details?: unknown;
  };
}

/** One chunk of a turn's stream. */
export interface AgentStreamChunk {
  /** A piece of the model's answer. */
  modelChunk?:
    | {
        /** The author's role. */
        role?: MessageData['role'] | undefined;
        /** The index of its message in the turn, from 0. */
        index?: number | undefined;
        /** The new parts, or all so far with `aggregated`. */
        content: Part[];
        /** Data of one model provider. */
        custom?: unknown;
        /** The content has all parts so far. */
        aggregated?: boolean | undefined;
      }
    | undefined;
  /** An artifact of the turn. */
  artifact?: Artifact | undefined;
  /** A patch of the custom state. */
  customPatch?: JsonPatchOperation[] | undefined;
  /** A turn has ended. */
  turnEnd?:
    | {
        /** The snapshot of the turn. */
        snapshotId?: string | undefined;
        /** Why it ended. */
        finishReason?: AgentFinishReason | undefined;
      }
    | undefined;
}
