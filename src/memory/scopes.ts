import { GenkitError, type ActionContext } from 'genkit';
import { addressTo, invalidArgument } from '../errors.ts';
import type { MemoryScopeId, MemoryStore } from '../store/memory/contract.ts';
import { memoryScopeKey, tenantScopeKey } from '../store/memory/scope.ts';

/**
 * Identifies the memories that a call reads and writes: those of a user, a session or an app. Only the server makes scopes, from an
 * authenticated context or from ids that it knows. Data from a request or a model is never accepted as a scope.
 */
export interface MemoryScope {
  /** Which kind of scope it is. */
  readonly kind: MemoryScopeId['scope'];
}

/** A scope with its id and its tenant. */
export interface ScopeTarget {
  readonly scope: MemoryScope;
  readonly id: MemoryScopeId;
  /** The id as a text. */
  readonly key: string;
  /** Options for every call of the store: the tenant's context. */
  readonly options: { readonly context?: ActionContext };
}

/** On the global object, so that the ES module and the CommonJS copy of the package know each other's scopes. */
const MINTED = Symbol.for('genkitx-agents.memory-scopes');
const holder = globalThis as { [MINTED]?: WeakMap<object, ScopeTarget> };
const minted = (holder[MINTED] ??= new WeakMap());

/**
 * Makes a scope from an id, for a backend that knows the id. Never pass an id that came with a request.
 *
 * @param context Names the tenant, as in a store. Default: none.
 * @throws `INVALID_ARGUMENT` for an invalid id.
 */
export function memoryScope(id: MemoryScopeId, context?: ActionContext): MemoryScope {
  const key = memoryScopeKey(id);
  const scope = Object.freeze({ kind: id.scope });
  minted.set(scope, { scope, id: Object.freeze({ ...id }), key, options: context ? { context } : {} });
  return scope;
}

/**
 * The id of a scope, for example to print it.
 *
 * @throws `INVALID_ARGUMENT` for anything but a scope.
 */
export function memoryScopeId(scope: MemoryScope): MemoryScopeId {
  return targetOf(scope).id;
}

/**
 * The id and the tenant of a scope.
 *
 * @throws `INVALID_ARGUMENT` for anything that the functions of this file have not made.
 */
export function targetOf(scope: MemoryScope): ScopeTarget {
  const target = typeof scope === 'object' && scope !== null ? minted.get(scope) : undefined;
  if (target) return target;
  throw invalidArgument('This is no scope: pass what memory.scopeFor or memoryScope returned, never text or data.');
}

/** A text for each scope of each tenant of a store: for maps. */
export function tenantKeyOf(store: Pick<MemoryStore, 'tenant'>, scope: MemoryScope): string {
  const { key, options } = targetOf(scope);
  return tenantScopeKey(store, key, options);
}

/** The scope of the given kind for the caller. */
export function scopeFor(
  kind: MemoryScopeId['scope'],
  options: { context: ActionContext | undefined; appName: string; userId: string | undefined; sessionId?: string },
): MemoryScope {
  const { context, appName, userId, sessionId } = options;
  if (kind === 'app') return memoryScope({ scope: kind, appName }, context);
  if (kind === 'session') return memoryScope({ scope: kind, appName, sessionId: sessionId as string }, context);
  if (kind !== 'user') throw invalidArgument("scopeFor takes 'user', 'session' or 'app'.");
  if (userId === undefined) {
    const message =
      'The context names no user, so there is no scope of a user: pass the context that the server authenticated.';
    throw addressTo('caller', new GenkitError({ status: 'UNAUTHENTICATED', message }));
  }
  return memoryScope({ scope: kind, appName, userId }, context);
}
