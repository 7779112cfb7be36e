import { getAsyncContext } from '@genkit-ai/core';
import { failedPrecondition, StateError } from '../../errors.ts';
import type { ScopeChange, ScopeRecord } from '../../store/contract.ts';
import { prefixedNames } from './plain-state.ts';
import {
  endScopes,
  lastingView,
  promptView,
  scopeChangesOf,
  temporaryOf,
  type ScopedStateOptions,
} from './scoped-state.ts';
import { CURRENT_SESSION, Session, stateCellOf, viewOf, type StateCell } from '../session.ts';

/** The options of a session's state besides the plain keys. */
export type StateSetting = Pick<ScopedStateOptions, 'user' | 'app' | 'missing' | 'schemas' | 'limits'>;

/**
 * Sets the options of the session's state. A session that is opened while another one's turn runs shares its `temp:` values.
 *
 * @param options `reservesPrefixes`: the custom state refuses new members named like keys of other scopes.
 */
export function configureState<S>(
  session: Session<S>,
  setting: StateSetting,
  { reservesPrefixes }: { reservesPrefixes: boolean },
): void {
  const running = runningSession();
  const outer = running instanceof Session && !stateCellOf(running).isOver ? running : undefined;
  const cell = stateCellOf(session);
  // Only those of the turn that runs now: later ones belong to another turn.
  const shared = outer && { outer, temp: temporaryOf(outer.state) };
  cell.isSharing = shared !== undefined;
  cell.hasScopes = setting.user !== undefined || setting.app !== undefined;
  cell.guard = guardOf(session, reservesPrefixes);
  cell.open = () => {
    const isActive = shared && !stateCellOf(shared.outer).isOver && temporaryOf(shared.outer.state) === shared.temp;
    return { ...setting, ...(isActive && { temp: shared.temp }) };
  };
}

/** The changes that the turn's save must apply to the shared records. */
export function stateChangesOf<S>(session: Session<S>): readonly ScopeChange[] {
  const { state } = stateCellOf(session);
  return state ? scopeChangesOf(state) : [];
}

/** Ends a turn and its `temp:` values. `saved`: its saved changes. Without it the turn did not complete, and its changes are undone. */
export function endTurnState<S>(session: Session<S>, saved?: readonly ScopeChange[]): void {
  const { state } = stateCellOf(session);
  if (state) endScopes(state, saved);
}

/** Ends the call and the rest of its state. */
export function endState<S>(session: Session<S>): void {
  stateCellOf(session).isOver = true;
  endTurnState(session);
}

/** Whether the session has `user:` or `app:` keys, which can change without it. */
export function sharesState<S>(session: Session<S>): boolean {
  return stateCellOf(session).hasScopes === true;
}

/**
 * The custom state as clients may see it, including the `user:` and `app:` keys of the session's scopes. Shared with the session: read it
 * synchronously.
 */
export function visibleCustomOf<S>(session: Session<S>): unknown {
  const view = stateCellOf(session).hasScopes ? lastingView(session.state) : undefined;
  if (!view) return viewOf(session).custom;
  return Object.keys(view).length === 0 ? viewOf(session).custom : view;
}

/** Data about the proxy that replaces the session while a prompt is rendered. */
interface Rendering {
  readonly session: Session;
  /** The custom state as the prompt sees it. */
  readonly seen: object;
}

const renderings = new WeakMap<object, Rendering>();

/**
 * Keeps keys of other scopes out of the custom state. A function of a prompt sees these keys as state and may return them with its changes,
 * so while a prompt is rendered the keys that it saw are dropped. Other such keys are an error if prefixes are reserved.
 */
function guardOf(session: Session, reservesPrefixes: boolean): NonNullable<StateCell['guard']> {
  return (custom, mutator) => {
    const current = getAsyncContext().getStore<object>(CURRENT_SESSION);
    const rendering = current && renderings.get(current);
    const shown = rendering?.session === session ? rendering.seen : undefined;
    if (!shown && !reservesPrefixes) return mutator(custom);
    const known = new Set(prefixedNames(custom));
    const next = mutator(custom);
    const added = prefixedNames(next).filter((name) => !known.has(name));
    if (added.length === 0) return next;
    const members = next as { [name: string]: unknown };
    const kept = next === custom && !Object.isFrozen(next) ? members : { ...members };
    for (const name of added) delete kept[name];
    const refused = reservesPrefixes && added.find((name) => !shown || !Object.hasOwn(shown, name));
    if (refused) {
      const reason =
        'it is not a member of the custom state; set it with session.state, which stores it in the scope of its prefix';
      throw new StateError({ key: refused, reason });
    }
    return kept;
  };
}

/**
 * Renders a prompt with the session's whole state: `{{@state.step}}`, `{{@state.[user:theme]}}` and `{{@state.[temp:draft]}}`. Functions of
 * the prompt get the same keys as `state`; their `updateCustom` changes the plain keys only. Without this function a prompt sees only the
 * plain keys.
 *
 * @example
 * const session = currentSession();
 * const greeting = ai.prompt('greeting');
 * const options = await renderWith(session, () => greeting.render({ name: 'Ada' }));
 * const { text } = await ai.generate(options);
 */
export function renderWith<S, O>(session: Session<S>, render: () => O): O {
  const cell = stateCellOf(session);
  const { state, hasScopes, isSharing } = cell;
  const isForged = prefixedNames(viewOf(session).custom).length > 0;
  const mayHaveMore = state !== undefined || hasScopes || isSharing || isForged;
  const seen = mayHaveMore ? promptView(session.state) : undefined;
  if (!seen) return render();
  const facade = new Proxy(session, {
    get: (target, name) => {
      // Genkit reads the `@state` of a prompt with `getCustom`.
      if (name === 'getCustom') return () => seen;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? (member.bind(target) as unknown) : member;
    },
  });
  cell.guard ??= guardOf(session, false);
  renderings.set(facade, { session, seen });
  return getAsyncContext().run(CURRENT_SESSION, facade, render);
}

/**
 * The session of the running turn: the same object as `ai.currentSession()`, with this package's type.
 *
 * @throws `FAILED_PRECONDITION` outside of an agent of this package.
 * @example
 * const { state } = currentSession<{ step: string }, { theme: 'dark' | 'light' }>();
 * state.set('user:theme', 'dark');
 */
export function currentSession<S = unknown, User = ScopeRecord, App = ScopeRecord>(): Session<S, User, App> {
  const session = runningSession();
  if (session) return session as unknown as Session<S, User, App>;
  throw failedPrecondition(
    'There is no current session: this runs outside of an agent of genkitx-agents, or in a callback that lost its context.',
  );
}

/** Whether an agent's turn is running. */
export function isInTurn(): boolean {
  return runningSession() !== undefined;
}

function runningSession(): Session | undefined {
  const current = getAsyncContext().getStore<Session>(CURRENT_SESSION);
  const session = current && (renderings.get(current)?.session ?? current);
  // Genkit's own agents keep a different object under that key. Sessions of this package's two module formats are equivalent.
  return session && 'state' in session && !Object.hasOwn(session, 'state') ? session : undefined;
}
