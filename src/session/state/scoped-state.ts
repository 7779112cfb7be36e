import { addressTo, failedPrecondition, quote } from '../../errors.ts';
import { copyJson, getMember, setMember, type Json } from '../../json/value.ts';
import type { ScopeChange, ScopeId, ScopeRecord } from '../../store/contract.ts';
import { PlainMembers, prefixedNames, type PlainState } from './plain-state.ts';
import { SharedScope, updatedValue, type StateUpdate } from './shared-scope.ts';
import { formatStateKey, parseStateKey, type StateKey } from './state-keys.ts';
import { StateRules, type MemberSchema, type StateLimits } from './state-values.ts';

/** All keys of a state with their types: those of the session unprefixed, those of its user and its app with their prefix. */
export type StateShape<Plain, User, App> = Plain & {
  [K in keyof User & string as `user:${K}`]: User[K];
} & { [K in keyof App & string as `app:${K}`]: App[K] } & { [key: `temp:${string}`]: Json };

/**
 * The key, if its prefix's scope contains it; a scope of unknown type contains any key. Where plain keys may be any, every string is a
 * key of {@link StateShape}.
 */
export type StateKeyOf<K, User, App> = K extends `user:${infer Name}`
  ? Name extends (unknown extends User ? string : keyof User)
    ? K
    : never
  : K extends `app:${infer Name}`
    ? Name extends (unknown extends App ? string : keyof App)
      ? K
      : never
    : K;

/** A record as it was read when the turn began. */
export interface OpenScope {
  /** The record's scope and id. */
  readonly id: ScopeId;
  /** Its keys, without their prefix. Copied. */
  readonly record: ScopeRecord;
}

/** Options of {@link ScopedState}. */
export interface ScopedStateOptions {
  /** Access to the keys without a prefix. */
  plain: PlainState;
  /** Optional. Without it, `user:` keys are refused. */
  user?: OpenScope;
  /** Optional. Without it, `app:` keys are refused. */
  app?: OpenScope;
  /** The reason why keys of a missing scope are refused, as the end of a sentence. Default: the requirements of the scope. */
  missing?: {
    /** Of `user:` keys. */
    readonly user?: string;
    /** Of `app:` keys. */
    readonly app?: string;
  };
  /** The `temp:` keys and values, to share them with other sessions of the same call. Never stored. Default: a map of its own. */
  temp?: Map<string, Json>;
  /** Schemas of the keys: Zod objects, each member checked by itself. */
  schemas?: {
    /** Of the keys without a prefix. */
    plain?: MemberSchema;
    /** Of the `user:` keys, named without their prefix. */
    user?: MemberSchema;
    /** Of the `app:` keys, named without their prefix. */
    app?: MemberSchema;
  };
  /** Size limits for keys and values. */
  limits?: StateLimits;
}

/** The parts of a state. */
interface Parts {
  readonly plain: PlainMembers;
  readonly user: SharedScope | undefined;
  readonly app: SharedScope | undefined;
  readonly missing: { readonly user?: string; readonly app?: string };
  temp: Map<string, Json>;
  /** Whether the `temp:` keys end with this state's turns. Shared ones of another session's turn do not. */
  readonly ownsTemp: boolean;
  readonly rules: StateRules;
}

/** Module data, for the runtime's own access. */
const parts = new WeakMap<object, Parts>();

function partsOf(state: object): Parts {
  return parts.get(state)!;
}

/**
 * A session's state as one map, while a turn works on it. The prefix of a key determines the lifetime of its value:
 *
 * - `step`: in this session. Earlier snapshots keep their value of that time.
 * - `user:theme`: with the user, in all sessions of the app.
 * - `app:discount`: with the app, for everyone.
 * - `temp:draft`: until the turn ends. It is never stored.
 *
 * A turn sees its own changes at once; other turns see them when it is saved. A turn that fails or is aborted changes nothing. Values are JSON
 * and are copied when they are read and written. An invalid key or value is refused by a {@link StateError}, without any change.
 *
 * @example
 * state.set('step', 'payment');
 * state.update('user:orders', (orders) => (orders ?? 0) + 1);
 * state.get('user:orders'); // 1
 */
