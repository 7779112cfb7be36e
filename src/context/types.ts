import type { GenerateMiddleware } from '@genkit-ai/ai';
import type { ActionContext, GenerateRequest, GenerateResponseData, GenerationUsage, MessageData } from 'genkit';
import type { Artifact } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import type { ContextReport, Section } from '../snapshot/context-report.ts';
import type { RunningWindow } from '../session/running-window.ts';
import type { TurnMemory } from '../session/turn-memory.ts';
import type { RecordStore, SessionRecord, SnapshotStore } from '../store/contract.ts';

export type {
  ContextReport,
  MessageRange,
  OmissionReason,
  Section,
  SectionReport,
} from '../snapshot/context-report.ts';

/** A section that shrinks when the window is full. The others are sent whole. */
export type FlexibleSection = Exclude<Section, 'instructions' | 'tools' | 'prompt'>;

/** Limits of a section. */
export interface SectionOptions {
  /** The most tokens of the section. Default: only the window's `maxTokens` counts. */
  maxTokens?: number;
  /**
   * When the window is full, the section with the lowest rank shrinks first. Default: `examples` 1, `artifacts` 2, `knowledge` 3,
   * `memory` 4, `history` 5, `summary` 6.
   */
  rank?: number;
}

/** A message of the session and its position. */
export interface HistoryItem {
  /** Index in the session's messages, without those of the prompt. */
  readonly position: number;
  /** The message; a strategy may put a changed copy in its place. */
  readonly message: MessageData;
}

/** A summary of the first messages of a session. */
export interface Summary {
  /** The summary itself. */
  readonly text: string;
  /** The position of the first message that it does not cover. */
  readonly to: number;
  /** SHA-256 of the covered messages, in hex. It names the summary. */
  readonly sha256: string;
  /** Estimated tokens of the text. */
  readonly tokens: number;
}

/** The earlier turns as they are sent to the model. The current turn is not part of them. */
export interface History {
  /** In the order of the session. */
  readonly items: readonly HistoryItem[];
  /** Sent before the items, in place of the messages before its `to`. Default: no summary is sent. */
  readonly summary?: Summary;
}

/** Helpers for a strategy. */
export interface StrategyTools {
  /** Estimated tokens of a message. A message is counted once, then remembered. */
  readonly countTokens: (message: MessageData) => number;
  /** The items by turn. A turn begins with a user message; messages before the first one are a turn of their own. */
  readonly turnsOf: (items: readonly HistoryItem[]) => HistoryItem[][];
  /** The newest summary that is ready for this session's messages. Default: there is none. */
  readonly summary?: Summary;
  /** The facts that were learned from the first messages of this session, for {@link sessionMemories}. Default: none. */
  readonly sessionMemories?: Summary;
}

/**
 * Decides which messages of the earlier turns are sent to the model. Strategies run in order, each on the result of the one before. A
 * strategy must be a pure function. It may leave items out, and replace a message by a changed copy. The session keeps all messages.
 *
 * No strategy can separate a tool request from its response: the window adds the missing messages. A turn up to a tool request that waits for
 * the user is sent without being passed to the strategies.
 *
 * @example
 * // Leaves out the answers that are too long to be of use later.
 * const window = contextWindow({
 *   history: [
 *     ({ items, summary }, { countTokens }) => ({
 *       summary,
 *       items: items.filter(({ message }) => message.role !== 'model' || countTokens(message) < 2_000),
 *     }),
 *   ],
 * });
 */
export type HistoryStrategy = (history: History, tools: StrategyTools) => History;

/** One thing that a {@link ContextSource} found. */
export interface ContextItem {
  /** Placed as fenced data. Markers of templates and of roles in it stay text. */
  readonly text: string;
  /** The id of a memory, for the report. Default: none. */
  readonly id?: string;
  /** Its revision, for the report. */
  readonly revision?: number;
}

/** The query to a source. */
export interface ContextQuery {
  /** The text of the current turn's user message. */
  readonly text: string;
  /** The registry in which retrievers and models are looked up. */
  readonly registry: Registry;
  /** The session. Default: the conversation has no id. */
  readonly sessionId?: string | undefined;
  /** The caller's context. */
  readonly context?: ActionContext | undefined;
  /** Fires at the deadline, and when the turn is aborted. */
  readonly abortSignal: AbortSignal;
}

/** Finds something for the turn: examples, documents, memories. Made by {@link fewShot} and {@link knowledge}. */
export interface ContextSource {
  /** Best first. Called once a turn. */
  readonly fetch: (query: ContextQuery) => Promise<readonly ContextItem[]>;
  /** The most tokens of its items. Default: the section's own budget. */
  readonly maxTokens?: number;
  /** The items are the same in each turn, so they are sent before the history. Default: `false`. */
  readonly isFixed?: boolean;
  /** How long a turn waits for the source, in ms; then the turn continues without it. */
  readonly deadlineMs: number;
}

