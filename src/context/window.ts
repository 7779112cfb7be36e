import { generate } from '@genkit-ai/ai';
import type { MessageData } from 'genkit';
import { invalidArgument } from '../errors.ts';
import {
  checkOptions,
  isBoolean,
  isFunction,
  isListOf,
  isObject,
  isRecordStore,
  isWhole,
  type OptionCheck,
} from '../store/check-options.ts';
import { noteWindow } from './compaction/compact-idle.ts';
import { keptTurnsOf } from './history/session-memories.ts';
import { Compactions } from './compaction/compactions.ts';
import { LocalRecords } from './compaction/local-records.ts';
import type { SessionCompactionsOptions } from './compaction/session-compactions.ts';
import { compactionOf } from './compaction/summarize.ts';
import { WindowTurn, type WindowSetting } from './call/window-turn.ts';
import { windowMiddleware } from './call/middleware.ts';
import { Calibration } from './tokens/calibration.ts';
import { TokenCounter } from './tokens/counter.ts';
import { estimateTokens } from '../session/log/estimate-tokens.ts';
import type { ContextWindow, ContextWindowOptions, FlexibleSection, WindowScope } from './types.ts';

const FLEXIBLE: readonly FlexibleSection[] = ['examples', 'summary', 'history', 'artifacts', 'memory', 'knowledge'];

const isSource: OptionCheck = (value) =>
  typeof (value as { fetch?: unknown } | null)?.fetch === 'function'
    ? undefined
    : 'made by fewShot, knowledge or memory.attach';

const CHECKS: Readonly<Record<keyof ContextWindowOptions, OptionCheck>> = {
  maxTokens: isWhole(1),
  history: isListOf(isFunction, 'history strategies'),
  examples: isSource,
  knowledge: isSource,
  memory: isSource,
  artifacts: isBoolean,
  sections: isObject,
  countTokens: isFunction,
  records: isRecordStore,
  onReport: isFunction,
};

/**
 * Assembles the requests to a model within a budget. The session keeps every message; only the requests get shorter. Pass the window to an
 * agent as its `context`, or use it with plain Genkit by its `middleware`.
 *
 * @throws `INVALID_ARGUMENT` for an option that is unknown or of the wrong type. A turn that can't fit fails with
 *   {@link ContextOverflowError} before the model is called.
 * @example
 * const window = contextWindow({
 *   maxTokens: 8_000,
 *   history: [clearToolOutputs({ keepTurns: 3 }), lastTurns(20), tokenBudget(4_000)],
 * });
 * const support = defineAgent(ai, { name: 'support', model: 'googleai/gemini-2.5-flash', context: window });
 */
export function contextWindow(options: ContextWindowOptions = {}): ContextWindow {
  const setting = settle(options);
  const own = (scope: WindowScope) => ({ ...scope, records: options.records ?? scope.records });
  const window: ContextWindow = {
    middleware: (use) => windowMiddleware(setting, { records: options.records, ...use }),
    settled: () => setting.settled(),
    serve: (agent) => noteWindow(window, agent),
    compactSession: (scope, session) => compactSession(setting, own(scope), session),
    prefetch: (scope) => setting.prefetch({ ...scope, records: options.records ?? scope.records }),
    openTurn: (scope) => new WindowTurn(setting, own(scope)),
  };
  return window;
}

async function compactSession(
  { compaction, compactionsOf }: WindowSetting,
  scope: WindowScope,
  { snapshotId, messages }: Parameters<ContextWindow['compactSession']>[1],
): Promise<boolean> {
  const compactions = compactionsOf(scope);
  if (!compaction || !compactions) return false;
  await compactions.load(snapshotId);
  const summarizer = compaction.summarizer({ generate: (options) => generate(scope.registry, options) });
  return compactions.compact({ messages, snapshotId, summarizer });
}

function settle(options: ContextWindowOptions): WindowSetting {
  checkOptions('contextWindow', options, CHECKS);
  const { history: strategies = [], sections: limits = {}, countTokens = estimateTokens } = options;
  for (const [name, limit] of Object.entries(limits)) {
    if (!FLEXIBLE.includes(name as FlexibleSection)) {
      throw invalidArgument(
        `contextWindow: section '${name}' can't be limited. Those that can: ${FLEXIBLE.join(', ')}.`,
      );
    }
    checkOptions(`contextWindow: sections.${name}`, limit, { maxTokens: isWhole(0), rank: isWhole(0) });
  }
  const counter = new TokenCounter(countTokens);
  const compaction = compactionOf(strategies);
  const compactions = new Compactions();
  const local = new LocalRecords();
  const sessionOf = ({
    sessionId,
    context,
    records = local,
  }: Parameters<ContextWindow['prefetch']>[0]): SessionCompactionsOptions | undefined =>
    compaction && sessionId !== undefined
      ? {
          sessionId,
          context,
          records,
          plan: compaction.plan,
          countTokens: (message: MessageData) => counter.message(message),
          countText: (text) => counter.text(text),
        }
      : undefined;
  return {
    maxTokens: options.maxTokens,
    strategies,
    limits,
    sources: { examples: options.examples, memory: options.memory, knowledge: options.knowledge },
    hasArtifacts: options.artifacts ?? false,
    keptTurns: keptTurnsOf(strategies),
    counter,
    calibration: new Calibration(),
    compaction,
    compactionsOf: (scope) => {
      const session = sessionOf(scope);
      return session && compactions.of(session);
    },
    prefetch: (scope) => {
      const session = sessionOf(scope);
      return session && compactions.prefetch(session);
    },
    settled: () => compactions.settled(),
    onReport: options.onReport,
  };
}
