import type { GenerateMiddleware } from '@genkit-ai/ai';
import type { ActionContext, MessageData, ToolArgument } from 'genkit';
import type { ContextItem, ContextQuery } from '../../context/types.ts';
import type { TurnMemory } from '../../session/turn-memory.ts';
import type { OmissionReason } from '../../snapshot/context-report.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import type { IngestResult } from '../types.ts';

/** Where in a request memories are placed: in the system message, before the earlier turns, or before the message of the current turn. */
export type MemoryPlacement = 'system' | 'before-history' | 'before-prompt';

/** The tools that a model may have of a memory. */
export type MemoryToolName = 'load_memory' | 'create_memory';

/** What is found for each turn, before the model is called. */
export interface PreloadOptions {
  /** Memories at most, 1 to 50. Default: 10. */
  k?: number;
  /** Tokens of the memories at most, and of the profile. Default: 1,000. */
  maxTokens?: number;
  /** How long a turn waits at most, in ms; then it goes on with what is there. Default: 200. */
  deadlineMs?: number;
  /** Only memories with at least this score. Default: all that were found. */
  minScore?: number;
}

/** Options of `memory.attach`. */
export interface AttachOptions {
  /**
   * Whose memories the agent has: those of the user, of the session, of the app. Of several all are searched, and the first is what is learned into.
   * A call without a user has no memories of a user. Default: `user`.
   */
  scope?: MemoryScopeId['scope'] | readonly MemoryScopeId['scope'][];
  /** What is found for each turn. Default: the defaults of its members. */
  preload?: PreloadOptions;
  /** Where in a request it is placed. */
  placement?: {
    /** The structured profile. Default: `system`. `none`: nowhere. */
    profile?: MemoryPlacement | 'none';
    /** Memories that fit the turn. Default: `before-prompt`. `tool`: the model asks for them by `load_memory`. */
    memories?: MemoryPlacement | 'tool';
  };
  /** What the model may do by itself. Default: with `memories: 'tool'` it may load memories, else nothing. */
  tools?: readonly MemoryToolName[];
  /** Whether the agent's sessions are learned from, as `generate` of the manager says. Default: true. */
  learn?: boolean;
  /** Called after each search of a turn. It must not throw. Default: what failed or came too late goes to the log. */
  onReport?: (report: MemoryTurnReport) => void;
}

/** What a turn got of its memory. It holds nothing of what is remembered. */
export interface MemoryTurnReport {
  /** The session; `undefined` outside of one. */
  readonly sessionId: string | undefined;
  /** The memories that were placed, best first, with their revisions. A context window may send fewer. */
  readonly memories: readonly (readonly [id: string, revision: number])[];
  /** Whether a profile was placed. */
  readonly hasProfile: boolean;
  /** Memories that did not fit `maxTokens`. */
  readonly omitted: number;
  /** `deadline`: the store or the embedder was too slow; `failed`: it failed; `section`: not all fitted `maxTokens`. Empty: nothing is missing. */
  readonly reasons: readonly OmissionReason[];
}

/** A session that is over, or is to be learned from now. */
export interface EndedSession {
  /** The session. */
  sessionId: string;
  /** The context that the server authenticated: names the user and the tenant. */
  context?: ActionContext;
  /** Answer when the work is done. Default: false; it goes on in the background. */
  wait?: boolean;
}

/** Options of {@link AttachedMemory.middleware}. */
export interface MemoryMiddlewareOptions {
  /** Names the conversation. Default: the session of the agent that is running. */
  sessionId?: string;
}

/**
 * A memory for agents, made by `memory.attach`: the option `memory` of an agent, or for plain Genkit the `memory` of a context window, or
 * {@link AttachedMemory.middleware}.
 */
export interface AttachedMemory {
  /**
   * The memory tools for one call of a model in a custom agent: `ai.generate({ tools: attached.tools() })`. Other agents have them by
   * themselves.
   */
  tools(): ToolArgument[];

  /**
   * Places memories in the requests of a model call without an agent or in a custom agent: `ai.generate({ messages, prompt, use:
   * [attached.middleware()] })`. The scope is that of the context of the call. Nothing is learned from it.
   */
  middleware(options?: MemoryMiddlewareOptions): ReturnType<GenerateMiddleware>;

  /**
   * Says that a session of an agent with this memory is over, so that it is learned from.
   *
   * @throws `FAILED_PRECONDITION` when no agent with a store has this memory; `NOT_FOUND` when there is no such session.
   */
  endSession(session: EndedSession): Promise<IngestResult>;

  /** How long a context window waits for it, in ms. */
  readonly deadlineMs: number;

  /** Finds memories for a context window: its section `memory`. */
  fetch(query: ContextQuery): Promise<readonly ContextItem[]>;

  /** Begins a turn of an agent. @internal */
  openTurn(turn: MemoryTurnScope): TurnMemory;

  /** Notes an agent with this memory. @internal */
  serve(agent: RememberingAgent): void;

  /** Called after a turn was saved; learns from it when it is time. Never rejects. @internal */
  afterTurn(turn: EndedTurn): Promise<void>;
}

/** Whose turn it is. */
export interface MemoryTurnScope {
  /** The session. Default: there is none. */
  readonly sessionId?: string | undefined;
  /** The caller's context. */
  readonly context?: ActionContext | undefined;
}

/** A turn that was saved. */
export interface EndedTurn extends MemoryTurnScope {
  readonly sessionId: string;
  /** Its snapshot. Default: the session is in no store. */
  readonly snapshotId?: string | undefined;
  /** Where the session is kept; `undefined` without a store that lists sessions with their owners. */
  readonly store: SnapshotStore | undefined;
  /** Whether the session is the caller's own. What others said in it is not learned into the memories of a user. */
  readonly isOwn: boolean;
  /** All messages of the session. */
  readonly messages: readonly MessageData[];
}

/** An agent with a memory. */
export interface RememberingAgent {
  /** Its name. */
  readonly name: string;
  /** The agent's store; `undefined` without one, or if it can't list sessions with their owners. */
  readonly store: SnapshotStore | undefined;
  /** What its store keeps of a text; `undefined` for a store that keeps texts as they are. */
  readonly redact?: ((text: string) => Promise<string>) | undefined;
}
