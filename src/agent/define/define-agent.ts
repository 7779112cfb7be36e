import { AgentInitSchema, AgentOutputSchema, AgentStreamChunkSchema, definePrompt } from '@genkit-ai/ai';
import { defineBidiAction } from '@genkit-ai/core';
import type { z } from 'genkit';
import { toJsonSchema } from 'genkit/schema';
import { checkNames, type AllNames } from '../../client/check.ts';
import { invalidArgument } from '../../errors.ts';
import { guardTemplates } from '../../session/template-text.ts';
import { changesOf, type ScopeRecord } from '../../store/contract.ts';
import { TurnInputSchema } from '../generate/turn-overrides.ts';
import { assertConfig, promptConfigOf } from './options.ts';
import { resolveAgent } from './resolve-agent.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { assertWritableInit } from '../open/client-input.ts';
import { assertNamesAreFree, keptNames, noteAgent, type DefinedAgent } from '../defined-agents.ts';
import { promptAgentFn, type PromptSettings } from '../generate/call-model.ts';
import { promptAgent, windowOpener } from '../generate/turn-window.ts';
import { inProcessApi } from './in-process.ts';
import { contextFor } from '../registry.ts';
import { keepRecovering } from '../recover/recovery-timer.ts';
import { runAgent } from '../turn/run-agent.ts';
import { readSnapshot } from '../open/read-snapshot.ts';
import { withFailure } from '../save/last-failure.ts';
import { registerSnapshotActions } from './snapshot-actions.ts';
import type { ReadOptions, WaitOptions } from '../../client/types.ts';
import type {
  Agent,
  AgentCallOptions,
  AgentConfig,
  AgentFn,
  CustomAgentConfig,
  GenkitOrRegistry,
  OutputOf,
  PromptAgentConfig,
  WithStateSchema,
} from '../types.ts';

const READ: AllNames<ReadOptions> = { metadataOnly: true };
const WAIT: AllNames<WaitOptions> = { ...READ, abortSignal: true, timeoutMs: true };

/**
 * Defines an agent with a prompt of its own: `config` takes the options of `ai.definePrompt` and those of the agent's state.
 *
 * @throws `INVALID_ARGUMENT` when the configuration contradicts itself.
 * @example
 * const pirate = defineAgent(ai, {
 *   name: 'pirate',
 *   model: 'googleai/gemini-2.5-flash',
 *   system: 'Talk like a pirate.',
 *   store: new InMemorySessionStore(),
 * });
 * const chat = pirate.chat();
 * console.log((await chat.send('Where is my parrot?')).text);
 */
export function defineAgent<State, I extends z.ZodTypeAny = z.ZodTypeAny, O extends z.ZodTypeAny = z.ZodTypeAny>(
  ai: GenkitOrRegistry,
  config: WithStateSchema<State, AgentConfig<NoInfer<State>, I, O>>,
): Agent<State, OutputOf<O>>;
export function defineAgent<
  State = unknown,
  I extends z.ZodTypeAny = z.ZodTypeAny,
  O extends z.ZodTypeAny = z.ZodTypeAny,
>(ai: GenkitOrRegistry, config: AgentConfig<State, I, O>): Agent<State, OutputOf<O>>;
export function defineAgent<State, I extends z.ZodTypeAny, O extends z.ZodTypeAny>(
  ai: GenkitOrRegistry,
  config: AgentConfig<State, I, O>,
): Agent<State, OutputOf<O>> {
  assertConfig('defineAgent', config);
  const { promptInput, turnOverrides } = config;
  const prompt = promptConfigOf(config);
  const agent = promptAgent(resolveAgent<State>(ai, prompt, config), config.context);
  const promptName = prompt.variant ? `${prompt.name}.${prompt.variant}` : prompt.name;
  const promptKey = `/prompt/${promptName}`;
  assertNamesAreFree(agent.registry, [promptKey]);
  definePrompt(agent.registry, prompt);
  const isHistoryOpaque = typeof prompt.messages !== 'function' && typeof prompt.messages !== 'string';
  const settings = { ...promptSettingsOf(agent, { promptInput, turnOverrides }), promptName, isHistoryOpaque };
  return register(agent, promptAgentFn<State>(settings), [promptKey]);
}

function promptSettingsOf<State>(
  agent: AgentDefinition<State>,
  options: Pick<PromptSettings, 'promptInput' | 'turnOverrides'>,
): Omit<PromptSettings, 'promptName'> {
  const { modelRequest } = changesOf(agent.sharedStore);
  const { registry, memory } = agent;
  const isStored = agent.store !== undefined;
  const openWindow = windowOpener(agent);
  return { ...options, registry, isStored, openWindow, memory, ...(modelRequest && { modelRequest }) };
}

/**
 * Defines an agent that uses a prompt defined elsewhere, such as in a `.prompt` file. The agent has the prompt's name.
 *
 * @throws `INVALID_ARGUMENT` when the configuration contradicts itself. A missing prompt fails the turn with `NOT_FOUND`.
 * @example
 * ai.definePrompt({ name: 'pirate', model: 'googleai/gemini-2.5-flash', system: 'Talk like a pirate.' });
 * const pirate = definePromptAgent(ai, { promptName: 'pirate', store: new InMemorySessionStore() });
 */
export function definePromptAgent<State, I extends z.ZodTypeAny = z.ZodTypeAny, O extends z.ZodTypeAny = z.ZodTypeAny>(
  ai: GenkitOrRegistry,
  config: WithStateSchema<State, PromptAgentConfig<NoInfer<State>, I>>,
): Agent<State, OutputOf<O>>;
export function definePromptAgent<
  State = unknown,
  I extends z.ZodTypeAny = z.ZodTypeAny,
  O extends z.ZodTypeAny = z.ZodTypeAny,
