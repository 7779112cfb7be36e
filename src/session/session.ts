import { getAsyncContext } from '@genkit-ai/core';
import type { GenerationUsage } from 'genkit';
import type { Artifact, MessageData, SessionState } from 'genkit/beta';
import { logger } from 'genkit/logging';
import { describeThrown, invalidArgument } from '../errors.ts';
import { putByName } from '../json/named-list.ts';
import { copyJson, type Json } from '../json/value.ts';
import type { ScopeRecord } from '../store/contract.ts';
import { plainStateOf } from './state/plain-state.ts';
import { ScopedState, type ScopedStateOptions } from './state/scoped-state.ts';
import { addUsage } from './usage.ts';

/** What {@link Session.on} listens to, and what each listener is told. */
export interface SessionEvents {
  /** An artifact with a new name, or without one, was added; called after it was. */
  artifactAdded: (artifact: Artifact) => void;
  /** An artifact took the place of the one with its name. */
  artifactUpdated: (artifact: Artifact) => void;
  /** The custom state was updated; {@link Session.getCustom} answers what it is. */
  customChanged: () => void;
}

/** A session's state as it is, shared with the session: to be read at once, never to be changed. */
export interface SessionView<S = unknown> {
  readonly sessionId: string;
  readonly messages: readonly MessageData[];
  readonly artifacts: readonly Artifact[];
  readonly custom: S | undefined;
}

/** The keys of a session whose custom state is an `S`; of one that nothing is known of, any. */
export type PlainKeys<S> = unknown extends S ? { [key: string]: Json } : S;

/** Where a session's {@link Session.state} is kept once somebody asks for it, and how it is to be made. */
export interface StateCell {
  state?: ScopedState;
  /** What it has besides the plain keys; nothing unless told. */
  open?: () => Omit<ScopedStateOptions, 'plain'>;
  hasScopes?: boolean;
  /** It was opened within the turn of another one, and has its `temp:` values. */
  isSharing?: boolean;
  /** The call that works with the session is over. */
  isOver?: boolean;
  /** Runs a mutator of the custom state and answers what of its answer may stand there. */
  guard?: (custom: unknown, mutator: (custom: unknown) => unknown) => unknown;
}

/** Where Genkit keeps the current session: `ai.currentSession()`, prompts and helpers look there. */
export const CURRENT_SESSION = 'ai.session';

type Listeners = { [E in keyof SessionEvents]: Set<SessionEvents[E]> };

/** The runtime's own access, without copies; not exported from the package. */
let view: <S>(session: Session<S>) => SessionView<S>;
let replace: <S>(session: Session<S>, messages: readonly MessageData[]) => void;
let draft: <S>(session: Session<S>, messages: () => MessageData[]) => void;
let drafted: <S>(session: Session<S>) => readonly MessageData[];
let fill: <S>(session: Session<S>, state: SessionState<S>) => void;
let cell: <S>(session: Session<S>) => StateCell;

