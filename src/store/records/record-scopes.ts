import { invalidArgument, quote, StateError } from '../../errors.ts';
import { isPlain } from '../../json/fault.ts';
import { parsePointer, formatPointer } from '../../json/pointer.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, jsonEqual, JsonValueError } from '../../json/value.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { ScopeChange, ScopeId, ScopeRecord } from '../contract.ts';

/** The most that a record may take as JSON text in UTF-8: with room to spare it fits into one document of every database we know. */
export const MAX_RECORD_BYTES = 512 * 1024;

/**
 * A text for each record, different for different records: for maps, and for names that are made by hashing.
 *
 * @throws `INVALID_ARGUMENT` when `id` names no record.
 */
export function scopeKey(id: ScopeId): string {
  assertScopeId(id);
  return JSON.stringify(id.scope === 'app' ? ['app', id.appName] : ['user', id.appName, id.userId]);
}

/**
 * The records that a call means.
 *
 * @throws `INVALID_ARGUMENT` for what is no list of names of records.
 */
export function checkScopes(options: { readonly scopes: readonly ScopeId[] } | undefined): readonly ScopeId[] {
  const scopes: unknown = options?.scopes;
  if (!Array.isArray(scopes)) throw invalidArgument('scopes must be a list of scopes.');
  for (const id of scopes as readonly unknown[]) assertScopeId(id);
  return scopes as readonly ScopeId[];
}

/**
 * The record that a call means.
 *
 * @throws `INVALID_ARGUMENT` when that is no name of a record.
 */
export function checkScope(options: { readonly scope: ScopeId } | undefined): ScopeId {
  const id: unknown = options?.scope;
  assertScopeId(id);
  return id;
}

/** @throws `INVALID_ARGUMENT` unless it names a record. */
function assertScopeId(id: unknown): asserts id is ScopeId {
  const { scope, appName, userId } = (id ?? {}) as { [member: string]: unknown };
  if (scope !== 'app' && scope !== 'user') {
    throw invalidArgument("A scope is { scope: 'app', appName } or { scope: 'user', appName, userId }.");
  }
  assertId(appName, 'appName');
  if (scope === 'user') assertId(userId, 'userId');
  else if (userId !== undefined) throw invalidArgument("The scope 'app' has no userId; the scope 'user' has.");
}

/** The record that a {@link scopeKey} names. */
export function scopeOfKey(key: string): ScopeId {
  const [scope, appName, userId] = JSON.parse(key) as [ScopeId['scope'], string, string];
  return scope === 'app' ? { scope, appName } : { scope, appName, userId };
}

/** A record in a message: `user "ada" of app "shop"`. */
export function describeScope(id: ScopeId): string {
  return id.scope === 'app' ? `app ${quote(id.appName)}` : `user ${quote(id.userId)} of app ${quote(id.appName)}`;
}

/**
 * The changes of records that a save makes, by {@link scopeKey}. Called before the mutator.
 *
 * @throws `INVALID_ARGUMENT` for what names no record, names one twice, or is no change.
 */
export function checkScopeChanges(scopes: readonly ScopeChange[] | undefined): Map<string, ScopeChange> {
  const changes = new Map<string, ScopeChange>();
  if (scopes === undefined) return changes;
  if (!Array.isArray(scopes)) throw invalidArgument('scopes must be a list of { id, change }.');
  for (const scoped of scopes as readonly ScopeChange[]) {
    const key = scopeKey(scoped?.id);
    if (typeof scoped.change !== 'function') {
      throw invalidArgument(`The change of the state of ${describeScope(scoped.id)} must be a function.`);
    }
    if (changes.has(key)) {
      throw invalidArgument(`The state of ${describeScope(scoped.id)} is named twice in scopes; make it one change.`);
    }
    changes.set(key, scoped);
  }
  return changes;
}

/**
 * Runs a change on a record; a store calls it inside the save's atomic part, after the mutator.
 *
 * @param current The record as it is; copied. Omitted: there is none.
 * @returns The store's own copy of the new record, empty when the record is to be removed; `undefined` when it does not change.
 * @throws `INVALID_ARGUMENT` when the change does not return a record, or returns one that is too large.
 */
export function runScopeChange({ id, change }: ScopeChange, current: ScopeRecord = {}): ScopeRecord | undefined {
  const answer: unknown = change(copyJson(current));
  if (answer === undefined) return undefined;
  if (answer instanceof Promise) {
    answer.catch(() => {});
    throw invalidArgument(
      `The change of the state of ${describeScope(id)} must answer a record, not a promise; do what it awaits before the save.`,
    );
  }
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer) || !isPlain(answer)) {
    throw invalidArgument(`The change of the state of ${describeScope(id)} must answer a plain object, or undefined.`);
  }
  const next = copyRecord(answer as ScopeRecord);
  const bytes = jsonBytes(next, MAX_RECORD_BYTES);
  if (bytes > MAX_RECORD_BYTES) {
    throw invalidArgument(
      `The state of ${describeScope(id)} would take more than ${MAX_RECORD_BYTES} bytes; remove keys, or keep large values elsewhere.`,
    );
  }
  return jsonEqual(current, next) ? undefined : next;
}

function copyRecord(record: ScopeRecord): ScopeRecord {
  try {
    return copyJson(record);
  } catch (error) {
    if (!JsonValueError.isInstance(error)) throw error;
    const [key = '', ...path] = parsePointer(error.path);
    throw new StateError({ key, path: formatPointer(path), reason: error.reason });
  }
}
