import { getAsyncContext } from '@genkit-ai/core';
import type { GenerationUsage } from 'genkit';
import type { Artifact, MessageData, SessionState } from 'genkit/beta';
import { invalidArgument } from '../errors.ts';
import { putByName } from '../json/named-list.ts';
import { copyJson, type Json } from '../json/value.ts';
import type { ScopeRecord } from '../store/contract.ts';
import { notify } from '../store/parts/notify.ts';
import { requestCompaction } from './compaction-request.ts';
import { plainStateOf } from './state/plain-state.ts';
import { ScopedState, type ScopedStateOptions } from './state/scoped-state.ts';
import { addUsage } from './usage.ts';

/** The events of {@link Session.on}, and the arguments of their listeners. */
export interface SessionEvents {
  /** Called after an artifact with a new name, or without one, was added. */
  artifactAdded: (artifact: Artifact) => void;
  /** Called after an artifact replaced the one with its name. */
  artifactUpdated: (artifact: Artifact) => void;
  /** Called after the custom state was updated; {@link Session.getCustom} returns it. */
  customChanged: () => void;
}

/** A session's state, shared with the session. Read it synchronously, and never change it. */
export interface SessionView<S = unknown> {
  readonly sessionId: string;
  readonly messages: readonly MessageData[];
  readonly artifacts: readonly Artifact[];
  readonly custom: S | undefined;
}

/** The plain keys of a session whose custom state is an `S`; any keys when the type is unknown. */
export type PlainKeys<S> = unknown extends S ? { [key: string]: Json } : S;

/** Holds a session's {@link Session.state}, which is created on first access, and the options to create it. */
export interface StateCell {
  state?: ScopedState;
  /** Options besides the plain keys. Default: none. */
  open?: () => Omit<ScopedStateOptions, 'plain'>;
  hasScopes?: boolean;
  /** It was opened within the turn of another session, and shares its `temp:` values. */
  isSharing?: boolean;
  /** The call that uses the session has ended. */
  isOver?: boolean;
  /** Runs a mutator of the custom state and returns the permitted part of its result. */
  guard?: (custom: unknown, mutator: (custom: unknown) => unknown) => unknown;
}

/** The key under which Genkit keeps the current session, for `ai.currentSession()`, prompts and helpers. */
export const CURRENT_SESSION = 'ai.session';

type Listeners = { [E in keyof SessionEvents]: Set<SessionEvents[E]> };

/** The content of a session. The arrays and their elements are immutable: a change replaces the array, so a view stays as it was. */
interface Core<S> {
  messages: readonly MessageData[];
  artifacts: readonly Artifact[];
  custom: S | undefined;
  draft?: (() => MessageData[]) | undefined;
  version: number;
  readonly cell: StateCell;
}

/** Module data, so that the runtime reads and replaces the content without copies. */
const cores = new WeakMap<object, Core<unknown>>();

function coreOf<S, U, A>(session: Session<S, U, A>): Core<S> {
  return cores.get(session) as Core<S>;
}

/**
 * A conversation while a turn works on it: its messages, its custom state and its artifacts. Its content at the end of the turn becomes the
 * next snapshot. Handlers and tools get it as `ai.currentSession()`.
 *
 * `state` is one map with the keys of the session, its user, its app, and the turn; its plain keys are the members of the custom state.
 *
 * Messages and artifacts are copied when they are read and written. The custom state is not: `getCustom` returns the object itself, so that a
 * mutator may change it in place.
 *
 * @example
 * const choose = ai.defineTool(
 *   { name: 'choose', description: 'Picks the order.', inputSchema: z.object({ orderId: z.string() }) },
 *   async ({ orderId }) => {
 *     ai.currentSession<{ orderId?: string }>().updateCustom((custom) => ({ ...custom, orderId }));
 *     return 'chosen';
 *   },
 * );
 */
export class Session<S = unknown, User = ScopeRecord, App = ScopeRecord> {
  /** The same for all turns of the conversation. */
  readonly sessionId: string;
  readonly #listeners: Listeners = { artifactAdded: new Set(), artifactUpdated: new Set(), customChanged: new Set() };

  /** @param initial Copied. Without a `sessionId` the session gets a new one, a random UUID. */
  constructor(initial: SessionState<S> = {}) {
    this.sessionId = initial.sessionId || globalThis.crypto.randomUUID();
    const { messages = [], artifacts = [], custom } = initial;
    cores.set(this, {
      messages: copyMessages(messages),
      artifacts: copyJson(artifacts),
      custom: custom === undefined ? undefined : copyJson(custom),
      version: 0,
      cell: {},
    });
  }

  /**
   * The session's state: `state.get('step')`, `state.set('user:theme', 'dark')`; see {@link ScopedState}. Without an agent a session
   * has plain and `temp:` keys.
   */
  get state(): ScopedState<PlainKeys<S>, User, App> {
    const { cell } = coreOf(this);
    cell.state ??= new ScopedState({ plain: plainStateOf(this), ...cell.open?.() });
    return cell.state as unknown as ScopedState<PlainKeys<S>, User, App>;
  }

  /** A copy of the whole state. */
  getState(): SessionState<S> {
    const custom = this.getCustom();
    return {
      sessionId: this.sessionId,
      messages: this.getMessages(),
      ...(custom !== undefined && { custom: copyJson(custom) }),
      artifacts: this.getArtifacts(),
    };
  }

  /** A copy of the messages. */
  getMessages(): MessageData[] {
    return copyJson([...coreOf(this).messages]);
  }

  /** Appends copies of the messages. */
  addMessages(messages: readonly MessageData[]): void {
    adoptMessages(this, [...coreOf(this).messages, ...copyMessages(messages)]);
  }

