import { FieldPath, type CollectionReference } from '@google-cloud/firestore';
import type { TenantDatabase } from '../tenant-database.ts';

/** The documents that an erasure removed. */
export interface EraseResult {
  /** Documents of sessions. */
  sessions: number;
  /** Documents of snapshots. */
  snapshots: number;
  /** Documents of shards. */
  shards: number;
  /** Records of apps and users. */
  scopes: number;
  /** Records of sessions. */
  records: number;
}

/** Removes every document of a tenant; an interrupted erasure is finished by running it again. */
export async function erase(tenant: TenantDatabase): Promise<EraseResult> {
  await tenant.hasSnapshots();
  // The pointers go last, so that a session can't begin again while a part of it remains.
  const result = {
    snapshots: await empty(tenant, tenant.snapshots),
    shards: await empty(tenant, tenant.shards),
    scopes: await empty(tenant, tenant.scopes),
    records: await empty(tenant, tenant.records),
    sessions: await empty(tenant, tenant.pointers),
  };
  tenant.caches.clear();
  return result;
}

async function empty({ database }: TenantDatabase, collection: CollectionReference): Promise<number> {
  let removed = 0;
  for await (const page of database.pages(collection.orderBy(FieldPath.documentId()).select())) {
    removed += await database.remove(page.map(({ ref }) => ({ ref })));
  }
  return removed;
}
