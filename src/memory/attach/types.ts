import type { GenerateMiddleware } from '@genkit-ai/ai';
import type { ActionContext, MessageData, ToolArgument } from 'genkit';
import type { ContextItem, ContextQuery } from '../../context/types.ts';
import type { StartedSearch, TurnMemory } from '../../session/turn-memory.ts';
import type { OmissionReason } from '../../snapshot/context-report.ts';
import type { MemoryScopeId } from '../../store/memory/contract.ts';
import type { SnapshotStore } from '../../store/contract.ts';
import type { IngestResult } from '../types.ts';

/** The place of memories in a request: in the system message, before the earlier turns, or before the message of the current turn. */
export type MemoryPlacement = 'system' | 'before-history' | 'before-prompt';

/** The memory tools for a model. */
export type MemoryToolName = 'load_memory' | 'create_memory' | 'forget_memory';

/** The search before the first model call of a turn. */
export interface PreloadOptions {
  /** The most memories, 1 to 50. Default: 10. */
  k?: number;
  /**
   * The most tokens of the memories; the profiles have the same limit for themselves. A memory that does not fit is omitted; shorter
   * memories after it are still placed. Default: 1,000.
   */
  maxTokens?: number;
  /** How long a turn waits for the search, in ms; then it continues with the memories found so far. Default: 200. */
  deadlineMs?: number;
  /** Places only memories with at least this score. Default: all that were found. */
  minScore?: number;
}

/** Options of `memory.attach`. */
export interface AttachOptions {
  /**
   * The kinds of scope whose memories the agent uses: `user`, `session` or `app`. If there are several, all are searched, and new memories
   * go to the first. A call without a user has no user memories. Default: `user`.
   */
  scope?: MemoryScopeId['scope'] | readonly MemoryScopeId['scope'][];
  /** Limits of the search for each turn. Default: the defaults of its members. */
  preload?: PreloadOptions;
  /** The place of the found data in a request. */
  placement?: {
    /** The structured profile. Default: `system`. `none`: nowhere. */
    profile?: MemoryPlacement | 'none';
    /** Memories that fit the turn. Default: `before-prompt`. `tool`: the model loads them with `load_memory`. */
    memories?: MemoryPlacement | 'tool';
  };
  /** The memory tools for the model. Default: `load_memory` with `placement.memories: 'tool'`, else none. */
  tools?: readonly MemoryToolName[];
  /** Whether to learn from the agent's sessions, at the times that `generate` of the manager sets. Default: true. */
  learn?: boolean;
  /**
   * Called after the search of each turn. Its errors are logged. Default: a search that is too slow is logged. Failed searches are always
   * logged.
   */
  onReport?: (report: MemoryTurnReport) => void;
}

/** The memories that were placed in a turn, without their texts. */
export interface MemoryTurnReport {
  /** The session; `undefined` for a call without a session. */
  readonly sessionId: string | undefined;
  /** The placed memories, best first, with their revisions. A context window may send fewer. */
  readonly memories: readonly (readonly [id: string, revision: number])[];
  /** Whether a profile was placed. */
  readonly hasProfile: boolean;
  /** The number of memories and profiles that did not fit `maxTokens`. */
  readonly omitted: number;
  /**
   * Why memories are missing. `deadline`: the store or the embedder was too slow; `failed`: it failed; `section`: `maxTokens` was too
   * small. Empty: none are missing.
   */
  readonly reasons: readonly OmissionReason[];
}

/** A session that has ended, or should be learned from now. */
export interface EndedSession {
  /** The session. */
  sessionId: string;
  /** The context that the server authenticated. It names the user and the tenant. */
  context?: ActionContext;
  /** Whether to resolve only when the work is done. Default: false; the work continues in the background. */
  wait?: boolean;
}

/**
 * A memory for agents, made by `memory.attach`: the option `memory` of an agent, or for plain Genkit the `memory` of a context window, or
 * {@link AttachedMemory.middleware}.
 */
export interface AttachedMemory {
  /**
   * Returns the memory tools for one model call in a custom agent: `ai.generate({ tools: attached.tools() })`. Other agents get them
   * automatically. Here `forget_memory` refuses to remove memories, because it can't know whether a tool has answered since the user's
   * message.
   */
  tools(): ToolArgument[];

  /**
   * Returns a middleware that places memories in the requests of a model call without an agent or in a custom agent: `ai.generate({
   * messages, prompt, use: [attached.middleware()] })`. The scope comes from the context of the call. Nothing is learned from the call.
   */
  middleware(): ReturnType<GenerateMiddleware>;

  /**
   * Learns from a session of an agent with this memory. Call it when the session has ended.
   *
   * @throws `FAILED_PRECONDITION` if no agent with a store has this memory; `NOT_FOUND` if the session does not exist.
   */
  endSession(session: EndedSession): Promise<IngestResult>;

  /** How long a context window waits for {@link AttachedMemory.fetch}, in ms. */
  readonly deadlineMs: number;

  /** Finds memories for the section `memory` of a context window. */
  fetch(query: ContextQuery): Promise<readonly ContextItem[]>;

  /**
   * Begins the search for a turn while its session is read. Returns `undefined` if the search needs a session that is not known yet.
   * @internal
   */
  prefetch(
    turn: MemoryTurnScope & { readonly text: string; readonly abortSignal: AbortSignal },
  ): StartedSearch | undefined;

  /** Begins a turn of an agent. @internal */
  openTurn(turn: OpenedTurn): TurnMemory;

  /** Registers an agent with this memory. @internal */
  serve(agent: RememberingAgent): void;

  /** Called after a turn was saved. If a trigger fires, starts to learn and returns the work, which never rejects. @internal */
  afterTurn(turn: EndedTurn): Promise<void> | undefined;
}

/** The session and the caller of a turn. */
export interface MemoryTurnScope {
  /** The session; `undefined` for a call without a session. */
  readonly sessionId?: string | undefined;
  /** The caller's context; `undefined` for a call without a context. */
  readonly context?: ActionContext | undefined;
}

/** A turn that begins. */
export interface OpenedTurn extends MemoryTurnScope {
  /** The id of the snapshot that the turn will save; `undefined`: the agent has no store. */
  readonly snapshotId?: string | undefined;
  /** The search that began while the session was read. */
  readonly started?: Promise<StartedSearch | undefined> | undefined;
}

/** A turn that was saved. */
export interface EndedTurn extends MemoryTurnScope {
  readonly sessionId: string;
  /** The id of the turn's snapshot; `undefined`: the session is not stored. */
  readonly snapshotId?: string | undefined;
  /** The store of the session; `undefined` if the agent has no store, or if the store can't list sessions with their owners. */
  readonly store: SnapshotStore | undefined;
  /** Whether the session belongs to the caller. A user's memories are not learned from other users' sessions. */
  readonly isOwn: boolean;
  /** All messages of the session. */
  readonly messages: readonly MessageData[];
}

/** An agent with a memory. */
export interface RememberingAgent {
  /** Its name. */
  readonly name: string;
  /** Whether the agent has a `userId`, its own or from `agentRuntime`. */
  readonly hasUserId: boolean;
  /** The agent's store; `undefined` without one, or if it can't list sessions with their owners. */
  readonly store: SnapshotStore | undefined;
  /** Redacts a text as its store does; `undefined` for a store that does not redact. */
  readonly redact?: ((text: string) => Promise<string>) | undefined;
}
