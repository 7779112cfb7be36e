import { invalidArgument, quote } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { MemoryScopeId, MemoryStore, MemoryStoreOptions } from './contract.ts';

/** The members of each kind of scope besides `scope`, in their order in the key. */
const MEMBERS = {
  user: ['appName', 'userId'],
  session: ['appName', 'sessionId'],
  app: ['appName'],
} as const;

/**
 * Returns a string that identifies a scope, for maps and for names that are hashes.
 *
 * @throws `INVALID_ARGUMENT` if `scope` is not a scope.
 */
export function memoryScopeKey(scope: MemoryScopeId): string {
  const given = (scope ?? {}) as unknown as Record<string, unknown>;
  const kind = given['scope'] as MemoryScopeId['scope'];
  if (typeof scope !== 'object' || !Object.hasOwn(MEMBERS, kind)) {
    throw invalidArgument(
      "A scope must be { scope: 'user', appName, userId }, { scope: 'session', appName, sessionId } or { scope: 'app', appName }. Pass memoryScopeId(scope) to a store, not the scope object.",
    );
  }
  const key: unknown[] = [kind];
  for (const name of MEMBERS[kind]) {
    assertId(given[name], name);
    key.push(given[name]);
  }
  const names: readonly string[] = MEMBERS[kind];
  for (const name in given) {
    if (name !== 'scope' && !names.includes(name))
      throw invalidArgument(`The scope '${kind}' has no member ${quote(name)}.`);
  }
  return JSON.stringify(key);
}

/**
 * Returns a string that identifies a scope of a tenant of a store.
 *
 * @param key The scope's {@link memoryScopeKey}.
 */
export function tenantScopeKey(store: Pick<MemoryStore, 'tenant'>, key: string, options: MemoryStoreOptions): string {
  return JSON.stringify([store.tenant(options), key]);
}

/** Returns the scope of a {@link memoryScopeKey}. */
export function memoryScopeOfKey(key: string): MemoryScopeId {
  const [kind, ...ids] = JSON.parse(key) as [MemoryScopeId['scope'], ...string[]];
  const members = MEMBERS[kind].map((name, i) => [name, ids[i]]);
  return Object.freeze({ scope: kind, ...Object.fromEntries(members) }) as MemoryScopeId;
}

/** Describes the scope of a {@link memoryScopeKey} for a message: `user "ada" of app "shop"`. */
export function describeMemoryScope(key: string): string {
  const scope = memoryScopeOfKey(key);
  const app = `app ${quote(scope.appName)}`;
  if (scope.scope === 'app') return app;
  return scope.scope === 'user'
    ? `user ${quote(scope.userId)} of ${app}`
    : `session ${quote(scope.sessionId)} of ${app}`;
}
