import { GenkitError, type ActionContext } from 'genkit';
import { addressTo, invalidArgument } from '../errors.ts';
import type { MemoryScopeId, MemoryStore } from '../store/memory/contract.ts';
import { memoryScopeKey, tenantScopeKey } from '../store/memory/scope.ts';

/**
 * Identifies the memories that a call reads and writes: the memories of a user, a session or an app. Only the server makes scopes, from an
 * authenticated context or from ids that it knows. Data from a request or a model is never accepted as a scope.
 */
export interface MemoryScope {
  /** The kind of the scope. */
  readonly kind: MemoryScopeId['scope'];
}

/** A scope with its id and its tenant. */
export interface ScopeTarget {
  readonly scope: MemoryScope;
  readonly id: MemoryScopeId;
  /** The id as a string. */
  readonly key: string;
  /** Options for every call of the store: the tenant's context. */
  readonly options: { readonly context?: ActionContext };
}

/** On the global object, so that the ES module and the CommonJS copy of the package accept each other's scopes. */
const SCOPE_TARGETS = Symbol.for('genkitx-agents.memory-scopes');
const holder = globalThis as { [SCOPE_TARGETS]?: WeakMap<object, ScopeTarget> };
const scopeTargets = (holder[SCOPE_TARGETS] ??= new WeakMap());

/**
 * Makes a scope from an id, for a backend that knows the id. Never pass an id that came with a request.
 *
 * @param context Names the tenant, as in a store. Default: none.
 * @throws `INVALID_ARGUMENT` for an invalid id.
 */
export function memoryScope(id: MemoryScopeId, context?: ActionContext): MemoryScope {
  const key = memoryScopeKey(id);
  const scope = Object.freeze({ kind: id.scope });
  scopeTargets.set(scope, { scope, id: Object.freeze({ ...id }), key, options: context ? { context } : {} });
  return scope;
}

/**
 * Returns the id of a scope, for example to print it.
 *
 * @throws `INVALID_ARGUMENT` if `scope` is not a scope.
 */
export function memoryScopeId(scope: MemoryScope): MemoryScopeId {
  return targetOf(scope).id;
}

/**
 * Returns the id and the tenant of a scope.
 *
 * @throws `INVALID_ARGUMENT` if the functions of this file did not make `scope`.
 */
export function targetOf(scope: MemoryScope): ScopeTarget {
  const target = typeof scope === 'object' && scope !== null ? scopeTargets.get(scope) : undefined;
  if (target) return target;
  throw invalidArgument(
    'Not a memory scope. Pass the object that memory.scopeFor or memoryScope returned; an id or a JSON copy of it is refused.',
  );
}

/** A map key for a scope: it differs between the tenants of a store. */
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
      'The context names no user, so it has no user scope. Pass the context that the server authenticated.';
    throw addressTo('caller', new GenkitError({ status: 'UNAUTHENTICATED', message }));
  }
  return memoryScope({ scope: kind, appName, userId }, context);
}