>(ai: GenkitOrRegistry, config: PromptAgentConfig<State, I>): Agent<State, OutputOf<O>>;
export function definePromptAgent<State, I extends z.ZodTypeAny, O extends z.ZodTypeAny>(
  ai: GenkitOrRegistry,
  config: PromptAgentConfig<State, I>,
): Agent<State, OutputOf<O>> {
  assertConfig('definePromptAgent', config);
  const { promptName, promptInput, turnOverrides, description } = config;
  const agent = promptAgent(resolveAgent<State>(ai, { name: promptName, description }, config), config.context);
  const settings = { ...promptSettingsOf(agent, { promptInput, turnOverrides }), promptName };
  return register(agent, promptAgentFn<State>(settings));
}

/**
 * Defines an agent whose turns are application code. The function passed to `sess.run` runs once for each input; after it returns, the session
 * is saved.
 *
 * @throws `INVALID_ARGUMENT` when the configuration contradicts itself, or `fn` is not a function.
 * @example
 * const counter = defineCustomAgent(ai, { name: 'counter', stateSchema: z.object({ turns: z.number() }) }, async (sess) => {
 *   await sess.run(async () => {
 *     sess.updateCustom((custom) => ({ turns: (custom?.turns ?? 0) + 1 }));
 *   });
 *   return {};
 * });
 */
export function defineCustomAgent<State, User = ScopeRecord, App = ScopeRecord>(
  ai: GenkitOrRegistry,
  config: WithStateSchema<State, CustomAgentConfig<NoInfer<State>, User, App>>,
  fn: AgentFn<NoInfer<State>, NoInfer<User>, NoInfer<App>>,
): Agent<State>;
export function defineCustomAgent<State = unknown, User = ScopeRecord, App = ScopeRecord>(
  ai: GenkitOrRegistry,
  config: CustomAgentConfig<State, User, App>,
  fn: AgentFn<State, NoInfer<User>, NoInfer<App>>,
): Agent<State>;
export function defineCustomAgent<State, User, App>(
  ai: GenkitOrRegistry,
  config: CustomAgentConfig<State, User, App>,
  fn: AgentFn<State, User, App>,
): Agent<State> {
  assertConfig('defineCustomAgent', config);
  if (typeof fn !== 'function') throw invalidArgument(`Agent '${config.name}' needs a function that runs its turns.`);
  return register(resolveAgent<State>(ai, config, config), fn as AgentFn<State>);
}

/**
 * Registers the agent's actions, and extends the main one with the agent's methods.
 *
 * @param keys Keys of further actions that belong to the agent.
 */
function register<State, Output>(
  agent: AgentDefinition<State>,
  fn: AgentFn<State>,
  keys: readonly string[] = [],
): Agent<State, Output> {
  const { name, description, registry } = agent;
  const action = defineBidiAction(
    registry,
    {
      actionType: 'agent',
      name,
      description,
      inputSchema: TurnInputSchema,
      outputSchema: AgentOutputSchema,
      streamSchema: AgentStreamChunkSchema,
      initSchema: AgentInitSchema,
      metadata: { agent: describeAgent(agent) },
    },
    // Chunks are not yielded, because a consumer that disconnects must not end the turn.
    // oxlint-disable-next-line require-yield
    async function* ({ init, inputStream, sendChunk, abortSignal, context }) {
      assertNamesAreKept();
      return runAgent(agent, fn, { init: init ?? {}, inputs: inputStream, sendChunk, abortSignal, context });
    },
  );
  const assertNamesAreKept = keptNames(registry, [`/agent/${name}`, ...keys]);
  const ambient = inProcessApi<State, Output>(agent, action, undefined);
  const apiOf = (method: string, options?: AgentCallOptions, more?: object) => {
    checkNames(method, options, { context: true, ...more });
    return options?.context ? inProcessApi<State, Output>(agent, action, options.context) : ambient;
  };
  const defined = { agent, fn } as DefinedAgent;
  noteAgent(registry, defined);
  guardTemplates(registry);
  if (agent.background.recover) keepRecovering(defined);
  const run = action.run.bind(action);
  const streamBidi = action.streamBidi.bind(action);
  const surface: Omit<Agent<State, Output>, Exclude<keyof typeof action, 'run' | 'streamBidi'>> = {
    ...registerSnapshotActions(agent),
    run: (input, options) => {
      try {
        assertWritableInit(options?.init);
      } catch (error) {
        return Promise.reject(error);
      }
      return run(input, options);
    },
    streamBidi: (init, options) => {
      assertWritableInit(init);
      return streamBidi(init, options);
    },
    chat: (init, options) => apiOf('chat', options).chat(init),
    loadChat: async (lookup, options) => apiOf('loadChat', options).loadChat(lookup),
    getSnapshot: async (lookup, options) => apiOf('getSnapshot', options, READ).getSnapshot(lookup, options),
    waitForSnapshot: async (snapshotId, options) =>
      apiOf('waitForSnapshot', options, WAIT).waitForSnapshot(snapshotId, options),
    abort: async (snapshotId, options) => apiOf('abort', options).abort(snapshotId),
    getSnapshotData: async ({ context, ...lookup }) =>
      withFailure(agent, await readSnapshot(agent, { ...lookup, context: contextFor(registry, context) })),
  };
  return Object.assign(action, surface);
}

/** The agent metadata in the action that Genkit's tools read. */
function describeAgent<State>({ store, can, stateSchema }: AgentDefinition<State>): Record<string, unknown> {
  return {
    stateManagement: store ? 'server' : 'client',
    abortable: store !== undefined && can.watch,
    ...(stateSchema && { stateSchema: toJsonSchema({ schema: stateSchema }) }),
  };
}
