import type { Agent as GenkitAgent, AgentResult, GetSnapshotDataInput } from '@genkit-ai/ai';
import type { ActionContext, z } from 'genkit';
import type { AgentInit, AgentStreamChunk, ClientTransform, PromptConfig, SessionStore } from 'genkit/beta';
import type { Registry } from 'genkit/registry';
import type {
  AgentAPI,
  AgentChat,
  AgentSnapshot,
  ReadOptions,
  SessionSnapshot,
  SnapshotLookup,
  SnapshotStatus,
  WaitOptions,
} from '../client/types.ts';
import type { SigningKey } from './define/state-signature.ts';
import type { SessionRunner } from '../session/session-runner.ts';
import type { StateLimits } from '../session/state/state-values.ts';
import type { ScopeRecord } from '../store/contract.ts';

/** A `Genkit` instance, or its registry. */
export type GenkitOrRegistry =
  | Registry
  | {
      /** Where it registers its actions. */
      registry: Registry;
    };

/**
 * A Zod schema that reads a `T` and answers a `T`. The state is checked, never replaced by what the schema makes of it, so one that transforms
 * does not fit; a member with a default may be absent, and its type says so.
 */
export type SchemaOf<T> = z.ZodType<T, z.ZodTypeDef, T>;

/** Turns that go on after their caller detached. */
export interface BackgroundOptions {
  /** How often a run says that it is alive, in ms; each time is a write to the store. 30,000 unless told. */
  heartbeatIntervalMs?: number;
  /**
   * How long after its last heartbeat a run counts as dead, in ms: its snapshot then reads as `expired`, and another process may take the run
   * over. 60,000 unless told. The clocks of the processes must not differ by as much.
   */
  leaseMs?: number;
  /** How often a run whose process died is taken over before it is given up and ends as `failed`; 3 unless told, 0: never. */
  maxAttempts?: number;
  /**
   * Whether this process looks for runs to take over: soon after the agent is defined, and then once in `leaseMs`. Not unless told; see
   * `recoverRuns` for what it finds. Needs a store that can list its sessions.
   */
  recover?: boolean;
  /** For a store that keeps tenants apart: the contexts of those whose runs are looked for. One call without a context unless told. */
  recoverContexts?: () => readonly ActionContext[] | Promise<readonly ActionContext[]>;
  /**
   * What of the caller's context is stored with a run, readable to whoever can read the store, and given to the run when it is taken over.
   * Nothing unless told, since contexts carry tokens: the run then gets the context of whoever looked for it.
   */
  keepContext?: (context: ActionContext) => ActionContext | undefined;
}

/** What becomes of two turns on one session at the same time. */
export type OnConflict = 'reject' | 'queue' | 'branch';

