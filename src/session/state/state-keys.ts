/** The scope of a state key: the session, its user, its app, or the turn alone. */
export type StateScope = 'session' | 'user' | 'app' | 'temp';

/** A state key split into scope and name. */
export interface StateKey {
  readonly scope: StateScope;
  /** The key without its prefix. */
  readonly name: string;
}

const PREFIXES = ['user', 'app', 'temp'] as const;

/** Splits a key. Only the three prefixes have a meaning; any other key, such as `other:x`, is a plain key of the session. */
export function parseStateKey(key: string): StateKey {
  const scope = PREFIXES.find((prefix) => key.startsWith(`${prefix}:`));
  return scope ? { scope, name: key.slice(scope.length + 1) } : { scope: 'session', name: key };
}

/** Inverse of {@link parseStateKey}. */
export function formatStateKey({ scope, name }: StateKey): string {
  return scope === 'session' ? name : `${scope}:${name}`;
}
