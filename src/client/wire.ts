/**
 * What travels between an agent and its clients. These are Genkit's types of the same names, written out: a client compiles where Genkit is not
 * installed. `test/server/types.test.ts` keeps them assignable to Genkit's, and Genkit's to them.
 */
import type { JsonPatchOperation } from '../json/diff.ts';

/** A picture, a sound, a document. */
export interface Media {
  /** Where it is: an address, or a `data:` URL that has it. */
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
    /** Tells apart several requests of one message. */
    ref?: string | undefined;
    /** What the tool is called with. */
    input?: unknown;
    /** The request is still being streamed. */
    partial?: boolean | undefined;
  };
  toolResponse: {
    /** The tool's name. */
    name: string;
    /** The `ref` of the request. */
    ref?: string | undefined;
    /** What the tool answered. */
    output?: unknown;
    /** What the tool answered beside it, say media. */
    content?: Part[] | undefined;
  };
  reasoning: string;
  resource: {
    /** The resource's URI. */
    uri: string;
  };
}

/** What a part can have beside its content. */
interface PartExtras {
  /** Data beside the content. */
  data?: unknown;
  /** What the model or a middleware noted. */
  metadata?: Record<string, unknown> | undefined;
  /** What only one provider knows. */
  custom?: Record<string, unknown> | undefined;
}

type NoContents<Kind extends keyof PartContents> = { [K in Exclude<keyof PartContents, Kind>]?: undefined };

/** The members of several types as those of one, so that a value without any of them is refused. */
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
  /** Who speaks. */
  role: 'system' | 'user' | 'model' | 'tool';
  /** What is said, piece by piece. */
  content: Part[];
  /** What the model or a middleware noted. */
  metadata?: Record<string, unknown> | undefined;
}

/** Something that a turn produced beside its reply, say a file. */
export interface Artifact {
  /** Its name; a later artifact of the same name takes its place. */
  name?: string | undefined;
  /** What it consists of. */
  parts: Part[];
  /** What the agent noted. */
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

/** What model calls used, added up: the numbers of Genkit's `GenerationUsage`. One that no call reported is absent. */
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
  /** What the turns produced beside their replies. */
  artifacts?: Artifact[];
}

/** A saved point of a conversation. */
export interface SessionSnapshot<State = unknown> {
  /** Its id, which resumes the conversation from here. */
  snapshotId: string;
  /** The session that it belongs to. */
  sessionId?: string;
  /** The snapshot that it continues from. */
  parentId?: string;
  /** When it was first saved, by ISO 8601. */
  createdAt: string;
  /** When it was last saved, by ISO 8601. */
  updatedAt?: string;
  /** When the worker of a background run last gave a sign of life, by ISO 8601. */
  heartbeatAt?: string;
  /** How far its turn is. `expired` is read, never saved: the worker of a pending turn is gone. */
  status?: 'pending' | 'completed' | 'aborted' | 'failed' | 'expired';
  /** Why the turn ended. */
  finishReason?: AgentFinishReason;
  /** What a failed turn failed with. */
  error?: AgentOutput['error'];
  /** The sum of what the model calls of the turn used; absent while it runs, and when no call reported any. Genkit's own runtime keeps none. */
  usage?: ModelUsage;
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

/** What a turn is given. */
export interface AgentInput {
  /** What the user says. */
  message?: MessageData | undefined;
  /** Answers to the interrupts of the last message. */
  resume?:
    | {
        /** Tools that do not run: the model is told these answers. */
        respond?: ToolResponsePart[] | undefined;
        /** Tools that run now. */
        restart?: ToolRequestPart[] | undefined;
      }
    | undefined;
  /** Runs the turn in the background. */
  detach?: boolean | undefined;
}

/** What a turn ended with. */
export interface AgentOutput<State = unknown> {
  /** The session of the conversation. */
  sessionId?: string;
  /** What the turn produced beside its reply. */
  artifacts?: Artifact[];
  /** The reply. */
  message?: MessageData;
  /** The snapshot that the turn was saved as; of a failed turn the last good one. */
  snapshotId?: string;
  /** The state after the turn, where the caller keeps it. */
  state?: SessionState<State>;
  /** Why the turn ended. */
  finishReason?: AgentFinishReason;
  /** The sum of what the turn's model calls used; absent when none reported any, and of a turn that was detached. */
  usage?: ModelUsage;
  /** What a failed turn failed with. */
  error?: {
    /** The kind of the error, say `INTERNAL`. */
    status?: string | undefined;
    /** What happened, for a person. */
    message: string;
    /** What more is told of it. */
    details?: unknown;
  };
}

/** One message of a turn's stream. */
export interface AgentStreamChunk {
  /** A piece of the model's answer. */
  modelChunk?:
    | {
        /** Who speaks. */
        role?: MessageData['role'] | undefined;
        /** Which message of the turn it belongs to, counted from 0. */
        index?: number | undefined;
        /** The new parts, or all so far with `aggregated`. */
        content: Part[];
        /** What only one provider knows. */
        custom?: unknown;
        /** The content has all parts so far. */
        aggregated?: boolean | undefined;
      }
    | undefined;
  /** Something that the turn produced beside its reply. */
  artifact?: Artifact | undefined;
  /** How the custom state changed. */
  customPatch?: JsonPatchOperation[] | undefined;
  /** A turn has ended. */
  turnEnd?:
    | {
        /** The snapshot that it was saved as. */
        snapshotId?: string | undefined;
        /** Why it ended. */
        finishReason?: AgentFinishReason | undefined;
      }
    | undefined;
}
