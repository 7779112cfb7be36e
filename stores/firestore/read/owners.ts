import { FieldPath, type Query, type QueryDocumentSnapshot } from '@google-cloud/firestore';
import { ownerOfOrder, ownerOfShard } from '../format/names.ts';
import { HEAD_FIELDS } from '../format/snapshot-document.ts';
import type { TenantDatabase } from '../tenant-database.ts';

/**
 * The shards of each owner. Only their names are read.
 *
 * @param sessionKey The key of the only session to list. Default: all shards.
 */
export async function shardsByOwner(
  { database, shards }: TenantDatabase,
  sessionKey = '',
): Promise<Map<string, QueryDocumentSnapshot[]>> {
  const byOwner = new Map<string, QueryDocumentSnapshot[]>();
  const range = shards.orderBy(FieldPath.documentId()).startAt(`s${sessionKey}`).endBefore(`s${sessionKey}~`);
  for await (const shard of database.documents(range.select())) {
    const owner = ownerOfShard(shard.id);
    const known = byOwner.get(owner);
    if (known) known.push(shard);
    else byOwner.set(owner, [shard]);
  }
  return byOwner;
}

/** The first snapshot of each owner, without its state. */
export async function* firstOfOwners({
  database,
  snapshots,
}: TenantDatabase): AsyncGenerator<[owner: string, first: QueryDocumentSnapshot]> {
  const ordered = snapshots
    .orderBy('at')
    .limit(1)
    .select(...HEAD_FIELDS, 'shards');
  for (let after = ''; ;) {
    const [first] = await database.query(ordered.startAfter(after));
    if (!first) return;
    const owner = ownerOfOrder(first.get('at') as string);
    yield [owner, first];
    after = `${owner};`;
  }
}

/** All snapshots of an owner, in their order. */
export function snapshotsOf({ snapshots }: TenantDatabase, owner: string): Query {
  return snapshots.orderBy('at').startAt(owner).endBefore(`${owner};`);
}
