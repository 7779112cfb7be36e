import { isMembers } from '../../json/fault.ts';
import type { SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { SessionDetails } from '../contract.ts';

/** The members of a snapshot that an encrypted store does not encrypt, because it finds snapshots by them. All others are encrypted. */
const CLEAR = new Set<string>([
  'snapshotId',
  'sessionId',
  'parentId',
  'createdAt',
  'updatedAt',
  'heartbeatAt',
  'status',
] satisfies (keyof SnapshotMetadata)[]);

/** The members that an encrypted store keeps in clear, and those that it encrypts. The complete value is `{ ...clear, ...secret }`. */
export interface Divided<T> {
  readonly clear: T;
  readonly secret: Partial<T>;
}

/** Usage numbers stay in clear, because lists add them up. */
export function divideMetadata(meta: SnapshotMetadata): Divided<SnapshotMetadata> {
  const clear: [string, unknown][] = [];
  const secret: [string, unknown][] = [];
  for (const [name, value] of Object.entries(meta)) {
    if (CLEAR.has(name)) {
      clear.push([name, value]);
    } else if ((name === 'usage' || name === 'summaryUsage') && isMembers(value)) {
      const counts = Object.entries(value).filter(([, count]) => typeof count === 'number');
      clear.push([name, Object.fromEntries(counts)]);
      if (counts.length < Object.keys(value).length) secret.push([name, value]);
    } else {
      secret.push([name, value]);
    }
  }
  return {
    clear: Object.fromEntries(clear) as unknown as SnapshotMetadata,
    secret: Object.fromEntries(secret),
  };
}

/** Encrypts only the title, because it is free text. */
export function divideDetails(details: SessionDetails | undefined): {
  readonly clear: SessionDetails | undefined;
  readonly secret: SessionDetails | undefined;
} {
  if (details?.title === undefined) return { clear: details, secret: undefined };
  const { title, ...clear } = details;
  return { clear: Object.keys(clear).length > 0 ? clear : undefined, secret: { title } };
}
