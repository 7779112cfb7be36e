import type { GenerateMiddleware } from '@genkit-ai/ai';
import type { ActionContext, MessageData, ToolArgument } from 'genkit';
import type { ContextItem, ContextQuery } from '../../context/types.ts';
import type { StartedSearch, TurnMemory } from '../../session/turn-memory.ts';
import type { OmissionReason } from '../../snapshot/context-report.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import type { IngestResult } from '../types.ts';

/** Where in a request memories are placed: in the system message, before the earlier turns, or before the message of the current turn. */
export type MemoryPlacement = 'system' | 'before-history' | 'before-prompt';

/** The memory tools for a model. */
export type MemoryToolName = 'load_memory' | 'create_memory' | 'forget_memory';

/** The search before the first model call of a turn. */
export interface PreloadOptions {
  /** The most memories, 1 to 50. Default: 10. */
  k?: number;
  /**
   * The most tokens of the memories, and again of the profiles. A memory that does not fit is left out, and shorter ones after it
   * are placed. Default: 1,000.
   */
  maxTokens?: number;
  /** How long a turn waits, in ms; then it continues with the memories found so far. Default: 200. */
  deadlineMs?: number;
  /** Only memories with at least this score. Default: all that were found. */
  minScore?: number;
}

/** Options of `memory.attach`. */
export interface AttachOptions {
  /**
   * The kinds of scope whose memories the agent has: those of the user, the session, or the app. Of several, all are searched; new memories go to the first.
   * A call without a user has no memories of a user. Default: `user`.
   */
  scope?: MemoryScopeId['scope'] | readonly MemoryScopeId['scope'][];
  /** Limits of the search for each turn. Default: the defaults of its members. */
  preload?: PreloadOptions;
  /** Where the found data is placed in a request. */
  placement?: {
    /** The structured profile. Default: `system`. `none`: nowhere. */
    profile?: MemoryPlacement | 'none';
    /** Memories that fit the turn. Default: `before-prompt`. `tool`: the model asks for them by `load_memory`. */
    memories?: MemoryPlacement | 'tool';
  };
  /** The model's memory tools. Default: `load_memory` with `placement.memories: 'tool'`, else none. */
  tools?: readonly MemoryToolName[];
  /** Whether the agent's sessions are learned from, as `generate` of the manager says. Default: true. */
  learn?: boolean;
  /** Called after the search of each turn. Its errors are logged. Default: a search that is too slow is logged. Failures always are. */
  onReport?: (report: MemoryTurnReport) => void;
}

/** What was placed in a turn, without the texts of memories. */
export interface MemoryTurnReport {
  /** The session; `undefined` outside of one. */
  readonly sessionId: string | undefined;
  /** The memories that were placed, best first, with their revisions. A context window may send fewer. */
  readonly memories: readonly (readonly [id: string, revision: number])[];
  /** Whether a profile was placed. */
  readonly hasProfile: boolean;
  /** Memories and profiles that did not fit `maxTokens`. */
  readonly omitted: number;
  /** `deadline`: the store or the embedder was too slow; `failed`: it failed; `section`: `maxTokens` was too small. Empty: all is there. */
  readonly reasons: readonly OmissionReason[];
}

/** A session that has ended, or should be learned from now. */
export interface EndedSession {
  /** The session. */
  sessionId: string;
  /** The context that the server authenticated: names the user and the tenant. */
  context?: ActionContext;
  /** Resolve when the work is done. Default: false; the work continues in the background. */
  wait?: boolean;
}

/**
 * A memory for agents, made by `memory.attach`: the option `memory` of an agent, or for plain Genkit the `memory` of a context window, or
 * {@link AttachedMemory.middleware}.
 */
export interface AttachedMemory {
  /**
   * The memory tools for one model call in a custom agent: `ai.generate({ tools: attached.tools() })`. Other agents get them automatically.
   * `forget_memory` refuses here, because it is unknown whether the user alone asked, or a tool has answered since.
   */
  tools(): ToolArgument[];

  /**
   * Places memories in the requests of a model call without an agent or in a custom agent: `ai.generate({ messages, prompt, use:
   * [attached.middleware()] })`. The scope comes from the context of the call. The call is not learned from.
   */
  middleware(): ReturnType<GenerateMiddleware>;

  /**
   * Learns from a session of an agent with this memory, because the session has ended.
   *
   * @throws `FAILED_PRECONDITION` when no agent with a store has this memory; `NOT_FOUND` when there is no such session.
   */
  endSession(session: EndedSession): Promise<IngestResult>;

  /** How long a context window waits for {@link AttachedMemory.fetch}, in ms. */
  readonly deadlineMs: number;

  /** Finds memories for a context window: its section `memory`. */
  fetch(query: ContextQuery): Promise<readonly ContextItem[]>;

  /**
   * Begins the search for a turn whose session is being read. Returns `undefined` if the search needs a session that is not known yet.
   * @internal
   */
  prefetch(
    turn: MemoryTurnScope & { readonly text: string; readonly abortSignal: AbortSignal },
  ): StartedSearch | undefined;

  /** Begins a turn of an agent. @internal */
  openTurn(turn: OpenedTurn): TurnMemory;

  /** Notes an agent with this memory. @internal */
  serve(agent: RememberingAgent): void;

  /** Called after a turn was saved. Returns the learning if a trigger fires; it never rejects. @internal */
  afterTurn(turn: EndedTurn): Promise<void> | undefined;
}

/** The session and the caller of a turn. */
export interface MemoryTurnScope {
  /** The session; `undefined`: there is none. */
  readonly sessionId?: string | undefined;
  /** The caller's context; `undefined`: there is none. */
  readonly context?: ActionContext | undefined;
}

/** A turn that begins. */
export interface OpenedTurn extends MemoryTurnScope {
  /** Its future snapshot; `undefined`: the agent has no store. */
  readonly snapshotId?: string | undefined;
  /** The search that began while the session was read. */
  readonly started?: Promise<StartedSearch | undefined> | undefined;
}

/** A turn that was saved. */
export interface EndedTurn extends MemoryTurnScope {
  readonly sessionId: string;
  /** Its snapshot; `undefined`: the session is in no store. */
  readonly snapshotId?: string | undefined;
  /** Where the session is kept; `undefined` without a store that lists sessions with their owners. */
  readonly store: SnapshotStore | undefined;
  /** Whether the session is the caller's own. The memories of a user do not learn from other users' sessions. */
  readonly isOwn: boolean;
  /** All messages of the session. */
  readonly messages: readonly MessageData[];
}

/** An agent with a memory. */
export interface RememberingAgent {
  /** Its name. */
  readonly name: string;
  /** Whether it has a `userId` of its own, or from `agentRuntime`. */
  readonly hasUserId: boolean;
  /** The agent's store; `undefined` without one, or if it can't list sessions with their owners. */
  readonly store: SnapshotStore | undefined;
  /** Redacts a text as its store does; `undefined` for a store that keeps texts as they are. */
  readonly redact?: ((text: string) => Promise<string>) | undefined;
}
