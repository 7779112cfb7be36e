import type { DocumentData, DocumentReference, DocumentSnapshot, Timestamp } from '@google-cloud/firestore';
import { quote } from '../../src/errors.ts';
import { stringifyJson } from '../../src/json/value.ts';
import type { SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import { assertReadable } from '../../src/store/format.ts';
import { unreadableSnapshot } from '../../src/store/unreadable.ts';
import { FOREIGN_FIELDS, foreignHead, foreignState, isForeign, type ForeignState } from './genkit-format.ts';
import { ALONE, keyOf, orderKey, ownerKey, parentKey } from './names.ts';
import { packTextNow, unpackJson } from './pack-json.ts';
import { shardsOf } from './checkpoint.ts';
import type { StoredCheckpoint, Token } from './state-chain.ts';

/** The version of what this store writes. A document of a higher one is refused. */
export const FORMAT = 1;

/** A state as a snapshot's document has it. */
export type StoredState =
  | { readonly kind: 'none' }
  /** Whole, then patched: the first token names the whole state, each further one what it is with one patch more. */
  | {
      readonly kind: 'whole';
      readonly base: StoredCheckpoint;
      readonly tokens: readonly Token[];
      readonly patches: readonly Buffer[];
    }
  /** What changed since a state of its parent; a token for each patch. */
  | {
      readonly kind: 'diff';
      readonly parent: {
        readonly id: string;
        readonly token: Token;
        /** Place of the whole state. */ readonly from: number;
      };
      readonly tokens: readonly Token[];
      readonly patches: readonly Buffer[];
    }
  | ForeignState;

/** What a snapshot's document says beside the state. */
export interface SnapshotHead {
  readonly meta: SnapshotMetadata;
  /** The session it belongs to; `undefined`: none. */
  readonly sessionId: string | undefined;
  /** Its place in the session's order of first saves. */
  readonly seq: number;
  /** Counts its writes. */
  readonly rev: number;
  /** Names the saves that wrote it last, the last first: one whose answer was lost knows by it that it was made. */
  readonly by: readonly string[];
  /** When it counts as gone, in ms; absent: never. */
  readonly until?: number;
}

/** A snapshot's document of this store. */
export interface SnapshotDocument extends SnapshotHead {
  readonly ref: DocumentReference;
  readonly createTime: Timestamp;
  readonly updateTime: Timestamp;
  readonly state: StoredState;
  /** Earlier states that children stand on. */
  readonly old: readonly StoredState[];
  /** Names of the shards of all of them. */
  readonly shards: readonly string[];
}

/** Fields that are needed to tell a snapshot without its state. */
export const HEAD_FIELDS = ['v', 'head', 'at', 'beat', ...FOREIGN_FIELDS];

export function currentToken(state: StoredState): Token | undefined {
  return state.kind === 'none' || state.kind === 'foreign' ? undefined : state.tokens.at(-1);
}

/** The count of the next write. */
export function nextRev({ rev }: SnapshotHead): number {
  return Math.max(0, rev) + 1;
}

/** A snapshot remembers so many of its last saves. */
const MOST_SAVES = 8;

/** The names of the last saves once there is one more. */
export function nextBy({ by }: SnapshotHead, nonce: string): readonly string[] {
  return [nonce, ...by].slice(0, MOST_SAVES);
}

/** Fields that a heartbeat changes. */
export function headFields(head: SnapshotHead): DocumentData {
  const { meta, sessionId, seq, rev, by, until } = head;
  const rest = JSON.stringify({ session: sessionId ?? null, seq, rev, by, until });
  return { head: packTextNow(`{"meta":${stringifyJson(meta)},${rest.slice(1)}`) };
}

/** Fields that stay as they are once the snapshot is saved. */
export function placeFields({ meta, sessionId, seq }: SnapshotHead): DocumentData {
  const family = sessionId === undefined ? ALONE : keyOf('session', sessionId);
  return {
    v: FORMAT,
    at: orderKey(ownerKey(sessionId, meta.snapshotId), seq),
    ...(meta.parentId !== undefined && { up: parentKey(family, meta.parentId) }),
  };
}

/**
 * The state's fields; those that are not there must be removed from an older document.
 *
 * @param before The shards that the document names until now.
 */
export function stateFields(
  state: StoredState,
  old: readonly StoredState[],
  before: readonly string[] = [],
): DocumentData {
  const named = [state, ...old].map(stateShards);
  // Of a state that was stored before, and not looked into since, they are among those of the document.
  const shards = named.flatMap((names) => names ?? before);
  return {
    ...writtenState(state),
    ...(old.length > 0 && { old: old.map(writtenState) }),
    ...(shards.length > 0 && { shards: [...new Set(shards)] }),
  };
}

/** All fields that {@link stateFields} may answer. */
export const STATE_FIELDS = ['whole', 'far', 'base', 'tokens', 'patches', 'old', 'shards'] as const;

/** Names of a state's shards; `undefined`: that would have to be read. */
function stateShards(state: StoredState): readonly string[] | undefined {
  if (state.kind !== 'whole') return [];
  const { checkpoint, shards = [] } = state.base;
  return checkpoint && [...shards, ...shardsOf(checkpoint)];
}

function writtenState(state: StoredState): DocumentData {
  if (state.kind === 'none' || state.kind === 'foreign') return {};
  const changes = { tokens: [...state.tokens], patches: [...state.patches] };
  if (state.kind === 'whole') {
    return { ...changes, ...(state.base.bytes ? { whole: state.base.bytes } : { far: [...state.base.shards!] }) };
  }
  const { id, token, from } = state.parent;
  return { ...changes, base: packTextNow(JSON.stringify([id, token, from])) };
}

/**
 * Reads a snapshot's head.
 *
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it, `DATA_LOSS` when it is damaged.
 */
export function readHead(snapshotId: string, data: DocumentData): SnapshotHead {
  assertReadable(data['v'], FORMAT, `Snapshot ${quote(snapshotId)}`);
  if (isForeign(data)) return foreignHead(data);
  try {
    const { meta, session, seq, rev, by, until } = unpackJson(data['head'] as Buffer) as unknown as {
      meta: SnapshotMetadata;
      session: string | null;
      seq: number;
      rev: number;
      by: string | string[];
      until?: number;
    };
    return { meta, sessionId: session ?? undefined, seq, rev, by: [by].flat(), ...(until !== undefined && { until }) };
  } catch {
    throw unreadableSnapshot(snapshotId, 'its document is damaged');
  }
}

/** Reads a snapshot's document; throws what {@link readHead} throws. */
export function readSnapshotDocument(snapshotId: string, document: DocumentSnapshot): SnapshotDocument {
  const data = document.data()!;
  const head = readHead(snapshotId, data);
  try {
    const old = ((data['old'] as DocumentData[] | undefined) ?? []).map(readState);
    const { ref } = document;
    const [createTime, updateTime] = [document.createTime!, document.updateTime!];
    // Genkit's store counts no writes; theirs are told apart by time, and come before ours.
    const rev = isForeign(data) ? updateTime.toMillis() - Number.MAX_SAFE_INTEGER : head.rev;
    const shards = (data['shards'] as string[] | undefined) ?? [];
    return { ...head, rev, ref, createTime, updateTime, state: readState(data), old, shards };
  } catch {
    throw unreadableSnapshot(snapshotId, 'its document is damaged');
  }
}

function readState(data: DocumentData): StoredState {
  if (isForeign(data)) return foreignState(data);
  const { whole, far, base, tokens, patches } = data as {
    whole?: Buffer;
    far?: string[];
    base?: Buffer;
    tokens?: string[];
    patches?: Buffer[];
  };
  if (!tokens || !patches) return { kind: 'none' };
  if (whole) return { kind: 'whole', base: { bytes: whole }, tokens, patches };
  if (far) return { kind: 'whole', base: { shards: far }, tokens, patches };
  const [id, token, from] = unpackJson(base!) as [string, string, number];
  return { kind: 'diff', parent: { id, token, from }, tokens, patches };
}
