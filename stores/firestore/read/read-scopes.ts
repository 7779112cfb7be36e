import { FieldPath } from '@google-cloud/firestore';
import { copyJson } from '../../../src/json/value.ts';
import type { Page, PageOptions, ScopeId, ScopeRecord } from '../../../src/store/contract.ts';
import { checkPage, pageOf } from '../../../src/store/list/page.ts';
import { scopeOfKey } from '../../../src/store/records/record-scopes.ts';
import { assertOwnDocument } from '../format/foreign-layout.ts';
import { unpackText } from '../format/packed-text.ts';
import { readScopeDocument, type ScopeDocument } from '../format/scope-document.ts';
import type { TenantDatabase } from '../tenant-database.ts';

/** The documents of records. Keys are `scopeKey`s. */
export async function readScopeDocuments(tenant: TenantDatabase, keys: readonly string[]): Promise<ScopeDocument[]> {
  const documents = await tenant.database.getShared(keys.map((key) => tenant.scopeRef(key)));
  const records = await Promise.all(
    documents.map((document, i) => readScopeDocument(document, keys[i]!, tenant.sealer('scope', keys[i]!))),
  );
  for (const [i, key] of keys.entries()) tenant.rememberScope(key, records[i]!);
  return records;
}

/** The records in the order of `keys`; an empty one for each that does not exist. */
export async function readScopes(tenant: TenantDatabase, keys: readonly string[]): Promise<ScopeRecord[]> {
  const distinct = [...new Set(keys)];
  const found = await readScopeDocuments(tenant, distinct);
  const records = new Map(found.map(({ record }, i) => [distinct[i]!, record]));
  // For a record that is named twice, returns two copies.
  return keys.map((key) => copyJson(records.get(key) ?? {}));
}

/** A page of the names of all records, in the order of their documents. */
export async function listScopes({ database, scopes }: TenantDatabase, options: PageOptions): Promise<Page<ScopeId>> {
  const { limit, after } = checkPage(options, ['string']);
  const ordered = scopes.orderBy(FieldPath.documentId()).select('v', 'scope');
  const found = await database.query((after ? ordered.startAfter(after[0]) : ordered).limit(limit + 1));
  const keys = await Promise.all(
    found.map((document) => {
      assertOwnDocument(document.data(), 'A record');
      return unpackText(document.get('scope') as Buffer);
    }),
  );
  return pageOf(found, limit, ({ id }, i) => ({ position: [id], item: scopeOfKey(keys[i]!) }));
}
