import type { Timestamp } from '@google-cloud/firestore';
import { invalidArgument } from '../../../src/errors.ts';
import type { SaveRequest } from '../../../src/store/base-session-store.ts';
import type { ScopeRecord } from '../../../src/store/contract.ts';
import { runScopeChange } from '../../../src/store/records/record-scopes.ts';
import { AlreadySaved } from '../failures.ts';
import { writeScope, type ScopeDocument, type ScopeWrite } from '../format/scope-document.ts';
import { readScopeDocuments } from '../read/read-scopes.ts';
import type { TenantDatabase } from '../tenant-database.ts';

/** Limit for all records of a save: they must be in the snapshot's own commit. */
const MOST_BYTES = 2 * 1024 * 1024;

type Changes = SaveRequest<unknown>['scopes'];

/** A record before and after its change. */
interface Changed {
  readonly key: string;
  readonly before: ScopeDocument;
  readonly next: ScopeRecord;
}

/**
 * Runs the changes of records, and plans their writes. Cached records are used if possible, because the commit revalidates each.
 *
 * @param options.nonce Names the save.
 * @param options.usesCache Whether records are taken from the cache. The error of a change is then not final: the record is read.
 * @throws `AlreadySaved` when an earlier commit of the save changed a record, and errors of the changes.
 */
export async function planScopes(
  tenant: TenantDatabase,
  changes: Changes,
  { nonce, usesCache }: { nonce: string; usesCache: boolean },
): Promise<ScopeWrite[]> {
  const change = (key: string, before: ScopeDocument): Changed => {
    if (before.by.includes(nonce)) throw new AlreadySaved();
    return { key, before, next: runScopeChange(changes.get(key)!, before.record) ?? before.record ?? {} };
  };
  const changeCached = (key: string): Changed | undefined => {
    const known = usesCache ? tenant.caches.scopes.get(tenant.keyOf(key)) : undefined;
    try {
      return known && change(key, known);
    } catch {
      return undefined;
    }
  };
  const keys = [...changes.keys()];
  const cached = keys.map(changeCached);
  const read = await readScopeDocuments(
    tenant,
    keys.filter((_, i) => cached[i] === undefined),
  );
  const changed = cached.map((one, i) => one ?? change(keys[i]!, read.shift()!));
  const writes = changed.map(({ key, before, next }) => {
    const sealer = tenant.sealer('scope', key, () => readScopeDocuments(tenant, [key]));
    return writeScope(before, next, { key, nonce, sealer });
  });
  return assertFitting(await Promise.all(writes));
}

function assertFitting(written: ScopeWrite[]): ScopeWrite[] {
  const bytes = bytesOf(written);
  if (bytes <= MOST_BYTES) return written;
  throw invalidArgument(
    `The records that one save changes may take ${MOST_BYTES} bytes together; these take ${bytes}. Change them in several saves.`,
  );
}

export function bytesOf(written: readonly ScopeWrite[]): number {
  return written.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Caches the records that a commit wrote, for the next save of this process. */
export function rememberScopes(
  tenant: TenantDatabase,
  written: readonly ScopeWrite[],
  times: readonly Timestamp[],
): void {
  for (const [i, { key, after }] of written.entries()) {
    tenant.rememberScope(key, { ...after, updateTime: after.record && times[i] });
  }
}
