import type { SessionState } from 'genkit/beta';
import { applyShared } from '../../json/patch/apply-checked.ts';
import type { JsonPatch } from '../../json/patch/diff.ts';
import type { Json } from '../../json/value.ts';
import { copyMetadata, copyState } from '../../snapshot/own-copy.ts';
import type { SessionSnapshot } from '../../store/contract.ts';

/** A snapshot as it is stored. */
export type RedactedSnapshot = SessionSnapshot & {
  /** The key of its seal. */
  readonly sealed?: string;
  readonly waitingSince?: readonly string[];
};

/** Ids and the status, which a store needs as they are. */
type PlainMembers = Pick<SessionSnapshot, 'snapshotId' | 'sessionId' | 'parentId' | 'status'>;

/** The parts of a snapshot that are searched. */
export interface SearchedParts {
  /** The members beside the state. */
  readonly beside: { readonly [name: string]: unknown };
  /** The state without its session id. */
  readonly state: Omit<SessionState, 'sessionId'>;
}

export interface SnapshotParts extends SearchedParts {
  readonly plain: PlainMembers;
  readonly stateSessionId: string | undefined;
  /** The state with its session id. */
  readonly whole: SessionState | undefined;
}

/** The parts of a stored snapshot. */
export function partsOf({ state, ...metadata }: RedactedSnapshot): SnapshotParts {
  const { snapshotId, sessionId, parentId, status, sealed: _, ...beside } = metadata;
  const own: SessionState = state ?? {};
  const { sessionId: id, ...rest } = own;
  const isId = typeof id === 'string';
  return {
    plain: {
      snapshotId,
      ...(sessionId !== undefined && { sessionId }),
      ...(parentId !== undefined && { parentId }),
      ...(status !== undefined && { status }),
    },
    beside,
    stateSessionId: isId ? id : undefined,
    state: isId ? rest : own,
    whole: state,
  };
}

/**
 * The parts of a mutator's result, copied. The copy of the state shares its unchanged parts with `known`.
 *
 * @throws `INVALID_ARGUMENT` with the path of a value that is not JSON.
 */
export function copyParts(answer: SessionSnapshot, known: SessionState | undefined): SnapshotParts {
  const state = copyState(answer, known as Json | undefined) as SessionState | undefined;
  return partsOf({ ...copyMetadata(answer), ...(state !== undefined && { state }) });
}

/** The snapshot of the parts, with `searched` in place of the searched parts. */
export function joinParts({ plain, stateSessionId, whole }: SnapshotParts, searched: SearchedParts): RedactedSnapshot {
  const id = stateSessionId !== undefined && { sessionId: stateSessionId };
  return { ...plain, ...searched.beside, ...(whole && { state: { ...id, ...searched.state } }) } as RedactedSnapshot;
}

/** The snapshot with the sealed originals put back, and without the key of the seal. */
export function applyOpened(stored: RedactedSnapshot, sealed: JsonPatch | undefined): SessionSnapshot {
  if (!sealed) return withoutSeal(stored);
  const parts = partsOf(stored);
  return joinParts(parts, applyShared({ beside: parts.beside, state: parts.state }, sealed));
}

/** The snapshot without the key of its seal. */
export function withoutSeal<T extends object>(snapshot: T): T {
  if (!('sealed' in snapshot)) return snapshot;
  const { sealed: _, ...others } = snapshot;
  return others as T;
}
