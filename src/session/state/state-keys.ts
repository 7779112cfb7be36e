/** Where a key of a session's state lives: in the session, with its user, with its app, or in the turn alone. */
export type StateScope = 'session' | 'user' | 'app' | 'temp';

/** A key as the session's user writes it, taken apart. */
export interface StateKey {
  readonly scope: StateScope;
  /** The key without its prefix. */
  readonly name: string;
}

const PREFIXES = ['user', 'app', 'temp'] as const;

/** Takes a key apart. Only the three prefixes mean something; any other key, `other:x` too, is the session's as it stands. */
export function parseStateKey(key: string): StateKey {
  const scope = PREFIXES.find((prefix) => key.startsWith(`${prefix}:`));
  return scope ? { scope, name: key.slice(scope.length + 1) } : { scope: 'session', name: key };
}

/** The key that {@link parseStateKey} takes apart. */
export function formatStateKey({ scope, name }: StateKey): string {
  return scope === 'session' ? name : `${scope}:${name}`;
}
