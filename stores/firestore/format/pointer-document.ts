import {
  FieldPath,
  FieldValue,
  Timestamp,
  type DocumentData,
  type DocumentReference,
  type DocumentSnapshot,
} from '@google-cloud/firestore';
import { dataLoss, quote } from '../../../src/errors.ts';
import type { SessionDetails, SessionSummary, UsageSum } from '../../../src/store/contract.ts';
import { divideDetails } from '../../../src/store/encryption/clear-metadata.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { sumUsage } from '../../../src/store/list/session-summary.ts';
import type { DocumentWrite } from '../database.ts';
import type { TenantDatabase } from '../tenant-database.ts';
import { assertOwnDocument, FORMAT, SEALED_FORMAT } from './foreign-layout.ts';
import { assertFitsPointer, type Lineage } from './lineage.ts';
import { keyOf } from './names.ts';
import { packBoth, packTextNow, unpackBoth, unpackJson, unpackText } from './packed-text.ts';
import type { StateChain, StoredCheckpoint } from './state-chain.ts';
import { usageSum, type UsageCounts } from './usage-counts.ts';

/** The content of a session's pointer. */
export interface Pointer {
  readonly sessionId: string;
  /** This incarnation of the session. */
  readonly owner: string;
  readonly lineage: Lineage;
  /** `createdAt` of the snapshot first saved. */
  readonly createdAt: string;
  /** `updatedAt`, else `createdAt`, of the snapshot written last, heartbeats aside. */
  readonly updatedAt: string;
  readonly details?: SessionDetails;
  /** The title, encrypted; then `details` has none. */
  readonly sealedTitle?: Buffer | undefined;
  readonly usage: UsageCounts;
  /** The largest `summaryUsage` of its snapshots. */
  readonly summaryUsage?: UsageSum | undefined;
  /** The session is being removed, and reads as absent. */
  readonly isGone?: boolean;
  /** Names of the records that hold the session: it does not expire. Default: none. */
  readonly holds?: readonly string[];
  /** When this incarnation began, in ms; of sessions that expire. */
  readonly begun?: number;
  /** The chain to the state of the snapshot that was first saved last, which is nearly always the latest leaf. */
  readonly head?: { readonly id: string; readonly chain: StateChain };
  /** When the session expires, in ms. Default: never. */
  readonly until?: number;
}

/** A pointer as it was read or written. */
export interface PointerDocument extends Pointer {
  readonly ref: DocumentReference;
  readonly updateTime: Timestamp;
  /** When the session was written last, heartbeats aside. Set if the pointer was read. */
  readonly written?: Timestamp;
}

/** Fields of a pointer without the chain to the state. */
export const LIST_FIELDS = ['v', 'info', 'written', 'expireAt'] as const;

/** The field that orders sessions by their last write: those of a tenant, or those of one owner. */
export function orderField(ownerId: string | undefined): FieldPath {
  return ownerId === undefined ? new FieldPath('written') : new FieldPath('owned', keyOf('owner', ownerId));
}

/** The time of the session's last write, in the fields of {@link orderField}: one index entry each, and no composite index. */
function writtenNow({ details }: Pointer): DocumentData {
  const now = FieldValue.serverTimestamp();
  const ownerId = details?.ownerId;
  return { written: now, owned: ownerId === undefined ? null : { [keyOf('owner', ownerId)]: now } };
}

/** The pointer's fields, except those of {@link writtenNow}. */
function pointerFields(pointer: Pointer & Partial<PointerDocument>): DocumentData {
  const { head, until, begun, sealedTitle, ref: _ref, updateTime: _updateTime, written: _written, ...rest } = pointer;
  const { chain } = head ?? {};
  const text = JSON.stringify(rest);
  const info = sealedTitle ? packBoth(text, sealedTitle) : packTextNow(text);
  assertFitsPointer(rest.sessionId, info);
  return {
    v: sealedTitle ? SEALED_FORMAT : FORMAT,
    info,
    head: head ? packTextNow(JSON.stringify(head.id)) : null,
    whole: chain?.base.bytes ?? null,
    far: chain?.base.shards ? [...chain.base.shards] : null,
    from: chain?.from ?? null,
    names: chain ? [...chain.names] : null,
    patches: chain ? [...chain.patches] : null,
    expireAt: timeField(until),
    begun: timeField(begun),
  };
}

