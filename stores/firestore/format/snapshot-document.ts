import { Timestamp, type DocumentData, type DocumentReference, type DocumentSnapshot } from '@google-cloud/firestore';
import { quote } from '../../../src/errors.ts';
import { GenkitError } from 'genkit';
import { parseJson, stringifyJson } from '../../../src/json/value.ts';
import type { SnapshotMetadata } from '../../../src/snapshot/snapshot.ts';
import { divideMetadata } from '../../../src/store/encryption/clear-metadata.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import { shardsOf } from './checkpoint.ts';
import { assertOwnDocument, FORMAT, SEALED_FORMAT } from './foreign-layout.ts';
import { documentId, orderKey } from './names.ts';
import { packBoth, packTextNow, unpackBoth, unpackText } from './packed-text.ts';
import type { StoredCheckpoint } from './state-chain.ts';

/** A state as a snapshot's document has it; `name` is its name in a {@link StateChain}. */
export type StoredState =
  | { readonly kind: 'none' }
  | { readonly kind: 'whole'; readonly name: string; readonly base: StoredCheckpoint }
  /** A diff from the state named `base`, which is that of the nearest completed ancestor. */
  | {
      readonly kind: 'diff';
      readonly name: string;
      readonly base: string;
      /** The place of the whole state at the beginning of the chain. */
      readonly from: number;
      readonly patch: Buffer;
    };

/** A snapshot's document without the state. */
export interface SnapshotHead {
  readonly meta: SnapshotMetadata;
  /** The session it belongs to; `undefined`: none. */
  readonly sessionId: string | undefined;
  /** The incarnation of the session, or the snapshot's own when it has no session. */
  readonly owner: string;
  /** Its place in the session's order of first saves. */
  readonly seq: number;
  /** Names of the last saves of the snapshot, the latest first. A save whose answer was lost finds its own name here. */
  readonly by: readonly string[];
  /** When its session expires, in ms, as known at the last write of this snapshot. Default: never. */
  readonly until?: number;
  /** The encrypted part of `meta`, which is incomplete until {@link openHead}. Default: nothing is encrypted. */
  readonly sealed?: Buffer | undefined;
}

/** A snapshot's document as it was read. */
export interface SnapshotDocument extends SnapshotHead {
  readonly ref: DocumentReference;
  readonly updateTime: Timestamp;
  readonly state: StoredState;
  /** Names of the shards that hold the state. */
  readonly shards: readonly string[];
}

/** Fields of {@link SnapshotHead}. */
export const HEAD_FIELDS = ['v', 'head', 'at', 'until'] as const;

/** How many of its last saves a snapshot keeps. */
const MOST_SAVES = 8;

/** The names of the last saves after one more. */
export function nextBy(by: readonly string[], nonce: string): readonly string[] {
  return [nonce, ...by].slice(0, MOST_SAVES);
}

/** Fields that a rewrite of the metadata changes. The encrypted part is bound to the clear one. */
export function headFields(head: SnapshotHead, cipher: Cipher | undefined): DocumentData {
  const { sessionId, until } = head;
  const { clear, secret } = divideMetadata(head.meta);
  const place = headText({ ...head, meta: clear });
  const expiry = until === undefined ? null : Timestamp.fromMillis(until);
  return {
    ...(cipher && { v: SEALED_FORMAT }),
    head: cipher ? packBoth(place, packTextNow(stringifyJson(secret), { cipher, place })) : packTextNow(headText(head)),
    until: expiry,
    // Firestore's TTL policy removes snapshots that no session owns; the others go with their session.
    ...(sessionId === undefined && { expireAt: expiry }),
  };
}

function headText({ meta, sessionId, owner, seq, by }: SnapshotHead): string {
  const rest = JSON.stringify({ session: sessionId ?? null, owner, seq, by });
  return `{"meta":${stringifyJson(meta)},${rest.slice(1)}`;
}

/**
 * The head with its encrypted part decrypted.
 *
 * @throws `DATA_LOSS` when that is damaged, `FAILED_PRECONDITION` without the key, `UNAVAILABLE` when that can't be reached.
 */
export async function openHead<T extends SnapshotHead>(head: T, sealer: Sealer): Promise<T> {
  const { sealed, meta, sessionId } = head;
  if (!sealed) return head;
  try {
    const secret = parseJson(await unpackText(sealed, { sealer, place: headText(head) }));
    return { ...head, meta: { ...meta, ...(secret as object) }, sealed: undefined };
  } catch (error) {
    if (error instanceof GenkitError) throw error;
    throw unreadableSnapshot(meta.snapshotId, 'its document is damaged', sessionId);
  }
}

/** Fields that never change after the first save. */
export function placeFields({ owner, seq }: SnapshotHead): DocumentData {
  return { v: FORMAT, at: orderKey(owner, seq) };
}

/** The state's fields. */
export function stateFields(state: StoredState): DocumentData {
  const none = { state: null, whole: null, far: null, base: null, from: null, patch: null, shards: null };
  if (state.kind === 'none') return none;
  const { kind, name, base } = state;
  if (kind === 'diff') return { ...none, state: name, base, from: state.from, patch: state.patch };
  const { bytes = null, shards = [], checkpoint } = base;
  const far = bytes ? null : [...shards];
  return { ...none, state: name, whole: bytes, far, shards: [...shards, ...(checkpoint ? shardsOf(checkpoint) : [])] };
}

/**
 * Reads a snapshot's head.
 *
 * @throws `FAILED_PRECONDITION` when another store or a newer version of this one wrote it, `DATA_LOSS` when it is damaged.
 */
export function readHead(snapshotId: string, data: DocumentData): SnapshotHead {
  assertOwnDocument(data, `Snapshot ${quote(snapshotId)}`);
  try {
    const { clear, secret: sealed } = unpackBoth(data['head'] as Buffer);
    const { session, ...head } = clear as unknown as Omit<SnapshotHead, 'sessionId'> & { session: string | null };
    const { snapshotId: own } = head.meta;
    // Lists know only the document's id.
    if (own !== snapshotId && documentId(own) !== snapshotId) throw new Error('the head of another snapshot');
    const until = data['until'] as Timestamp | null;
    return {
      ...head,
      sessionId: session ?? undefined,
      ...(until && { until: until.toMillis() }),
      ...(sealed && { sealed }),
    };
  } catch {
    throw unreadableSnapshot(snapshotId, 'its document is damaged');
  }
}

/** @throws as {@link readHead}. */
export function readSnapshotDocument(snapshotId: string, document: DocumentSnapshot): SnapshotDocument {
  const data = document.data()!;
  const head = readHead(snapshotId, data);
  const shards = (data['shards'] as string[] | null) ?? [];
  return { ...head, ref: document.ref, updateTime: document.updateTime!, state: readState(data), shards };
}

function readState(data: DocumentData): StoredState {
  const { state, whole, far, base, from, patch } = data as {
    state: string | null;
    whole: Buffer | null;
    far: string[] | null;
    base: string | null;
    from: number | null;
    patch: Buffer | null;
  };
  if (state === null) return { kind: 'none' };
  if (base !== null) return { kind: 'diff', name: state, base, from: from!, patch: patch! };
  return { kind: 'whole', name: state, base: whole ? { bytes: whole } : { shards: far! } };
}