/** How an agent keeps its state; the same for every kind of agent. */
export interface AgentStateOptions<State = unknown, User = unknown, App = unknown> {
  /**
   * What the custom state looks like. It is checked when a session is opened and again before a turn is saved: a turn that leaves something
   * else behind fails with `INTERNAL` and is not saved as completed. Its JSON schema is in the action's metadata.
   */
  stateSchema?: SchemaOf<State>;
  /** Where the sessions live; unless told the `store` given to `agentRuntime`. */
  store?: SessionStore<State> | SessionStore;
  /** `'client'`: the agent has no store, not even the default one; its callers keep the state and send it with each turn. */
  state?: 'client';
  /**
   * Makes a state that the callers keep trustworthy: it is handed out with an HMAC under this key, and refused when it comes back changed.
   * An old state is one that was issued, so a caller can go back to it. Of several keys the first signs, all are accepted. Without, a caller
   * can write any history, so no tool is run on its word: `resume.restart` is refused; `false`: all callers are trusted, and it is not.
   */
  signState?: SigningKey | readonly SigningKey[] | false;
  /**
   * Whether the callers may have resources of the application put into their messages (parts `{ resource: { uri } }`), any that they can
   * name; not unless told.
   */
  clientResources?: boolean;
  /**
   * Who may read, continue and abort this agent's sessions. `true`: all users, and other agents on the same store. `false`: the user who
   * began the session, by this agent. Default: the user who began it, by any agent on the store; with a `clientTransform` by this agent
   * only, since another would show what the transform hides. A session that was begun without a user is open to all users.
   */
  shareSessions?: boolean;
  /**
   * What of the state and of the stream the callers may see. Of an answer they get the artifacts and the reply as `state` leaves them: one that
   * leaves out the last message leaves out the reply.
   */
  clientTransform?: ClientTransform<State>;
  /**
   * Writes the session's state after each turn into the turn's span, as Genkit does: the Dev UI shows it, and every exporter of traces gets it.
   * Default: `false`, a span holds the turn's input, its finish reason and the id of its snapshot. `temp:` keys are never traced.
   */
  traceState?: boolean;
  /** How long a call of the store may take, in ms, before the turn ends without it with `DEADLINE_EXCEEDED`; 10,000 unless told. */
  storeTimeoutMs?: number;
  /**
   * What becomes of two turns on one session at the same time. `'reject'`: the one that is saved second fails with `ABORTED`. `'queue'`: in
   * one process the second waits for the first; between processes it is rejected. `'branch'`: the session gets two leaves. Unless told,
   * `'reject'` for a turn that names the session by its `sessionId`, and `'branch'` for one that names the `snapshotId` to continue from.
   * Rejecting needs a store that can compare leaves.
   */
  onConflict?: OnConflict;
  /**
   * What becomes of a turn that is aborted before it ends. `'discard'`, unless told: nothing of it is saved, the session is as it was before.
   * `'keep'`: the prompt, the tools that ran and the words of the model so far are saved as a snapshot with the status `aborted`, which the
   * output names; the conversation goes on from it, and a turn without a message runs it again.
   */
  onAbort?: 'discard' | 'keep';
  /** How detached turns are watched over. Needs a store. */
  background?: BackgroundOptions;
  /**
   * The app that the agent is part of: agents with one `appName` on one store share what belongs to a user (`user:`) and to the app (`app:`).
   * Unless told the one given to `agentRuntime`, else the agent's own name, so that nothing is shared by accident.
   */
  appName?: string;
  /**
   * Names the user who calls, from the context: a name that the caller can't choose, `undefined` for no user. The user owns the sessions that
   * the call begins, sees the sessions that they own, and has their own `user:` keys. Default: `context.auth.uid`, which servers set once
   * they have verified the caller.
   */
  userId?: UserIdOf;
  /**
   * The scopes that the agent's `session.state` has besides the session's own, each with what its keys are, without their prefix. A scope
   * that is named here is read when a turn begins, at the cost of one document; one that is not costs nothing, and its keys are refused.
   * Needs a store that keeps scopes.
   *
   * @example
   * const scopes = { user: z.object({ theme: z.enum(['dark', 'light']) }), app: z.object({ discount: z.number() }) };
   * defineAgent(ai, { name: 'booking', store, scopes });
   */
  scopes?: StateScopes<User, App>;
  /** How large keys and values of `session.state` may be. */
  limits?: StateLimits;
  /**
   * The key of `session.state`, with its prefix if it has one, under which a completed turn keeps what it answered: the text of the reply, or
   * what it means where the agent has an output schema. A turn that failed, was aborted, or waits for the caller keeps nothing. An answer that the
   * key does not take is delivered and saved all the same: the key stays as it was, and the output has an `error` though the turn did not fail.
   * A `user:` key needs a user: a call that names none is refused. With a plain key the custom state has to fit the `stateSchema` when it has
   * that key alone, unless turns set the others.
   */
  outputKey?: string;
}

/** Answers whose `user:` keys a call sees. */
export type UserIdOf = (context: ActionContext) => string | undefined;

/** What the keys of shared scopes are: Zod objects or records. Each key is checked by itself, so what `refine` says of several is not. */
export interface StateScopes<User = unknown, App = unknown> {
  /** Keys `user:...`. */
  user?: SchemaOf<User>;
  /** Keys `app:...`. */
  app?: SchemaOf<App>;
}

/** A configuration in which the schema alone says what the state is: the store may be one for agents of any state. */
export type WithStateSchema<State, Config> = {
  /** What the custom state looks like. */
  stateSchema: SchemaOf<State>;
} & Config;

/** What a caller may choose for one turn. A caller over HTTP is anybody: leave closed what costs money. */
export interface TurnOverrides {
  /** The models that a turn may name; `true`: any. None unless told. */
  models?: readonly string[] | true;
  /** Whether a turn may change the model's configuration, its temperature say; not unless told. */
  config?: boolean;
}

