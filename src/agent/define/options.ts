import type { z } from 'genkit';
import type { PromptConfig } from 'genkit/beta';
import { invalidArgument } from '../../errors.ts';
import {
  checkOptions,
  isAny,
  isBoolean,
  isFunction,
  isObject,
  isOneOf,
  isString,
  isTimerMs,
  type OptionCheck,
} from '../../store/check-options.ts';
import { isWindow } from '../generate/turn-window.ts';
import type { RuntimeDefaults } from './runtime-defaults.ts';
import type { AgentConfig, AgentStateOptions, CustomAgentConfig, PromptAgentConfig } from '../types.ts';

/** Accepts any object with the two methods that every store has. */
const isStore: OptionCheck = (value) => {
  const { getSnapshot, saveSnapshot } = (value ?? {}) as { [name: string]: unknown };
  const isOne = typeof getSnapshot === 'function' && typeof saveSnapshot === 'function';
  return isOne ? undefined : 'a session store, with getSnapshot and saveSnapshot';
};

const isSchema: OptionCheck = (value) => {
  const { safeParseAsync, _def } = (value ?? {}) as { [name: string]: unknown };
  return typeof safeParseAsync === 'function' && _def !== undefined ? undefined : "a Zod schema, made with genkit's z";
};

const isTransform: OptionCheck = (value) => {
  const { state, chunk } = (value ?? {}) as { [name: string]: unknown };
  const isOne = [state, chunk].every((member) => member === undefined || isFunction(member) === undefined);
  return typeof value === 'object' && value !== null && isOne
    ? undefined
    : "an object with functions 'state' and 'chunk'";
};

const isTurnOverrides: OptionCheck = (value) => {
  checkOptions('turnOverrides', value as object, { models: isAny, config: isBoolean });
  return undefined;
};

const isScopes: OptionCheck = (value) => {
  checkOptions('scopes', value as object, { user: isSchema, app: isSchema });
  return undefined;
};

const isContextWindow: OptionCheck = (value) => (isWindow(value) ? undefined : 'made by contextWindow');

const isMemory: OptionCheck = (value) =>
  typeof (value as { openTurn?: unknown } | null)?.openTurn === 'function' ? undefined : 'made by memory.attach';

/** Options of each agent that also have a default for all agents. */
export const RUNTIME_OPTIONS: Record<keyof RuntimeDefaults, OptionCheck> = {
  store: isStore,
  background: isObject,
  onConflict: isOneOf('reject', 'queue', 'branch'),
  storeTimeoutMs: isTimerMs(1),
  appName: isString,
  userId: isFunction,
};

/** Options without a check here are checked when the agent is defined. */
const STATE_OPTIONS: Record<keyof AgentStateOptions, OptionCheck> = {
  ...RUNTIME_OPTIONS,
  stateSchema: isSchema,
  state: isOneOf('client'),
  clientTransform: isTransform,
  onAbort: isOneOf('discard', 'keep'),
  signState: isAny,
  clientResources: isBoolean,
  shareSessions: isBoolean,
  traceState: isBoolean,
  scopes: isScopes,
  limits: isObject,
  outputKey: isString,
  memory: isMemory,
};

const PROMPT_AGENT_OPTIONS = { ...STATE_OPTIONS, promptInput: isAny, turnOverrides: isTurnOverrides };

/** Only the names are checked; Genkit checks the prompt's values. */
const PROMPT_OPTIONS: Record<keyof PromptConfig, OptionCheck> = {
  name: isString,
  variant: isAny,
  model: isAny,
  config: isAny,
  description: isAny,
  input: isAny,
  system: isAny,
  prompt: isAny,
  messages: isAny,
  docs: isAny,
  output: isAny,
  maxTurns: isAny,
  returnToolRequests: isAny,
  metadata: isAny,
  tools: isAny,
  toolChoice: isAny,
  use: isAny,
  context: isAny,
};

const OPTIONS = {
  defineAgent: { ...PROMPT_AGENT_OPTIONS, ...PROMPT_OPTIONS } satisfies Record<keyof AgentConfig, OptionCheck>,
  definePromptAgent: {
    ...PROMPT_AGENT_OPTIONS,
    context: isContextWindow,
    promptName: isString,
    description: isString,
  } satisfies Record<keyof PromptAgentConfig, OptionCheck>,
  defineCustomAgent: { ...STATE_OPTIONS, name: isString, description: isString } satisfies Record<
    keyof CustomAgentConfig,
    OptionCheck
  >,
};

/**
 * Refuses options that an agent of this kind does not have.
 *
 * @throws `INVALID_ARGUMENT`
 */
export function assertConfig(definer: keyof typeof OPTIONS, config: unknown): void {
  if (typeof config !== 'object' || config === null) throw invalidArgument(`${definer} needs a configuration.`);
  checkOptions(definer, config, OPTIONS[definer]);
}

/** The prompt's own part of the configuration of `defineAgent`. */
export function promptConfigOf<I extends z.ZodTypeAny>(config: PromptConfig<I>): PromptConfig<I> {
  const own = Object.entries(config).filter(
    ([name, value]) => !Object.hasOwn(PROMPT_AGENT_OPTIONS, name) && !(name === 'context' && isWindow(value)),
  );
  const { system, ...rest } = Object.fromEntries(own) as unknown as PromptConfig<I>;
  // A text without template syntax is equivalent to a part, which needs no rendering in each turn.
  return { ...rest, ...(system !== undefined && { system: isLiteral(system) ? [{ text: system }] : system }) };
}

/** Characters that a template engine may take for an expression, an escape, a marker, front matter, or the end. */
const TEMPLATE_MARKS = ['{', '\\', '<', '---', '\0'];

/** Whether a template engine would return the text unchanged. */
function isLiteral(template: unknown): template is string {
  if (typeof template !== 'string' || template.trim() === '') return false;
  return !TEMPLATE_MARKS.some((mark) => template.includes(mark));
}