/**
 * A conversation while a turn works on it: its messages, its custom state and its artifacts. What the turn leaves behind becomes the next
 * snapshot. Handlers and tools get it as `ai.currentSession()`.
 *
 * `state` is the session's scratchpad, one map with what belongs to the session, its user, its app, and the turn; its plain keys are the
 * members of the custom state.
 *
 * Messages and artifacts are copied on their way in and out. The custom state is not: `getCustom` answers the object itself, so that a
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
  // The arrays and what is in them never change: a change puts another array in their place, so a view stays as it was.
  #messages: readonly MessageData[];
  #artifacts: readonly Artifact[];
  #custom: S | undefined;
  #draft: (() => MessageData[]) | undefined;
  #version = 0;
  readonly #cell: StateCell = {};

  static {
    cell = (session) => session.#cell;
    view = (session) => ({
      sessionId: session.sessionId,
      messages: session.#messages,
      artifacts: session.#artifacts,
      custom: session.#custom,
    });
    replace = (session, messages) => {
      session.#messages = messages;
      session.#draft = undefined;
      session.#version++;
    };
    draft = (session, messages) => {
      session.#draft = messages;
    };
    drafted = (session) => session.#draft?.() ?? session.#messages;
    fill = (session, { messages = [], artifacts = [], custom }) => {
      session.#messages = messages;
      session.#artifacts = artifacts;
      session.#custom = custom;
    };
  }

  /** @param initial Copied. Without a `sessionId` the session gets a new one, a random UUID. */
  constructor(initial: SessionState<S> = {}) {
    this.sessionId = initial.sessionId || globalThis.crypto.randomUUID();
    this.#messages = copyMessages(initial.messages ?? []);
    this.#artifacts = copyJson(initial.artifacts ?? []);
    this.#custom = initial.custom === undefined ? undefined : copyJson(initial.custom);
  }

  /**
   * The scratchpad: `state.get('step')`, `state.set('user:theme', 'dark')`; see {@link ScopedState}. Without an agent around it a session
   * has plain and `temp:` keys.
   */
  get state(): ScopedState<PlainKeys<S>, User, App> {
    this.#cell.state ??= new ScopedState({ plain: plainStateOf(this), ...this.#cell.open?.() });
    return this.#cell.state as unknown as ScopedState<PlainKeys<S>, User, App>;
  }

  /** A copy of all of it. */
  getState(): SessionState<S> {
    return {
      sessionId: this.sessionId,
      messages: this.getMessages(),
      ...(this.#custom !== undefined && { custom: copyJson(this.#custom) }),
      artifacts: this.getArtifacts(),
    };
  }

  /** A copy of the messages. */
  getMessages(): MessageData[] {
    return copyJson([...this.#messages]);
  }

  /** Appends copies of the messages. */
  addMessages(messages: readonly MessageData[]): void {
    replace(this, [...this.#messages, ...copyMessages(messages)]);
  }

  /** Puts copies of these messages in the place of all there are. */
  setMessages(messages: readonly MessageData[]): void {
    replace(this, copyMessages(messages));
  }

  /** The custom state itself, not a copy. */
  getCustom(): S | undefined {
    return this.#custom;
  }

  /**
   * Changes the custom state.
   *
   * @param mutator Gets the custom state, `undefined` before the first change, and answers the new one. It may change what it gets and
   *   answer that.
   * @throws StateError when an agent with shared state is given a new member that is named like a key of another scope, `user:theme` say:
   *   {@link state} is where those are set.
   */
  updateCustom(mutator: (custom?: S) => S): void {
    const { guard } = this.#cell;
    const next: unknown = guard ? guard(this.#custom, mutator as (custom: unknown) => unknown) : mutator(this.#custom);
    if (next instanceof Promise) {
      next.catch(() => {});
      throw invalidArgument(
        'updateCustom needs a mutator that answers the state, not a promise: await before the update.',
      );
    }
    this.#custom = next as S;
    this.#version++;
    this.#emit('customChanged');
  }

  /** A copy of the artifacts. */
  getArtifacts(): Artifact[] {
    return copyJson([...this.#artifacts]);
  }

  /** Adds copies of the artifacts; one with the name of an earlier one takes its place. */
  addArtifacts(artifacts: readonly Artifact[]): void {
    if (artifacts.length === 0) return;
    const next = [...this.#artifacts];
    const added: Artifact[] = [];
    const updated: Artifact[] = [];
    for (const artifact of copyJson([...artifacts])) {
      (putByName(next, artifact) ? updated : added).push(artifact);
    }
    this.#artifacts = next;
    this.#version++;
    for (const artifact of added) this.#emit('artifactAdded', artifact);
    for (const artifact of updated) this.#emit('artifactUpdated', artifact);
  }

  /**
   * Adds what a model call used to the usage of the turn: `session.addUsage(response.usage)`. Agents with a prompt do this themselves, for
   * their own model calls. Call it for those of a custom agent, or of a tool.
   */
  addUsage(usage: GenerationUsage | undefined): void {
    addUsage(this, usage);
  }

  /** Goes up with every change. */
  getVersion(): number {
    return this.#version;
  }

  /** Runs `fn` with this as the current session: `ai.currentSession()`, and `{{@state}}` in prompts. */
  run<O>(fn: () => O): O {
    return getAsyncContext().run(CURRENT_SESSION, this, fn);
  }

  /** Listens until {@link off}. A listener that throws is logged and harms nobody. */
  on<E extends keyof SessionEvents>(event: E, listener: SessionEvents[E]): void {
    this.#listeners[event].add(listener);
  }

  /** Ends what {@link on} began. */
  off<E extends keyof SessionEvents>(event: E, listener: SessionEvents[E]): void {
    this.#listeners[event].delete(listener);
  }

  #emit<E extends keyof SessionEvents>(event: E, ...args: Parameters<SessionEvents[E]>): void {
    for (const listener of this.#listeners[event]) {
      try {
        (listener as (...args: Parameters<SessionEvents[E]>) => void)(...args);
      } catch (error) {
        logger.error(`A session's '${event}' listener threw; the turn goes on. ${describeThrown(error)}`);
      }
    }
  }
}

/** A session with a state that nobody else has. */
export function adoptState<S>(state: SessionState<S>): Session<S> {
  const session = new Session<S>({ sessionId: state.sessionId });
  fill(session, state);
  return session;
}

/** The session's scratchpad as the runtime has it. */
export function stateCellOf<S>(session: Session<S>): StateCell {
  return cell(session);
}

/** The session's state without a copy. */
export function viewOf<S>(session: Session<S>): SessionView<S> {
  return view(session);
}

/** Puts messages that nobody else will change in the place of all there are. */
export function adoptMessages<S>(session: Session<S>, messages: readonly MessageData[]): void {
  replace(session, messages);
}

/**
 * Says what the messages would be if the turn stopped here, while what it is at is not a message of the session yet. Forgotten with the next
 * change of the messages.
 */
export function draftMessages<S>(session: Session<S>, messages: () => MessageData[]): void {
  draft(session, messages);
}

/** The messages, with what a turn that goes on has come to so far. */
export function messagesSoFar<S>(session: Session<S>): readonly MessageData[] {
  return drafted(session);
}

/** Genkit's `response.message` is an instance with more than data in it; its `toJSON` is the data. */
function copyMessages(messages: readonly MessageData[]): MessageData[] {
  return messages.map((message) => {
    const { toJSON } = message as { toJSON?: () => MessageData };
    return copyJson(typeof toJSON === 'function' ? toJSON.call(message) : message);
  });
}