export class ScopedState<Plain = { [key: string]: Json }, User = ScopeRecord, App = ScopeRecord> {
  /** @throws `INVALID_ARGUMENT` for invalid limits. */
  constructor({ plain, user, app, missing = {}, temp, schemas, limits }: ScopedStateOptions) {
    const rules = new StateRules(limits, { session: schemas?.plain, user: schemas?.user, app: schemas?.app });
    parts.set(this, {
      plain: new PlainMembers(plain),
      user: user && new SharedScope(user.id, copyJson(user.record), rules),
      app: app && new SharedScope(app.id, copyJson(app.record), rules),
      missing,
      temp: temp ?? new Map<string, Json>(),
      ownsTemp: temp === undefined,
      rules,
    });
    // Frozen, so that setting a member on it throws: such a value would be in no snapshot.
    Object.freeze(this);
  }

  /**
   * A copy of the value; `undefined` when there is none.
   *
   * @throws StateError when the stored value does not fit the schema; replace it by {@link set} or {@link delete}.
   */
  get<K extends keyof StateShape<Plain, User, App> & string>(
    key: K & StateKeyOf<K, User, App>,
  ): StateShape<Plain, User, App>[K] | undefined {
    const place = placeOf(this, key);
    const value = read(this, place);
    if (value === undefined) return undefined;
    partsOf(this).rules.assertFits(place, value);
    return copyJson(value) as StateShape<Plain, User, App>[K];
  }

  /** Sets the key to a copy of the value. */
  set<K extends keyof StateShape<Plain, User, App> & string>(
    key: K & StateKeyOf<K, User, App>,
    value: StateShape<Plain, User, App>[K],
  ): void {
    const place = placeOf(this, key);
    if (isShared(place)) sharedScope(this, place).set(place.name, value);
    else put(this, place, partsOf(this).rules.accept(place, value));
  }

  /**
   * Replaces the value by the result of `fn`; `undefined` removes the key. Concurrent updates of one `user:` or `app:` key are not lost: when the
   * turn is saved, `fn` runs again on the value of that time. So it may run several times, and its result must depend on its argument
   * alone.
   *
   * @param fn Gets its own copy, `undefined` when there is no value. Its errors are thrown, now or by the save.
   */
  update<K extends keyof StateShape<Plain, User, App> & string>(
    key: K & StateKeyOf<K, User, App>,
    fn: (value: StateShape<Plain, User, App>[K] | undefined) => StateShape<Plain, User, App>[K] | undefined,
  ): void {
    const place = placeOf(this, key);
    const update = fn as StateUpdate;
    if (isShared(place)) return sharedScope(this, place).update(place.name, update);
    const next = updatedValue(read(this, place), update, place, partsOf(this).rules);
    if (next === undefined) remove(this, place);
    else put(this, place, next);
  }

  /** Removes the key. */
  delete<K extends keyof StateShape<Plain, User, App> & string>(key: K & StateKeyOf<K, User, App>): void {
    remove(this, placeOf(this, key));
  }

  /**
   * A copy of the whole state, each key with its prefix.
   *
   * @param options `temp: false` omits the `temp:` keys. Default: they are included.
   */
  toObject({ temp = true }: { temp?: boolean } = {}): { [key: string]: Json } {
    const all: { [key: string]: Json } = {};
    visitEach(this, temp, (key, value) => setMember(all, key, copyJson(value)));
    return all;
  }

  /** The value that `JSON.stringify` writes: all keys except `temp:` ones, which are never stored. */
  toJSON(): { [key: string]: Json } {
    return this.toObject({ temp: false });
  }
}

/** Calls `visit` with every key with its prefix, and its value itself. */
function visitEach(state: object, withTemp: boolean, visit: (key: string, value: unknown) => void): void {
  const { plain, user, app, temp } = partsOf(state);
  for (const [name, value] of Object.entries(plain.view ?? {})) {
    // A member of the custom state whose name has a prefix is not a value of that scope.
    if (parseStateKey(name).scope === 'session') visit(name, value);
  }
  const add = (scope: StateKey['scope'], entries: Iterable<[string, unknown]>): void => {
    for (const [name, value] of entries) visit(formatStateKey({ scope, name }), value);
  };
  add('user', Object.entries(user?.view ?? {}));
  add('app', Object.entries(app?.view ?? {}));
  if (withTemp) add('temp', temp);
}

