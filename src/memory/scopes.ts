import { GenkitError, type ActionContext } from 'genkit';
import { addressTo, invalidArgument } from '../errors.ts';
import { assertId } from '../snapshot/ids.ts';
import type { MemoryScopeId } from '../store/memory/contract.ts';

/**
 * Names whose memories a call is about. Only the server makes scopes, from an authenticated context or from ids that it knows. Data from a
 * request or a model is never accepted as a scope.
 */
export interface MemoryScope {
  /** Which kind of scope it is. */
  readonly kind: MemoryScopeId['scope'];
}

/** The id and the tenant of a scope. */
export interface ScopeTarget {
  readonly id: MemoryScopeId;
  /** Options for every call of the store: the tenant's context. */
  readonly options: { readonly context?: ActionContext };
}

/** On the global object, so that the ES module and the CommonJS copy of the package know each other's scopes. */
const MINTED = Symbol.for('genkitx-agents.memory-scopes');
const holder = globalThis as { [MINTED]?: WeakMap<object, ScopeTarget> };
const minted = (holder[MINTED] ??= new WeakMap());

/** Options of the functions that make scopes. */
export interface ScopeOptions {
  /** The name of the app. */
  appName: string;
  /** Names the tenant, as in a store. Default: none. */
  context?: ActionContext;
}

/**
 * The scope of a user, for a backend that knows the user's id. Never pass an id that came with a request.
 *
 * @throws `INVALID_ARGUMENT` for an invalid id.
 */
export function userScope({ appName, userId, context }: ScopeOptions & { userId: string }): MemoryScope {
  assertId(userId, 'userId');
  return mint({ scope: 'user', appName, userId }, context);
}

/**
 * The scope of a session.
 *
 * @throws `INVALID_ARGUMENT` for an invalid id.
 */
export function sessionScope({ appName, sessionId, context }: ScopeOptions & { sessionId: string }): MemoryScope {
  assertId(sessionId, 'sessionId');
  return mint({ scope: 'session', appName, sessionId }, context);
}

/**
 * The scope of an app, which all its users share.
 *
 * @throws `INVALID_ARGUMENT` for an invalid id.
 */
export function appScope({ appName, context }: ScopeOptions): MemoryScope {
  return mint({ scope: 'app', appName }, context);
}

/** Makes a scope from an id, and from the context that names the tenant. */
export function mint(id: MemoryScopeId, context: ActionContext | undefined): MemoryScope {
  assertId(id.appName, 'appName');
  const scope = Object.freeze({ kind: id.scope });
  minted.set(scope, { id: Object.freeze({ ...id }), options: context === undefined ? {} : { context } });
  return scope;
}

/**
 * The id and the tenant of a scope.
 *
 * @throws `INVALID_ARGUMENT` for anything that the functions of this file have not made.
 */
export function targetOf(scope: MemoryScope): ScopeTarget {
  const target = typeof scope === 'object' && scope !== null ? minted.get(scope) : undefined;
  if (target) return target;
  throw invalidArgument(
    'A scope is what memory.scopeFor, userScope, sessionScope or appScope answers, never text or data.',
  );
}

/** The scope of the given kind for the caller. */
export function scopeFor(
  kind: MemoryScopeId['scope'],
  options: { context: ActionContext | undefined; appName: string; userId: string | undefined; sessionId?: string },
): MemoryScope {
  const { context, appName, userId, sessionId } = options;
  if (kind === 'app') return mint({ scope: 'app', appName }, context);
  if (kind === 'session') return sessionScope({ appName, sessionId: sessionId as string, ...(context && { context }) });
  if (kind !== 'user') throw invalidArgument("scopeFor takes 'user', 'session' or 'app'.");
  if (userId === undefined) {
    const message =
      'The context names no user, so there is no scope of a user: pass the context that the server authenticated.';
    throw addressTo('caller', new GenkitError({ status: 'UNAUTHENTICATED', message }));
  }
  return userScope({ appName, userId, ...(context && { context }) });
}
