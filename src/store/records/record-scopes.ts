import { invalidArgument, quote, StateError } from '../../errors.ts';
import { isPlainObject } from '../../json/fault.ts';
import { parsePointer, formatPointer } from '../../json/pointer.ts';
import { jsonBytes } from '../../json/size.ts';
import { copyJson, jsonEqual, JsonValueError } from '../../json/value.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { ScopeChange, ScopeId, ScopeRecord } from '../contract.ts';

/** The most bytes of a record as JSON text in UTF-8. Such a record fits easily into one document of every database that we know. */
export const MAX_RECORD_BYTES = 512 * 1024;

/**
 * Returns a string that identifies a record, for maps and for names that are hashes.
 *
 * @throws `INVALID_ARGUMENT` if `id` is not the id of a record.
 */
export function scopeKey(id: ScopeId): string {
  const { scope, appName, userId } = (id ?? {}) as { [member: string]: unknown };
  if (scope !== 'app' && scope !== 'user') {
    throw invalidArgument("A scope must be { scope: 'app', appName } or { scope: 'user', appName, userId }.");
  }
  assertId(appName, 'appName');
  if (scope === 'user') assertId(userId, 'userId');
  else if (userId !== undefined)
    throw invalidArgument("The scope 'app' has no userId. Use the scope 'user' or omit userId.");
  return JSON.stringify(scope === 'app' ? [scope, appName] : [scope, appName, userId]);
}

/**
 * Returns the {@link scopeKey}s of the records of a call.
 *
 * @throws `INVALID_ARGUMENT` if `scopes` is not a list of record ids.
 */
export function checkScopes(options: { readonly scopes: readonly ScopeId[] } | undefined): string[] {
  const scopes: unknown = options?.scopes;
  if (!Array.isArray(scopes)) throw invalidArgument('scopes must be a list of scopes.');
  return (scopes as readonly ScopeId[]).map(scopeKey);
}

/** Returns the record id of a {@link scopeKey}. */
export function scopeOfKey(key: string): ScopeId {
  const [scope, appName, userId] = JSON.parse(key) as [ScopeId['scope'], string, string];
  return scope === 'app' ? { scope, appName } : { scope, appName, userId };
}

/** Describes the record of a {@link scopeKey} for a message: `user "ada" of app "shop"`. */
export function describeScope(key: string): string {
  const id = scopeOfKey(key);
  return id.scope === 'app' ? `app ${quote(id.appName)}` : `user ${quote(id.userId)} of app ${quote(id.appName)}`;
}

/**
 * Returns the record changes of a save, by {@link scopeKey}. Called before the mutator.
 *
 * @throws `INVALID_ARGUMENT` for an invalid record id, a record id that occurs twice, or an invalid change.
 */
export function checkScopeChanges(scopes: readonly ScopeChange[] | undefined): Map<string, ScopeChange> {
  const changes = new Map<string, ScopeChange>();
  if (scopes === undefined) return changes;
  if (!Array.isArray(scopes)) throw invalidArgument('scopes must be a list of { id, change }.');
  for (const scoped of scopes as readonly ScopeChange[]) {
    const key = scopeKey(scoped?.id);
    if (typeof scoped.change !== 'function') {
      throw invalidArgument(`The change of the state of ${describeScope(key)} must be a function.`);
    }
    if (changes.has(key)) {
      throw invalidArgument(`The state of ${describeScope(key)} is in scopes twice. Combine the changes.`);
    }
    changes.set(key, scoped);
  }
  return changes;
}

/**
 * Runs a change on a record. A store calls it in the atomic part of the save, after the mutator.
 *
 * @param current The current record, which is copied. Default: an empty record.
 * @returns The store's own copy of the new record, empty if the record must be removed; `undefined` if it does not change.
 * @throws `INVALID_ARGUMENT` if the change does not return a record, or returns a record that is too large.
 */
export function runScopeChange({ id, change }: ScopeChange, current: ScopeRecord = {}): ScopeRecord | undefined {
  const answer: unknown = change(copyJson(current));
  if (answer === undefined) return undefined;
  if (answer instanceof Promise) {
    answer.catch(() => {});
    throw invalidArgument(
      `The change of the state of ${describeScope(scopeKey(id))} must return a record, not a promise. Await before you call saveSnapshot.`,
    );
  }
  if (!isPlainObject(answer)) {
    throw invalidArgument(
      `The change of the state of ${describeScope(scopeKey(id))} must return a plain object or undefined.`,
    );
  }
  const next = copyRecord(answer as ScopeRecord);
  const bytes = jsonBytes(next, MAX_RECORD_BYTES);
  if (bytes > MAX_RECORD_BYTES) {
    throw invalidArgument(
      `The state of ${describeScope(scopeKey(id))} would take more than ${MAX_RECORD_BYTES} bytes. Remove keys, or store large values elsewhere.`,
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
