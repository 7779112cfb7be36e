import type { ActionContext, GenerateRequest, GenerateResponseData, MessageData } from 'genkit';
import type { ContextWindow, TurnWindow } from '../../context/types.ts';
import { invalidArgument } from '../../errors.ts';
import { takeCompactionRequest, warnNotCompacted } from '../../session/compaction-request.ts';
import { noteRunningWindow, takeRunningWindows } from '../../session/running-window.ts';
import type { TurnOutcome } from '../../session/turn.ts';
import type { TurnMemory } from '../../session/turn-memory.ts';
import { viewOf, type Session } from '../../session/session.ts';
import { noteContext } from '../../session/usage.ts';
import { listedStore, recordsOf, type AgentDefinition } from '../agent-definition.ts';
import { registerRun } from '../hand-over.ts';
import type { Prefetched } from './prefetch.ts';
import type { PlacedHistory } from './prompt-history.ts';

/** The turn for which a window is opened. */
interface Turn {
  /** The snapshot that it continues from. */
  readonly leafId: string | undefined;
  readonly context: ActionContext | undefined;
  /** The agent's memory in this turn. Default: none. */
  readonly memory?: TurnMemory | undefined;
  /** The summaries that are being read together with the session. Default: they are read when they are needed. */
  readonly prefetched?: Prefetched['summaries'];
}

export type OpenWindow = <State>(session: Session<State>, turn: Turn) => TurnWindow;

/** Whether the option `context` holds a window of this package. It may also hold a context of Genkit. */
export function isWindow(value: unknown): value is ContextWindow {
  return typeof (value as Partial<ContextWindow> | null | undefined)?.openTurn === 'function';
}

/** The definition of an agent with a prompt. Has a context window if `context` is one. */
export function promptAgent<State>(settled: AgentDefinition<State>, context: unknown): AgentDefinition<State> {
  const agent = { ...settled, isPromptAgent: true };
  if (!isWindow(context)) {
    assertNoWindow(agent.name, context);
    return agent;
  }
  const records = recordsOf(agent);
  if (records && agent.can.list) context.serve({ registry: agent.registry, name: agent.name, store: records });
  return { ...agent, window: context };
}

/**
 * Refuses a function, strategies, or the options of a window, in place of a window: Genkit would silently accept them as the prompt's context.
 */
function assertNoWindow(name: string, context: unknown): void {
  const { history, maxTokens } = (context ?? {}) as { history?: unknown; maxTokens?: unknown };
  const isOptions =
    typeof maxTokens === 'number' ||
    (Array.isArray(history) && history.some((strategy) => typeof strategy === 'function'));
  if (typeof context !== 'function' && !Array.isArray(context) && !isOptions) return;
  throw invalidArgument(
    `Agent '${name}': context is not a context window. Write context: contextWindow({ history: [...] }).`,
  );
}

/** Returns the function that opens the agent's window for a turn; `undefined` for an agent without one. */
export function windowOpener<State>(agent: AgentDefinition<State>): OpenWindow | undefined {
  const { registry, window: context } = agent;
  if (!context) return undefined;
  const records = recordsOf(agent);
  return (session, turn) => {
    const { sessionId } = session;
    const artifacts = () => viewOf(session).artifacts;
    const window = context.openTurn({ registry, sessionId, records, artifacts, ...turn });
    noteRunningWindow(session, context, window);
    return window;
  };
}

interface ModelCall {
  readonly request: GenerateRequest;
  readonly placed: PlacedHistory;
  readonly model: string | undefined;
  readonly abortSignal: AbortSignal | undefined;
  readonly next: (request: GenerateRequest) => Promise<GenerateResponseData>;
}

/** Makes a model call through the window, and notes its report for the turn's snapshot. */
export async function callWithin<State>(
  window: TurnWindow,
  session: Session<State>,
  { request, placed, ...call }: ModelCall,
): Promise<GenerateResponseData> {
  try {
    return await window.call({ request, origins: placed.originsOf(request.messages), ...call });
  } finally {
    noteContext(session, window);
  }
}

/** A turn that has ended. */
interface SavedTurn {
  readonly outcome: TurnOutcome;
  readonly messages: readonly MessageData[];
  readonly context: ActionContext | undefined;
  /** The session belongs to the caller, or the store records no owners. */
  readonly isOwn: boolean;
}

/**
 * Called after a turn was saved, with the messages as they are stored. Starts the window's and the memory's work after the reply.
 * `handOverRuns` waits for this work as it waits for runs.
 */
export function afterTurn<State>(
  agent: AgentDefinition<State>,
  session: Session<State>,
  { outcome, ...turn }: SavedTurn,
): void {
  const { registry, memory } = agent;
  const windows = takeRunningWindows(session);
  const isForced = takeCompactionRequest(session);
  if (outcome.status !== 'completed') return;
  if (windows.length === 0 && isForced) warnNotCompacted(session.sessionId);
  if (windows.length === 0 && !memory) return;
  const { snapshotId } = outcome;
  const { sessionId } = session;
  const work = [
    ...windows.map((window) => window.afterTurn({ snapshotId, messages: turn.messages, isForced })),
    memory?.afterTurn({ ...turn, snapshotId, sessionId, store: listedStore(agent) }),
  ].filter((each) => each !== undefined);
  if (work.length === 0) return;
  let release: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const handOver = async () => {
    release();
    return false;
  };
  registerRun(registry, { ended: Promise.race([Promise.all(work), released]), handOver });
}