function placeOf(state: object, key: unknown): StateKey {
  const rules: StateRules = partsOf(state).rules;
  rules.assertKey(key);
  return parseStateKey(key);
}

function isShared({ scope }: StateKey): boolean {
  return scope === 'user' || scope === 'app';
}

function read(state: object, place: StateKey): Json | undefined {
  const { plain, temp } = partsOf(state);
  if (place.scope === 'temp') return temp.get(place.name);
  const members = isShared(place) ? sharedScope(state, place).view : (plain.view ?? {});
  return getMember(members, place.name) as Json | undefined;
}

/** Sets a plain or a `temp:` key. */
function put(state: object, { scope, name }: StateKey, value: Json): void {
  const { plain, temp } = partsOf(state);
  if (scope === 'temp') temp.set(name, value);
  else plain.change(name, (members) => setMember(members, name, value));
}

function remove(state: object, place: StateKey): void {
  const { plain, temp } = partsOf(state);
  if (place.scope === 'temp') temp.delete(place.name);
  else if (isShared(place)) sharedScope(state, place).delete(place.name);
  else if (getMember(plain.view ?? {}, place.name) !== undefined) {
    plain.change(place.name, (members) => delete members[place.name]);
  }
}

function sharedScope(state: object, { scope, name }: StateKey): SharedScope {
  const { user, app, missing } = partsOf(state);
  const shared = scope === 'user' ? user : app;
  if (shared) return shared;
  const owner = scope === 'user' ? 'a user' : 'an app';
  const why =
    missing[scope as ScopeId['scope']] ??
    `'${scope}:' keys need a store that keeps scopes and a session that belongs to ${owner}`;
  const message = `State key ${quote(formatStateKey({ scope, name }))} can't be used here: ${why}. Without a prefix the key belongs to the session.`;
  throw addressTo('operator', failedPrecondition(message));
}

/** The changes that a save must apply to the shared records: its `scopes`. */
export function scopeChangesOf(state: object): ScopeChange[] {
  const { user, app } = partsOf(state);
  return [user, app].flatMap((scope) => scope?.change() ?? []);
}

/** Begins another turn with the records that were read for it. */
export function renewState(state: object, records: { user?: ScopeRecord; app?: ScopeRecord }): void {
  const { user, app } = partsOf(state);
  if (records.user) user?.renew(copyJson(records.user));
  if (records.app) app?.renew(copyJson(records.app));
}

/**
 * Ends the turn, and its own `temp:` keys with it.
 *
 * @param saved The saved changes; later changes belong to the next turn. Optional: without it the turn did not complete, and all its changes
 *   are undone.
 */
export function endScopes(state: object, saved?: readonly ScopeChange[]): void {
  const own = partsOf(state);
  for (const scope of [own.user, own.app]) {
    if (saved) scope?.markSaved(saved);
    else scope?.drop();
  }
  // A new map, so that the next turn does not see what late work of this turn sets.
  if (own.ownsTemp) own.temp = new Map();
}

/** The current `temp:` values, for a session that shares them. */
export function temporaryOf(state: object): Map<string, Json> {
  return partsOf(state).temp;
}

/**
 * The part of the state that may be shown outside: all keys except `temp:` ones. Values are shared: read them synchronously. `undefined` when
 * the custom state is all there is to show, and when it has no keys.
 */
export function lastingView(state: object): { readonly [key: string]: unknown } | undefined {
  const { user, app, plain } = partsOf(state);
  if (!(user || app) || !plain.isMap) return undefined;
  const all: { [key: string]: unknown } = {};
  visitEach(state, false, (key, value) => setMember(all, key, value));
  return all;
}

/** The state for prompts: a copy of all keys. `undefined` when the custom state is all there is, and when it has no keys. */
export function promptView(state: ScopedState): { [key: string]: Json } | undefined {
  const { user, app, temp, plain } = partsOf(state);
  const hasMore = user || app || temp.size > 0 || prefixedNames(plain.view).length > 0;
  return hasMore && plain.isMap ? state.toObject() : undefined;
}
