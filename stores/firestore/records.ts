import { copyJson } from '../../src/json/value.ts';
import type { ScopeRecord } from '../../src/store/contract.ts';
import { isMissing } from './failures.ts';
import { readRecords } from './record-document.ts';
import type { Tenant } from './tenant.ts';

/** The records in the order of `keys`, empty ones where there are none. */
export async function readScopes(tenant: Tenant, keys: readonly string[]): Promise<ScopeRecord[]> {
  const distinct = [...new Set(keys)];
  const found = await readRecords(tenant, distinct);
  const records = new Map(found.map(({ record }, i) => [distinct[i]!, record]));
  // A record that is named twice is handed out as two copies.
  return keys.map((key) => copyJson(records.get(key) ?? {}));
}

/** Removes a record, whatever is in it; answers whether there was one. */
export async function deleteScope(tenant: Tenant, key: string): Promise<boolean> {
  const { database } = tenant;
  const ref = tenant.recordRef(key);
  tenant.forgetRecord(key);
  const { exists } = await database.get(ref, []);
  if (!exists) return false;
  try {
    await database.commit([{ kind: 'delete', ref, mustExist: true }]);
    return true;
  } catch (error) {
    // Somebody else has just removed it.
    if (isMissing(error)) return false;
    throw error;
  }
}
