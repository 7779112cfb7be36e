import type { CollectionReference } from '@google-cloud/firestore';
import { MOST_DELETES_AT_ONCE } from './database.ts';
import type { Tenant } from './tenant.ts';

/** What an erasure removed. */
export interface EraseResult {
  /** Documents of sessions. */
  sessions: number;
  /** Documents of snapshots. */
  snapshots: number;
  /** Documents of shards. */
  shards: number;
  /** Records of apps and users. */
  scopes: number;
}

/** Removes every document of a tenant; an interrupted one is ended by running it again. */
export async function erase(tenant: Tenant): Promise<EraseResult> {
  const { snapshots, pointers, shards, scopes, parents } = tenant.collections;
  // Without snapshots there is nothing to be resumed; the pointers go last, so that a session that is half erased is not begun anew.
  const result = {
    snapshots: await empty(tenant, snapshots),
    shards: await empty(tenant, shards),
    scopes: await empty(tenant, scopes),
    sessions: 0,
  };
  await empty(tenant, parents);
  result.sessions = await empty(tenant, pointers);
  tenant.caches.clear();
  return result;
}

async function empty(tenant: Tenant, collection: CollectionReference): Promise<number> {
  for (let removed = 0; ;) {
    const found = await tenant.database.page(collection, { limit: MOST_DELETES_AT_ONCE });
    if (found.length === 0) return removed;
    await tenant.database.deleteAll(found.map((document) => document.ref));
    removed += found.length;
  }
}