  /** Replaces all messages by copies of these. */
  setMessages(messages: readonly MessageData[]): void {
    adoptMessages(this, copyMessages(messages));
  }

  /** The custom state itself, not a copy. */
  getCustom(): S | undefined {
    return coreOf(this).custom;
  }

  /**
   * Changes the custom state.
   *
   * @param mutator Gets the custom state, `undefined` before the first change, and returns the new one. It may change its argument and
   *   return it.
   * @throws StateError when the agent has shared state and the mutator adds a member whose name has a scope prefix, such as `user:theme`:
   *   set those through {@link state}.
   */
  updateCustom(mutator: (custom?: S) => S): void {
    const core = coreOf(this);
    const { guard } = core.cell;
    const next: unknown = guard ? guard(core.custom, mutator as (custom: unknown) => unknown) : mutator(core.custom);
    if (next instanceof Promise) {
      next.catch(() => {});
      throw invalidArgument(
        'updateCustom needs a mutator that returns the state, not a promise. Await before the update.',
      );
    }
    core.custom = next as S;
    core.version++;
    this.#emit('customChanged');
  }

  /** A copy of the artifacts. */
  getArtifacts(): Artifact[] {
    return copyJson([...coreOf(this).artifacts]);
  }

  /** Adds copies of the artifacts; each replaces an earlier one of the same name. */
  addArtifacts(artifacts: readonly Artifact[]): void {
    if (artifacts.length === 0) return;
    const core = coreOf(this);
    const next = [...core.artifacts];
    const added: Artifact[] = [];
    const updated: Artifact[] = [];
    for (const artifact of copyJson([...artifacts])) {
      (putByName(next, artifact) ? updated : added).push(artifact);
    }
    core.artifacts = next;
    core.version++;
    for (const artifact of added) this.#emit('artifactAdded', artifact);
    for (const artifact of updated) this.#emit('artifactUpdated', artifact);
  }

  /**
   * Adds the usage of a model call to the usage of the turn: `session.addUsage(response.usage)`. Agents with a prompt do this themselves, for
   * their own model calls. Call it for the model calls of a custom agent or of a tool.
   */
  addUsage(usage: GenerationUsage | undefined): void {
    addUsage(this, usage);
  }

  /**
   * Summarizes the session after this turn, in the background, however few turns it has: call it when a topic has ended. The agent needs a
   * `context` window with `summarize`. In a custom agent, call it during a model call with `window.middleware({ sessionId })`, for example
   * from a tool. Otherwise nothing is summarized, and a warning is logged.
   */
  compact(): void {
    requestCompaction(this);
  }

  /** Increases with every change. */
  getVersion(): number {
    return coreOf(this).version;
  }

  /** Runs `fn` with this as the current session: `ai.currentSession()`, and `{{@state}}` in prompts. */
  run<O>(fn: () => O): O {
    return getAsyncContext().run(CURRENT_SESSION, this, fn);
  }

  /** Adds a listener, until {@link off}. An error of a listener is logged and affects nothing else. */
  on<E extends keyof SessionEvents>(event: E, listener: SessionEvents[E]): void {
    this.#listeners[event].add(listener);
  }

  /** Removes a listener. */
  off<E extends keyof SessionEvents>(event: E, listener: SessionEvents[E]): void {
    this.#listeners[event].delete(listener);
  }

  #emit<E extends keyof SessionEvents>(event: E, ...args: Parameters<SessionEvents[E]>): void {
    for (const listener of this.#listeners[event]) {
      notify(
        () => (listener as (...args: Parameters<SessionEvents[E]>) => unknown)(...args),
        `A session's '${event}' listener failed; the turn continues.`,
      );
    }
  }
}

/** A session that takes over the given state without a copy. */
export function adoptState<S>({ sessionId, messages = [], artifacts = [], custom }: SessionState<S>): Session<S> {
  const session = new Session<S>({ sessionId });
  Object.assign(coreOf(session), { messages, artifacts, custom });
  return session;
}

/** The cell of the session's scoped state. */
export function stateCellOf<S, U, A>(session: Session<S, U, A>): StateCell {
  return coreOf(session).cell;
}

/** The session's state without a copy. */
export function viewOf<S, U, A>(session: Session<S, U, A>): SessionView<S> {
  const { messages, artifacts, custom } = coreOf(session);
  return { sessionId: session.sessionId, messages, artifacts, custom };
}

/** Replaces all messages without a copy; the caller must not change them. */
export function adoptMessages<S, U, A>(session: Session<S, U, A>, messages: readonly MessageData[]): void {
  const core = coreOf(session);
  core.messages = messages;
  core.draft = undefined;
  core.version++;
}

/**
 * Sets the messages that the session would have if the turn stopped here, including progress that is not a message yet. Discarded at the next
 * change of the messages.
 */
export function draftMessages<S>(session: Session<S>, messages: () => MessageData[]): void {
  coreOf(session).draft = messages;
}

/** The messages, with the progress of the running turn. */
export function messagesSoFar<S>(session: Session<S>): readonly MessageData[] {
  const { draft, messages } = coreOf(session);
  return draft?.() ?? messages;
}

/** The data of a message: Genkit's `response.message` is a class instance with additional members, whose `toJSON` returns it. */
export function dataOf(message: MessageData): MessageData {
  const { toJSON } = message as { toJSON?: () => MessageData };
  return typeof toJSON === 'function' ? toJSON.call(message) : message;
}

function copyMessages(messages: readonly MessageData[]): MessageData[] {
  return messages.map((message) => copyJson(dataOf(message)));
}
