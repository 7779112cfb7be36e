import { FieldPath, Timestamp } from '@google-cloud/firestore';
import { copyJson } from '../../../src/json/value.ts';
import type {
  ListSessionsOptions,
  Page,
  PageOptions,
  SessionSummary,
  SnapshotMetadata,
} from '../../../src/store/contract.ts';
import { checkPage, pageOf } from '../../../src/store/list/page.ts';
import { orderKey } from '../format/names.ts';
import { LIST_FIELDS, orderField, readPointer, summaryOf, withTitle } from '../format/pointer-document.ts';
import { HEAD_FIELDS, readHead } from '../format/snapshot-document.ts';
import type { TenantDatabase } from '../tenant-database.ts';
import type { SnapshotReader } from './snapshot-reader.ts';

/** A page of the session's snapshots; positions are their places in the session's order of first saves. */
export async function listSnapshots(
  reader: SnapshotReader,
  sessionId: string,
  options: PageOptions,
): Promise<Page<SnapshotMetadata>> {
  const { limit, after: [after] = [-1] } = checkPage(options, ['number']);
  const pointer = await reader.livePointer(sessionId);
  if (!pointer) return { items: [] };
  const { owner } = pointer;
  const { tenant } = reader;
  const ordered = tenant.snapshots.where('at', '>=', orderKey(owner, after + 1)).where('at', '<', `${owner};`);
  const found = await tenant.database.query(
    ordered
      .orderBy('at')
      .limit(limit + 1)
      .select(...HEAD_FIELDS),
  );
  const heads = found.slice(0, limit).map((document) => readHead(document.id, document.data()));
  // A head that can't be decrypted is listed as it is stored; reading the snapshot throws the error.
  const opened = await Promise.all(heads.map((head) => reader.opened(head).catch(() => head)));
  return pageOf(found, limit, (_, i) => ({ position: [opened[i]!.seq], item: copyJson(opened[i]!.meta) }));
}

/** A page of the tenant's sessions, or of one owner's, the one written last first. A heartbeat is not a write of the session. */
export async function listSessions(
  tenant: TenantDatabase,
  options: ListSessionsOptions,
): Promise<Page<SessionSummary>> {
  const { limit, after } = checkPage(options, ['number', 'number', 'string']);
  const ordered = tenant.pointers
    .orderBy(orderField(options.ownerId), 'desc')
    .orderBy(FieldPath.documentId(), 'desc')
    .limit(limit + 1)
    .select(...LIST_FIELDS);
  const from = after && [new Timestamp(after[0], after[1]), after[2]];
  const found = await tenant.database.query(from ? ordered.startAfter(...from) : ordered);
  if (found.length === 0) await tenant.hasSnapshots();
  const pointers = await Promise.all(
    found.slice(0, limit).map((document) => {
      const pointer = readPointer(document);
      return withTitle(pointer, tenant.sealerOf(pointer));
    }),
  );
  return pageOf(found, limit, ({ id }, i) => {
    const pointer = pointers[i]!;
    const { seconds, nanoseconds } = pointer.written!;
    const item = tenant.isLive(pointer) ? summaryOf(pointer) : undefined;
    return { position: [seconds, nanoseconds, id], item };
  });
}