/** Options of {@link contextWindow}. */
export interface ContextWindowOptions {
  /**
   * The most tokens of a request. Default: for known model families the model's input limit less the tokens kept for its output, at least
   * 8,000; for other models 8,000.
   */
  maxTokens?: number;
  /** Decide which earlier messages are sent; applied in order. Default: all that fit `maxTokens`; the oldest turns are left out first. */
  history?: readonly HistoryStrategy[];
  /** Examples: a fixed list, or examples that fit the current turn. See {@link fewShot}. Default: none. */
  examples?: ContextSource;
  /** Documents that fit the current turn. See {@link knowledge}. Default: none. */
  knowledge?: ContextSource;
  /** Memories that fit the current turn: `memory.attach(...)` of `genkitx-agents/memory`. Default: those of the agent's option `memory`. */
  memory?: ContextSource;
  /**
   * Whether the model is sent the names of the session's artifacts, with the `description` in their metadata. Give the agent the tool
   * `readArtifact(ai)`, so that the model can read one. Default: `false`.
   */
  artifacts?: boolean;
  /** Budgets and ranks of sections. */
  sections?: Partial<Record<FlexibleSection, SectionOptions>>;
  /** Estimates the tokens of a text. Reports of the models correct the estimates. Default: the estimate of the package `tokenx`. */
  countTokens?: (text: string) => number;
  /** Where summaries are kept. Default: the store of the agent if it keeps session records, else this process. */
  records?: RecordStore;
  /** Called after each model call. Its errors are logged. Optional. */
  onReport?: (report: ContextReport) => void;
}

/** Options of {@link ContextWindow.middleware}. */
export interface WindowMiddlewareOptions {
  /** Names the conversation. Default: nothing is kept between calls. */
  sessionId?: string;
  /** Where summaries are kept. Default: the window's `records`. */
  records?: RecordStore;
}

/**
 * Assembles the requests to a model within a budget. Never changes the stored session. Made by {@link contextWindow}.
 *
 * A type and no interface, so that it is assignable to the option `context` of a prompt, which also takes Genkit's own context.
 */
export type ContextWindow = {
  /**
   * The window for plain Genkit: `ai.generate({ messages, prompt, use: [window.middleware({ sessionId })] })`. Put it last in `use`, so
   * that it gets the request as the others have changed it.
   */
  middleware(options?: WindowMiddlewareOptions): ReturnType<GenerateMiddleware>;

  /** Resolves when no summary is being made. A program that ends after its last turn awaits it. */
  settled(): Promise<void>;

  /**
   * Begins to read the summaries of a session while the session itself is read. Returns `undefined` if this process knows them or the
   * window makes none. @internal
   */
  prefetch(
    scope: Pick<WindowScope, 'sessionId' | 'records' | 'context'>,
  ): Promise<readonly SessionRecord[]> | undefined;

  /** Begins a turn of an agent. @internal */
  openTurn(scope: WindowScope): TurnWindow;

  /** Notes an agent that uses the window, for {@link compactIdle}. @internal */
  serve(agent: WindowedAgent): void;

  /** Summarizes the messages that no summary of the session covers. Returns whether a summary was made. @internal */
  compactSession(
    scope: WindowScope,
    session: { readonly snapshotId: string; readonly messages: readonly MessageData[] },
  ): Promise<boolean>;
};

/** An agent with a window. */
export interface WindowedAgent {
  /** The registry of the agent. */
  readonly registry: Registry;
  /** The name of the agent. */
  readonly name: string;
  /** Has the capabilities `list` and `records`. */
  readonly store: SnapshotStore & RecordStore;
}

/** The session in which a window works. */
export interface WindowScope {
  /** The registry in which retrievers and models are looked up. */
  readonly registry: Registry;
  /** The session. Default: the conversation has no id, and nothing is kept. */
  readonly sessionId?: string | undefined;
  /** The store of the agent, if it keeps session records. */
  readonly records?: RecordStore | undefined;
  /** The caller's context. */
  readonly context?: ActionContext | undefined;
  /** The artifacts of the session, as they are now. */
  readonly artifacts?: () => readonly Artifact[];
  /** The agent's memory across sessions. Default: the window's `memory`. */
  readonly memory?: TurnMemory | undefined;
  /** The snapshot that the turn continues from. */
  readonly leafId?: string | undefined;
  /** The result of `prefetch`. Default: the summaries are read when they are needed. */
  readonly prefetched?: Promise<readonly SessionRecord[]> | undefined;
}

/** A model call. */
export interface WindowCall {
  /** The request as it would be without the window. */
  readonly request: GenerateRequest;
  /**
   * The session's message behind each message of the request; `undefined` for a message of the prompt. The objects are the same in each
   * turn, so that their token counts and hashes are computed once.
   */
  readonly origins: readonly (MessageData | undefined)[];
  /** Name of the model. */
  readonly model?: string | undefined;
  /** Fires when the turn is aborted. */
  readonly abortSignal?: AbortSignal | undefined;
  /** Calls the model. */
  readonly next: (request: GenerateRequest) => Promise<GenerateResponseData>;
}

/** A window during one turn. It fetches once, for all model calls of the turn. */
export interface TurnWindow extends RunningWindow {
  /** Sends the model a request that fits. @throws ContextOverflowError */
  call(call: WindowCall): Promise<GenerateResponseData>;

  /** The report of the last model call; `undefined` before it. */
  readonly report: ContextReport | undefined;

  /** The usage of the session's summaries, as far as this process knows it. */
  readonly summaryUsage: GenerationUsage | undefined;
}