/** What `defineAgent` takes: all that a prompt takes, and how the agent keeps its state. */
export interface AgentConfig<
  State = unknown,
  I extends z.ZodTypeAny = z.ZodTypeAny,
  O extends z.ZodTypeAny = z.ZodTypeAny,
>
  extends PromptConfig<I, O>, AgentStateOptions<State> {
  /** The values of the prompt's input variables. */
  promptInput?: z.infer<I>;
  /** What a turn may choose otherwise: `chat.send('...', { model, config })`. */
  turnOverrides?: TurnOverrides;
}

/** What `definePromptAgent` takes. */
export interface PromptAgentConfig<
  State = unknown,
  I extends z.ZodTypeAny = z.ZodTypeAny,
> extends AgentStateOptions<State> {
  /** The prompt that the agent speaks with, and the agent's own name. It may be defined later, but before the first turn. */
  promptName: string;
  /** What the agent is for, in its action's metadata: the Dev UI and other agents read it. */
  description?: string;
  /** The values of the prompt's input variables, so that one prompt serves several agents. */
  promptInput?: z.infer<I>;
  /** What a turn may choose otherwise: `chat.send('...', { model, config })`. */
  turnOverrides?: TurnOverrides;
}

/** What `defineCustomAgent` takes besides its function. */
export interface CustomAgentConfig<State = unknown, User = unknown, App = unknown> extends AgentStateOptions<
  State,
  User,
  App
> {
  /** The agent's name, under which its actions are registered. */
  name: string;
  /** What the agent is for, in its action's metadata: the Dev UI and other agents read it. */
  description?: string;
}

/** What the replies of an agent with this output schema mean; `unknown` without one. */
export type OutputOf<O extends z.ZodTypeAny> = z.ZodTypeAny extends O ? unknown : z.infer<O>;

/** What a custom agent's function gets besides the session. */
export interface AgentFnOptions {
  /** Sends a chunk to the caller, if the caller listens. Never throws. */
  sendChunk: (chunk: AgentStreamChunk) => void;
  /** Fires when the turn is to stop: pass it on to whatever takes long. */
  abortSignal: AbortSignal;
  /** The caller's context. */
  context?: ActionContext;
}

/** A custom agent: it runs turns (`sess.run`) until the caller has no more, and answers the last one's result. */
export type AgentFn<State = unknown, User = ScopeRecord, App = ScopeRecord> = (
  sess: SessionRunner<State, User, App>,
  options: AgentFnOptions,
) => Promise<AgentResult>;

/** Options of the calls of an agent in this process. */
export interface AgentCallOptions {
  /** The caller's context, which the store and the turns get; the ambient one unless told. */
  context?: ActionContext;
}

/** A registered agent: a Genkit action, and what `chat` and its like add to it. Genkit's own `Agent` type, with what ours adds. */
export interface Agent<State = unknown, Output = unknown> extends GenkitAgent<State>, AgentAPI<State, Output> {
  /** Begins a conversation, or attaches to one. */
  chat(init?: AgentInit<State>, options?: AgentCallOptions): AgentChat<State, Output>;

  /** Reads a snapshot and answers a conversation that continues from it. Needs a store. */
  loadChat(lookup: SnapshotLookup, options?: AgentCallOptions): Promise<AgentChat<State, Output>>;

  /** Reads a snapshot as a client sees it; `undefined` when there is none. Needs a store. */
  getSnapshot(
    lookup: string | SnapshotLookup,
    options?: AgentCallOptions & ReadOptions,
  ): Promise<AgentSnapshot<State> | undefined>;

  /** Waits until a snapshot is settled. Needs a store. */
  waitForSnapshot(snapshotId: string, options?: AgentCallOptions & WaitOptions): Promise<AgentSnapshot<State>>;

  /** {@link getSnapshot}, by the name it has in Genkit. */
  getSnapshotData(lookup: GetSnapshotDataInput): Promise<SessionSnapshot<State> | undefined>;

  /** Stops a running snapshot. Answers the status it had before; `undefined` when there is no such snapshot. Needs a store. */
  abort(snapshotId: string, options?: AgentCallOptions): Promise<SnapshotStatus | undefined>;
}
