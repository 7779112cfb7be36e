import type { ActionContext } from 'genkit';
import type { Registry } from 'genkit/registry';
import { invalidArgument, logWarning, quote } from '../../errors.ts';
import { isTerminal } from '../../snapshot/status.ts';
import type { PageOptions, SessionSummary } from '../../store/contract.ts';
import { checkOptions, isFunction, isObject, isWhole } from '../../store/check-options.ts';
import { lastCompleted } from '../../session/log/last-completed.ts';
import { itemsOf } from '../../store/list/items-of.ts';
import type { ContextWindow, WindowedAgent } from '../types.ts';
import { parseChain } from './record.ts';
import { readChainRecord } from './session-compactions.ts';

/** Options of {@link compactIdle}. */
export interface CompactIdleOptions {
  /** Summarizes sessions whose last write is at least this long ago, in ms. Default: 900,000 (15 minutes). */
  idleMs?: number;
  /**
   * Looks only at sessions that were written within this time, in ms. Use more than the scheduler's interval. Default: 86,400,000 (a day).
   */
  withinMs?: number;
  /** The context for the store: names the tenant. Its members replace those of the registry's context. Default: the registry's. */
  context?: ActionContext;
  /** Called after each session that was looked at. */
  onProgress?: (progress: CompactIdleResult) => void;
}

/** The counts of {@link compactIdle}. */
export interface CompactIdleResult {
  /** Idle sessions that were looked at. */
  sessions: number;
  /** Sessions that got a summary. */
  compacted: number;
  /** Sessions that could not be read or summarized; the log says why. A later call tries them again. */
  failed: number;
}

const DEFAULT_IDLE_MS = 15 * 60_000;
const DEFAULT_WITHIN_MS = 24 * 60 * 60_000;

/** A registered symbol, so that the ES module and the CommonJS copy of the package find each other's windows. */
const WINDOWS = Symbol.for('genkitx-agents.context-windows');

interface ServingWindow {
  readonly window: ContextWindow;
  readonly agent: WindowedAgent;
}

type WithWindows = Registry & { [WINDOWS]?: Map<string, ServingWindow> };

/** Notes that the agent uses the window. */
export function noteWindow(window: ContextWindow, agent: WindowedAgent): void {
  const registry: WithWindows = agent.registry;
  if (!registry[WINDOWS]) Object.defineProperty(registry, WINDOWS, { value: new Map(), configurable: true });
  registry[WINDOWS]!.set(agent.name, { window, agent });
}

/**
 * Summarizes the messages of idle sessions that no summary covers yet. A process that keeps running does this by itself (`idleMs` of
 * `summarize`); call this from a scheduler where processes end early, as on Cloud Run.
 *
 * Works for all agents of `ai` that have a window with `summarize`, and a store that lists sessions and keeps session records. Calls at
 * the same time do not summarize the same messages twice.
 *
 * @param ai The `Genkit` instance with the agents.
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type; the store's errors from listing its sessions.
 * @example
 * // Every 15 minutes.
 * const { compacted } = await compactIdle(ai);
 */
export async function compactIdle(
  ai: { readonly registry: Registry },
  options: CompactIdleOptions = {},
): Promise<CompactIdleResult> {
  if (typeof (ai as Partial<typeof ai> | null | undefined)?.registry !== 'object') {
    throw invalidArgument('compactIdle needs the Genkit instance of the agents as its first argument.');
  }
  checkOptions('compactIdle', options, {
    idleMs: isWhole(0),
    withinMs: isWhole(1),
    context: isObject,
    onProgress: isFunction,
  });
  const result: CompactIdleResult = { sessions: 0, compacted: 0, failed: 0 };
  const context = ai.registry.context || options.context ? { ...ai.registry.context, ...options.context } : undefined;
  for (const { window, agent } of (ai.registry as WithWindows)[WINDOWS]?.values() ?? []) {
    for await (const summary of idleSessions(agent, context, options)) {
      result.sessions++;
      try {
        if (await compactOne(window, agent, context, summary)) result.compacted++;
      } catch (error) {
        result.failed++;
        logWarning(`Session ${quote(summary.sessionId)} was not compacted.`, error);
      }
      options.onProgress?.({ ...result });
    }
  }
  return result;
}

/** The agent's idle sessions, the one written last first. */
async function* idleSessions(
  { store, name }: WindowedAgent,
  context: ActionContext | undefined,
  { idleMs = DEFAULT_IDLE_MS, withinMs = DEFAULT_WITHIN_MS }: CompactIdleOptions,
): AsyncGenerator<SessionSummary> {
  const now = Date.now();
  for await (const summary of itemsOf((page: PageOptions) => store.listSessions(page), context ? { context } : {})) {
    const age = now - Date.parse(summary.updatedAt);
    if (age > withinMs) return;
    if (age >= idleMs && (summary.agent ?? name) === name) yield summary;
  }
}

async function compactOne(
  window: ContextWindow,
  { registry, store }: WindowedAgent,
  context: ActionContext | undefined,
  { sessionId, leafId }: SessionSummary,
): Promise<boolean> {
  const of = { sessionId, ...(context && { context }) };
  const [record] = await readChainRecord({ records: store, sessionId, context });
  if (parseChain(record?.value).records.some((summary) => summary.leafId === leafId)) return false;
  const leaf = await store.getSnapshot({ ...of, frozen: true });
  if (!leaf || !isTerminal(leaf.status)) return false;
  const last = await lastCompleted(leaf, sessionId, (snapshotId) =>
    store.getSnapshot({ snapshotId, ...(context && { context }), frozen: true }),
  );
  const messages = last?.state?.messages;
  if (!last || !messages) return false;
  return window.compactSession({ registry, records: store, ...of }, { snapshotId: last.snapshotId, messages });
}
