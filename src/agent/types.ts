import type { Agent as GenkitAgent, AgentResult, GetSnapshotDataInput } from '@genkit-ai/ai';
import type { ActionContext, z } from 'genkit';
import type { AgentStreamChunk, ClientTransform, PromptConfig, SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import type {
  AgentAPI,
  AgentChat,
  AgentInit,
  AgentSnapshot,
  ReadOptions,
  SessionSnapshot,
  SnapshotLookup,
  SnapshotStatus,
  WaitOptions,
} from '../client/types.ts';
import type { ContextWindow } from '../context/types.ts';
import type { AttachedMemory } from '../memory/attach/types.ts';
import type { SigningKey } from './define/state-signature.ts';
import type { SessionRunner } from '../session/session-runner.ts';
import type { StateLimits } from '../session/state/state-values.ts';
import type { ScopeRecord } from '../store/contract.ts';

/** A `Genkit` instance, or its registry. */
export type GenkitOrRegistry =
  | Registry
  | {
      /** The registry in which it registers its actions. */
      registry: Registry;
    };

/**
 * A Zod schema whose input and output are both `T`. The state is checked but never replaced by the parsed value, so a schema that transforms
 * does not fit. A member with a default may be missing, and its type says so.
 */
export type SchemaOf<T> = z.ZodType<T, z.ZodTypeDef, T>;

/** Options of turns that continue after their caller detached. */
export interface BackgroundOptions {
  /** How often a run writes a heartbeat to the store, in ms. Default: 30,000. */
  heartbeatIntervalMs?: number;
  /**
   * How long after its last heartbeat a run counts as dead, in ms: its snapshot then reads as `expired`, and another process may take over the
   * run. The clocks of the processes must differ by less. Default: 60,000.
   */
  leaseMs?: number;
  /** How often a run whose process died is taken over before it ends as `failed`; 0 means never. Default: 3. */
  maxAttempts?: number;
  /**
   * Whether this process looks for runs to take over: soon after the agent is defined, then once per `leaseMs`. See `recoverRuns` for the runs
   * that it finds. Needs a store that can list its sessions. Default: `false`.
   */
  recover?: boolean;
  /** For a store that separates tenants: the contexts in which to look for runs. Default: one search without a context. */
  recoverContexts?: () => readonly ActionContext[] | Promise<readonly ActionContext[]>;
  /**
   * Selects the part of the caller's context that is stored with a run, readable to every reader of the store, and given to the run when it is
   * taken over. Default: nothing is stored, because contexts carry tokens; the run then gets the context of the process that took it over.
   */
  keepContext?: (context: ActionContext) => ActionContext | undefined;
}

/** How two concurrent turns on one session are handled. */
export type OnConflict = 'reject' | 'queue' | 'branch';

/** Options of an agent's state; the same for every kind of agent. */
export interface AgentStateOptions<State = unknown, User = unknown, App = unknown> {
  /**
   * Schema of the custom state. It is checked when a session is opened and again before a turn is saved: a turn that leaves a state that does
   * not fit fails with `INTERNAL` and is not saved as completed. Its JSON schema is in the action's metadata. Default: nothing is checked.
   */
  stateSchema?: SchemaOf<State>;
  /** The store of the sessions. Default: the `store` given to `agentRuntime`; without that, the callers keep the state. */
  store?: SessionStore<State> | SessionStore;
  /**
   * `'client'`: the agent uses no store, not even the default one; its callers keep the state and send it with each turn. Default: the agent
   * keeps the state when it has a store.
   */
  state?: 'client';
  /**
   * Signs the state that the callers keep with an HMAC under this key, and refuses a state that was changed. An older state is validly signed,
   * so a caller can go back to it. Of several keys the first signs and all are accepted. Default: no signature; a caller can then forge any
   * history, so `resume.restart` is refused. `false`: no signature, and all callers are trusted to send `resume.restart`.
   */
  signState?: SigningKey | readonly SigningKey[] | false;
  /**
   * Whether callers may send messages that refer to resources of the application (parts `{ resource: { uri } }`), by any URI. Default:
   * `false`.
   */
  clientResources?: boolean;
  /**
   * Which callers may read, continue and abort this agent's sessions. `true`: all users, and other agents on the same store. `false`: the user
   * who began the session, by this agent. Default: the user who began it, by any agent on the store; with a `clientTransform` by this agent
   * only, since another agent would show the parts that the transform hides. A session begun without a user is open to all users.
   */
  shareSessions?: boolean;
  /**
   * Selects the part of the state and of the stream that callers may see. An output contains the artifacts and the reply as `state` leaves
   * them: a transform that removes the last message removes the reply. Default: callers see all of it.
   */
  clientTransform?: ClientTransform<State>;
  /**
   * Writes the session's state after each turn into the turn's span, as Genkit does: the Dev UI shows it, and every exporter of traces gets it.
   * Default: `false`, a span holds the turn's input, its finish reason and the id of its snapshot. `temp:` keys are never traced.
   */
  traceState?: boolean;
  /** How long one store call may take with its repeated attempts, in ms, before it fails with `DEADLINE_EXCEEDED`. Default: 10,000. */
  storeTimeoutMs?: number;
  /**
   * How two concurrent turns on one session are handled. `'reject'`: the turn that is saved second fails with `ABORTED`. `'queue'`: within one
   * process the second turn waits for the first; across processes it is rejected. `'branch'`: the session gets two leaves. Default: `'reject'`
   * for a turn that names the session by its `sessionId`, `'branch'` for one that names the `snapshotId` to continue from.
   * `'reject'` and `'queue'` need a store that can compare leaves.
   */
  onConflict?: OnConflict;
  /**
   * How a turn that is aborted before it ends is handled. `'discard'`: it is not saved, and the session does not change.
   * `'keep'`: the prompt, the tool calls and the model's text so far are saved as a snapshot with the status `aborted`, which the output names;
   * the conversation continues from it, and a turn without a message runs it again. Default: `'discard'`.
   */
  onAbort?: 'discard' | 'keep';
  /** Options of detached turns. Needs a store. Default: the defaults of its members. */
  background?: BackgroundOptions;
  /**
   * The app that the agent belongs to. Agents with one `appName` on one store share the `user:` and `app:` keys. Default: the `appName` given to
   * `agentRuntime`, else the agent's own name, so that nothing is shared by accident.
   */
  appName?: string;
  /**
   * Returns the id of the calling user from the context: an id that the caller can't choose, or `undefined` for no user. The user owns the
   * sessions that the call begins, sees the sessions that they own, and has their own `user:` keys. Default: `context.auth.uid`, which servers
   * set after they have verified the caller.
   */
  userId?: UserIdOf;
  /**
   * The shared scopes of the agent's `session.state`, each with a schema of its keys without their prefix. A scope that is named here is read
   * when a turn begins, at the cost of one document. A scope that is not named costs nothing, and its keys are refused.
   * Needs a store that keeps scopes. Default: none.
   *
   * @example
   * const scopes = { user: z.object({ theme: z.enum(['dark', 'light']) }), app: z.object({ discount: z.number() }) };
   * defineAgent(ai, { name: 'booking', store, scopes });
   */
  scopes?: StateScopes<User, App>;
  /** Size limits for the keys and values of `session.state`. Default: the defaults of its members. */
  limits?: StateLimits;
  /**
   * The key of `session.state`, with its prefix if it has one, under which a completed turn stores its answer: the text of the reply, or the
   * parsed output when the agent has an output schema. A turn that failed, was aborted, or waits for the caller stores nothing. When the key
   * refuses an answer, the answer is still delivered and saved: the key keeps its value, and the output has an `error` although the turn did not
   * fail. A `user:` key needs a user: a call without one is refused. With a plain key, the `stateSchema` must accept a custom state that has
   * only that key, unless turns set the others. Default: answers are stored in the messages alone.
   */
  outputKey?: string;
  /**
   * Memory across sessions, made by `memory.attach` of `genkitx-agents/memory`. Memories that fit the turn are placed in the model's requests,
   * not in the session. The agent learns from completed turns in the background. In a custom agent, `attached.middleware()` adds memories to
   * model calls. Default: none.
   */
  memory?: AttachedMemory;
}

/** Returns the id of the user whose `user:` keys a call sees. */
export type UserIdOf = (context: ActionContext) => string | undefined;

/** Schemas of the keys of shared scopes: Zod objects or records. Each key is checked by itself, so a `refine` across several keys does not run. */
export interface StateScopes<User = unknown, App = unknown> {
  /** The schema of the keys `user:...`. Default: such keys are refused. */
  user?: SchemaOf<User>;
  /** The schema of the keys `app:...`. Default: such keys are refused. */
  app?: SchemaOf<App>;
}

/** A configuration whose `stateSchema` determines the state type, so its store may be one for agents of any state. */
export type WithStateSchema<State, Config> = {
  /** Schema of the custom state. */
  stateSchema: SchemaOf<State>;
} & Config;

/** The options that a caller may set for one turn. Over HTTP any caller can use them: do not open options that cost money. */
export interface TurnOverrides {
  /** The models that a turn may name; `true` allows any. Default: none. */
  models?: readonly string[] | true;
  /** Whether a turn may change the model's configuration, such as its temperature. Default: `false`. */
  config?: boolean;
}

/** Configuration of `defineAgent`: the options of a prompt, and those of the agent's state. */
export interface AgentConfig<
  State = unknown,
  I extends z.ZodTypeAny = z.ZodTypeAny,
  O extends z.ZodTypeAny = z.ZodTypeAny,
>
  extends PromptConfig<I, O>, AgentStateOptions<State> {
  /** The agent's name, under which its actions and its prompt are registered. */
  name: string;
  /** Distinguishes prompts of one name; the prompt is registered as `name.variant`. Default: no variant. */
  variant?: string;
  /** The model: a model reference, or its name, such as `'googleai/gemini-2.5-flash'`. Default: the `model` of `genkit()`. */
  model?: NonNullable<PromptConfig<I, O>['model']>;
  /** The model's configuration, such as its temperature. Default: the model's own. */
  config?: PromptConfig<I, O>['config'];
  /** Describes the agent's purpose in its action's metadata, for the Dev UI and other agents. Optional. */
  description?: string;
  /** The schema of the prompt's input variables, as a Zod or a JSON schema. Default: the input is not checked. */
  input?: PromptConfig<I, O>['input'];
  /** The system message: a template, parts, or a function that returns them. Default: none. */
  system?: PromptConfig<I, O>['system'];
  /** A user message that follows the conversation in each request: a template, parts, or a function that returns them. Default: none. */
  prompt?: PromptConfig<I, O>['prompt'];
  /**
   * All messages of a request: a list before the conversation, or a template or function that places the conversation itself (`{{history}}`).
   * Default: the conversation alone.
   */
  messages?: PromptConfig<I, O>['messages'];
  /** Documents that the model gets as context, or a function that returns them. Default: none. */
  docs?: PromptConfig<I, O>['docs'];
  /** The format of the reply, and the schema of `response.data`. Default: text. */
  output?: PromptConfig<I, O>['output'];
  /** How many rounds of tool calls a turn may take before it fails. Default: 5. */
  maxTurns?: number;
  /** Returns the model's tool requests to the caller instead of running the tools. Default: `false`. */
  returnToolRequests?: boolean;
  /** Further metadata of the prompt's action, as JSON. Default: none. */
  metadata?: PromptConfig<I, O>['metadata'];
  /** The tools that the model may call, or their names. Default: none. */
  tools?: PromptConfig<I, O>['tools'];
  /** Whether the model may (`'auto'`), must (`'required'`) or must not (`'none'`) call tools. Default: `'auto'`, if the model supports the choice. */
  toolChoice?: PromptConfig<I, O>['toolChoice'];
  /** Middleware around each model call and each tool. Default: none. */
  use?: PromptConfig<I, O>['use'];
  /** Values of the prompt's input variables. Default: the defaults of the prompt's input. */
  promptInput?: z.infer<I>;
  /** Options that one turn may override: `chat.send('...', { model, config })`. Default: none, such a turn is refused. */
  turnOverrides?: TurnOverrides;
  /**
   * Selects what the model is sent: a window made by `contextWindow` of `genkitx-agents/context`. The session keeps every message.
   * Default: the model is sent the whole conversation. Any other object is the prompt's own context, as `ai.definePrompt` takes it.
   */
  context?: ContextWindow | ActionContext;
}

/** Configuration of `definePromptAgent`. */
export interface PromptAgentConfig<
  State = unknown,
  I extends z.ZodTypeAny = z.ZodTypeAny,
> extends AgentStateOptions<State> {
  /** The name of the agent's prompt, and of the agent itself. The prompt may be defined later, but before the first turn. */
  promptName: string;
  /** Describes the agent's purpose in its action's metadata, for the Dev UI and other agents. Optional. */
  description?: string;
  /** Values of the prompt's input variables, so that one prompt serves several agents. Default: the defaults of the prompt's input. */
  promptInput?: z.infer<I>;
  /** Options that one turn may override: `chat.send('...', { model, config })`. Default: none, such a turn is refused. */
  turnOverrides?: TurnOverrides;
  /**
   * Selects what the model is sent: a window made by `contextWindow` of `genkitx-agents/context`. The session keeps every message.
   * Default: the model is sent the whole conversation.
   */
  context?: ContextWindow;
}

/** Configuration of `defineCustomAgent`. */
export interface CustomAgentConfig<State = unknown, User = unknown, App = unknown> extends AgentStateOptions<
  State,
  User,
  App
> {
  /** The agent's name, under which its actions are registered. */
  name: string;
  /** Describes the agent's purpose in its action's metadata, for the Dev UI and other agents. Optional. */
  description?: string;
}

/** The type of an agent's structured output; `unknown` without an output schema. */
export type OutputOf<O extends z.ZodTypeAny> = z.ZodTypeAny extends O ? unknown : z.infer<O>;

/** The second argument of a custom agent's function. */
export interface AgentFnOptions {
  /** Sends a chunk to the caller, if the caller still listens. Never throws. */
  sendChunk: (chunk: AgentStreamChunk) => void;
  /** Aborted when the turn must stop. Pass it to every long operation. */
  abortSignal: AbortSignal;
  /** The caller's context. */
  context?: ActionContext;
}

/** A custom agent's function: runs turns (`sess.run`) until the caller sends no more input, and returns the last turn's result. */
export type AgentFn<State = unknown, User = ScopeRecord, App = ScopeRecord> = (
  sess: SessionRunner<State, User, App>,
  options: AgentFnOptions,
) => Promise<AgentResult>;

/** Options of calls to an agent in this process. */
export interface AgentCallOptions {
  /** The caller's context, passed to the store and to the turns. Default: the ambient context. */
  context?: ActionContext;
}

/** A registered agent: a Genkit action with Genkit's own `Agent` members and the members of this package. */
export interface Agent<State = unknown, Output = unknown> extends GenkitAgent<State>, AgentAPI<State, Output> {
  /** Begins a conversation, or continues one. */
  chat(init?: AgentInit<State>, options?: AgentCallOptions): AgentChat<State, Output>;

  /** Reads a snapshot and returns a conversation that continues from it. Needs a store. */
  loadChat(lookup: SnapshotLookup, options?: AgentCallOptions): Promise<AgentChat<State, Output>>;

  /** Reads a snapshot as clients see it; `undefined` when it does not exist. Needs a store. */
  getSnapshot(
    lookup: string | SnapshotLookup,
    options?: AgentCallOptions & ReadOptions,
  ): Promise<AgentSnapshot<State> | undefined>;

  /** Waits until a snapshot has a terminal status. Needs a store. */
  waitForSnapshot(snapshotId: string, options?: AgentCallOptions & WaitOptions): Promise<AgentSnapshot<State>>;

  /** Same as {@link getSnapshot}, under Genkit's name for it. */
  getSnapshotData(lookup: GetSnapshotDataInput): Promise<SessionSnapshot<State> | undefined>;

  /**
   * Aborts a running snapshot, and the other turns of its background run. Returns the status it had before; `undefined` when it does not exist.
   * Needs a store.
   */
  abort(snapshotId: string, options?: AgentCallOptions): Promise<SnapshotStatus | undefined>;
}
