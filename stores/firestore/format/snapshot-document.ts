import { Timestamp, type DocumentData, type DocumentReference, type DocumentSnapshot } from '@google-cloud/firestore';
import { quote } from '../../../src/errors.ts';
import { stringifyJson } from '../../../src/json/value.ts';
import type { SnapshotMetadata } from '../../../src/snapshot/snapshot.ts';
import { unreadableSnapshot } from '../../../src/store/unreadable.ts';
import { shardsOf } from './checkpoint.ts';
import { assertOwnDocument, FORMAT } from './foreign-layout.ts';
import { orderKey } from './names.ts';
import { packTextNow, unpackJson } from './packed-text.ts';
import type { StoredCheckpoint } from './state-chain.ts';

/** A state as a snapshot's document has it; `name` is its name in a {@link StateChain}. */
export type StoredState =
  | { readonly kind: 'none' }
  | { readonly kind: 'whole'; readonly name: string; readonly base: StoredCheckpoint }
  /** What changed since the state named `base`, that of the nearest completed ancestor. */
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
  /** Names the saves that wrote it last, the latest first: a save whose answer was lost finds itself here. */
  readonly by: readonly string[];
  /** When its session expires, in ms, as known at the last write of this snapshot. Default: never. */
  readonly until?: number;
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

/** A snapshot remembers so many of its last saves. */
const MOST_SAVES = 8;

/** The names of the last saves once there is one more. */
export function nextBy(by: readonly string[], nonce: string): readonly string[] {
  return [nonce, ...by].slice(0, MOST_SAVES);
}

/** Fields that a rewrite of the metadata changes. */
export function headFields({ meta, sessionId, owner, seq, by, until }: SnapshotHead): DocumentData {
  const rest = JSON.stringify({ session: sessionId ?? null, owner, seq, by });
  const expiry = until === undefined ? null : Timestamp.fromMillis(until);
  return {
    head: packTextNow(`{"meta":${stringifyJson(meta)},${rest.slice(1)}`),
    until: expiry,
    // Firestore's TTL policy removes snapshots that no session owns; the others go with their session.
    ...(sessionId === undefined && { expireAt: expiry }),
  };
}

/** Fields that stay as they are once the snapshot is saved. */
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
    const { session, ...head } = unpackJson(data['head'] as Buffer) as unknown as Omit<SnapshotHead, 'sessionId'> & {
      session: string | null;
    };
    const until = data['until'] as Timestamp | null;
    return { ...head, sessionId: session ?? undefined, ...(until && { until: until.toMillis() }) };
  } catch {
    throw unreadableSnapshot(snapshotId, 'its document is damaged');
  }
}

/** Reads a snapshot's document; throws what {@link readHead} throws. */
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