/** A time in ms as a field; `undefined`: never. */
export function timeField(ms: number | undefined): Timestamp | null {
  return ms === undefined ? null : Timestamp.fromMillis(ms);
}

/** @throws `FAILED_PRECONDITION` when another store or a newer version of this one wrote it, `DATA_LOSS` when it is damaged. */
export function readPointer(document: DocumentSnapshot, sessionId?: string): PointerDocument {
  const data = document.data()!;
  const name = sessionId === undefined ? 'A session' : `Session ${quote(sessionId)}`;
  assertOwnDocument(data, name);
  try {
    const { clear, secret: sealedTitle } = unpackBoth(data['info'] as Buffer);
    const info = clear as unknown as Omit<Pointer, 'head' | 'until' | 'begun'>;
    const { written, expireAt, begun } = data as { [name in 'written' | 'expireAt' | 'begun']?: Timestamp | null };
    const head = readHead(data);
    return {
      ...info,
      ...(sealedTitle && { sealedTitle }),
      ...(head && { head }),
      ...(expireAt && { until: expireAt.toMillis() }),
      ...(begun && { begun: begun.toMillis() }),
      ...(written && { written }),
      ref: document.ref,
      updateTime: document.updateTime!,
    };
  } catch {
    throw dataLoss(`${name} can't be read: its document is damaged. Restore it from a backup.`);
  }
}

function readHead(data: DocumentData): Pointer['head'] {
  const { head, whole, far, from, names, patches } = data as {
    head?: Buffer | null;
    whole: Buffer | null;
    far: string[];
    from: number;
    names: string[];
    patches: Buffer[];
  };
  if (!head) return undefined;
  const base: StoredCheckpoint = whole ? { bytes: whole } : { shards: far };
  return { id: unpackJson(head) as string, chain: { base, from, names, patches } };
}

/** The details with an encrypted title; one in clear is sealed too, unless `cipher` is `undefined`. */
export function sealedDetails(
  { owner, details, sealedTitle }: Pick<Pointer, 'owner' | 'details' | 'sealedTitle'>,
  cipher: Cipher | undefined,
): Pick<Pointer, 'details' | 'sealedTitle'> {
  const { clear, secret } = divideDetails(details);
  const isSealed = cipher !== undefined && secret !== undefined;
  const kept = isSealed ? clear : details;
  const title = isSealed ? packTextNow(secret.title!, { cipher, place: titlePlace(owner) }) : sealedTitle;
  return { ...(kept && { details: kept }), ...(title && { sealedTitle: title }) };
}

/** The pointer with its title decrypted; without a title if that fails, so that a list does not fail for it. */
export async function withTitle<T extends Pointer>(pointer: T, sealer: Sealer): Promise<T> {
  const { sealedTitle, owner, details } = pointer;
  if (!sealedTitle) return pointer;
  const title = await unpackText(sealedTitle, { sealer, place: titlePlace(owner) }).catch(() => undefined);
  return title === undefined ? pointer : { ...pointer, details: { ...details, title } };
}

function titlePlace(owner: string): string {
  return JSON.stringify(['title', owner]);
}

/** The session's entry in a list. */
export function summaryOf({ sessionId, createdAt, updatedAt, lineage, details, ...rest }: Pointer): SessionSummary {
  const leaf = lineage.leaves.at(-1)!;
  const usage = sumUsage([usageSum(rest.usage), rest.summaryUsage]);
  return {
    sessionId,
    leafId: leaf.id,
    leafCount: lineage.leaves.length,
    snapshotCount: lineage.count,
    createdAt,
    updatedAt,
    ...(leaf.status !== undefined && { status: leaf.status }),
    ...details,
    ...(usage && { usage }),
  };
}

/** The write of a session's pointer, if it has not changed since it was read. `isWritten`: it counts as a write of the session. */
export function writePointer(
  tenant: TenantDatabase,
  before: PointerDocument | undefined,
  pointer: Pointer,
  { isWritten = true } = {},
): DocumentWrite {
  const data = { ...pointerFields(pointer), ...(isWritten && writtenNow(pointer)) };
  if (!before) return { kind: 'create', ref: tenant.pointerRef(pointer.sessionId), data };
  return { kind: 'update', ref: before.ref, data, at: before.updateTime };
}
