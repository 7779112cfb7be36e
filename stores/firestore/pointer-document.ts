import type { DocumentData, DocumentReference, DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { dataLoss, quote } from '../../src/errors.ts';
import type { SessionSummary } from '../../src/store/contract.ts';
import { assertReadable } from '../../src/store/format.ts';
import { isAlive, latestLeaf, leafCount, type Lineage } from './lineage.ts';
import { packTextNow, unpackJson } from './pack-json.ts';
import { FORMAT } from './snapshot-document.ts';
import type { StateChain, StoredCheckpoint } from './state-chain.ts';

/** What a session's pointer says. */
export interface Pointer {
  readonly sessionId: string;
  readonly lineage: Lineage;
  /** Counts the removals, so that each of them changes the document. */
  readonly removals: number;
  /** `createdAt` of the snapshot first saved. */
  readonly createdAt: string;
  /** `updatedAt`, else `createdAt`, of the snapshot written last, heartbeats aside. */
  readonly updatedAt: string;
  /** The way to the state of this snapshot, the latest leaf nearly always. */
  readonly head?: { readonly id: string; readonly chain: StateChain };
  /** When all of the session counts as gone, in ms; absent: never. */
  readonly until?: number;
  /** Before that, in ms, Firestore's TTL policy has removed none of the session's snapshots; absent: ever. */
  readonly completeUntil?: number;
  /** The session is being removed. */
  readonly isGone: boolean;
  /** Genkit's own store wrote the session, and this one has not written to it yet. */
  readonly isForeign?: boolean;
}

/** A pointer as it was read or written. */
export interface PointerDocument extends Pointer {
  readonly ref: DocumentReference;
  readonly updateTime: Timestamp;
  /** When the session was written last, heartbeats aside; known when it was read. */
  readonly written?: Timestamp;
}

/** Fields that are enough for a list. */
export const LIST_FIELDS = ['v', 'info', 'lineage', 'written'] as const;

/** The pointer's fields, but for `written` and the field of Firestore's TTL policy. */
export function pointerFields(pointer: Pointer): DocumentData {
  const { sessionId, createdAt, updatedAt, until, completeUntil, isGone, removals, lineage, head } = pointer;
  const info = { sessionId, createdAt, updatedAt, until, completeUntil, isGone, removals };
  return {
    v: FORMAT,
    info: packTextNow(JSON.stringify(info)),
    lineage: packTextNow(JSON.stringify(lineage)),
    ...(head && { head: packTextNow(JSON.stringify(head.id)), ...chainFields(head.chain) }),
  };
}

/** All fields that {@link pointerFields} may leave out. */
export const OPTIONAL_POINTER_FIELDS = ['head', 'whole', 'far', 'tokens', 'patches', 'expireAt'] as const;

function chainFields({ base, tokens, patches }: StateChain): DocumentData {
  return {
    ...(base.bytes ? { whole: base.bytes } : { far: [...base.shards!] }),
    tokens: [...tokens],
    patches: [...patches],
  };
}

/** @throws `FAILED_PRECONDITION` when a newer version of this store wrote it, `DATA_LOSS` when it is damaged. */
export function readPointer(document: DocumentSnapshot, sessionId?: string): PointerDocument {
  const data = document.data()!;
  const name = sessionId === undefined ? 'A session' : `Session ${quote(sessionId)}`;
  assertReadable(data['v'], FORMAT, name);
  try {
    const info = unpackJson(data['info'] as Buffer) as unknown as Omit<Pointer, 'lineage' | 'head'>;
    const lineage = unpackJson(data['lineage'] as Buffer) as unknown as Lineage;
    const head = readHead(data);
    const written = data['written'] as Timestamp | undefined;
    const { ref } = document;
    return {
      ...info,
      lineage,
      ...(head && { head }),
      ref,
      updateTime: document.updateTime!,
      ...(written && { written }),
    };
  } catch {
    throw dataLoss(`${name} can't be read: its document is damaged. Restore it from a backup.`);
  }
}

function readHead(data: DocumentData): Pointer['head'] {
  const { head, whole, far, tokens, patches } = data as {
    head?: Buffer;
    whole?: Buffer;
    far?: string[];
    tokens?: string[];
    patches?: Buffer[];
  };
  if (!head || !tokens || !patches) return undefined;
  const base: StoredCheckpoint = whole ? { bytes: whole } : { shards: far! };
  return { id: unpackJson(head) as string, chain: { base, tokens, patches } };
}

/**
 * How long a session lasts once a snapshot is saved: as long as all of its snapshots.
 *
 * @param removed When Firestore may remove the snapshot's document, in ms; absent: never.
 */
export function lifetimeWith(
  before: Pointer | undefined,
  { until }: { readonly until?: number },
  removed: number | undefined,
): Pick<Pointer, 'until' | 'completeUntil'> {
  const others = before && before.lineage.count > 0 ? before : undefined;
  const isForEver = until === undefined || (others !== undefined && others.until === undefined);
  const completeUntil = Math.min(removed ?? Infinity, others?.completeUntil ?? Infinity);
  return {
    ...(!isForEver && { until: Math.max(until, others?.until ?? 0) }),
    ...(completeUntil < Infinity && { completeUntil }),
  };
}

/** Whether Firestore may have removed snapshots that the pointer does not know to be missing. */
export function mayBeIncomplete({ until, completeUntil }: Pointer, now: number): boolean {
  // What expires and does not say so was written before pointers did.
  return completeUntil === undefined ? until !== undefined : completeUntil <= now;
}

/** Whether the session has something to show. */
export function isThere({ isGone, until, lineage }: Pointer, now: number): boolean {
  return !isGone && lineage.count > 0 && isAlive(until === undefined ? {} : { until }, now);
}

/** The line that a list has about the session; `undefined` when there is nothing to show. */
export function summaryOf(pointer: Pointer, now: number): SessionSummary | undefined {
  const { sessionId, createdAt, updatedAt, lineage } = pointer;
  const leaf = isThere(pointer, now) ? latestLeaf(lineage, now) : undefined;
  if (!leaf) return undefined;
  return {
    sessionId,
    leafId: leaf.id,
    leafCount: leafCount(lineage, now),
    snapshotCount: lineage.count,
    createdAt,
    updatedAt,
    ...(leaf.status !== undefined && { status: leaf.status }),
  };
}
