import {
  keepsScopes,
  type SaveSnapshotOptions,
  type ScopeId,
  type ScopeRecord,
  type ScopeStore,
  type SessionStore,
  type SessionStoreOptions,
} from '../contract.ts';
import { logError } from '../../errors.ts';
import { checkScopeChanges } from '../records/record-scopes.ts';

/** The two stores of a migration. Records of `from` are read if it keeps records of users and apps. */
export interface ScopeStores<S> {
  readonly from: SessionStore<S>;
  readonly to: ScopeStore;
}

type ReadOptions = SessionStoreOptions & { scopes: readonly ScopeId[] };

/** The records of `to`, and those of `from` that `to` does not have. */
export async function readScopesOfBoth<S>({ from, to }: ScopeStores<S>, options: ReadOptions): Promise<ScopeRecord[]> {
  const records = await to.readScopes(options);
  const missing = options.scopes.filter((_, i) => isEmpty(records[i]!));
  if (missing.length === 0 || !keepsScopes(from)) return records;
  const older = await from.readScopes({ ...options, scopes: missing });
  return records.map((record) => (isEmpty(record) ? older.shift()! : record));
}

/**
 * Saves in `to`. A change of a record that only `from` has gets the values of `from`. A record that the save empties is also removed from
 * `from`, otherwise its values would be read again.
 *
 * @param save Saves with the given options in `to`.
 */
export async function saveWithScopes<S>(
  from: SessionStore<S>,
  options: SaveSnapshotOptions,
  save: (options: SaveSnapshotOptions) => Promise<string | null>,
): Promise<string | null> {
  const { context } = options;
  const scopes = [...checkScopeChanges(options.scopes).values()];
  if (scopes.length === 0 || !keepsScopes(from)) return save(options);
  const older = await from.readScopes({ context, scopes: scopes.map(({ id }) => id) });
  const emptied = new Set<ScopeId>();
  const changes = scopes.map(({ id, change }, i) => ({
    id,
    // It may run more than once.
    change: (record: ScopeRecord): ScopeRecord | undefined => {
      const old = older[i]!;
      const changed = change(isEmpty(record) ? structuredClone(old) : record);
      if (changed && isEmpty(changed) && !isEmpty(old)) emptied.add(id);
      else emptied.delete(id);
      return changed;
    },
  }));
  const saved = await save({ ...options, scopes: changes });
  if (saved === null) return saved;
  for (const scope of emptied)
    await from.deleteScope({ context, scope }).catch((error: unknown) => {
      // The save is made. If it failed now, it would not be tried again, because its snapshot is stored.
      logError(
        `The values of ${JSON.stringify(scope)} could not be removed from the store that migratingStore reads from, so they are read again. ` +
          'Remove them with deleteScope.',
        error,
      );
    });
  return saved;
}

export async function deleteScopeOfBoth<S>(
  { from, to }: ScopeStores<S>,
  options: SessionStoreOptions & { scope: ScopeId },
): Promise<boolean> {
  const wasInFrom = keepsScopes(from) && (await from.deleteScope(options));
  return (await to.deleteScope(options)) || wasInFrom;
}

function isEmpty(record: ScopeRecord): boolean {
  return Object.keys(record).length === 0;
}
