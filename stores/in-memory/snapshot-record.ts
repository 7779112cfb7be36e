import type { SessionState } from 'genkit/beta';
import { copyJson } from '../../src/json/value.ts';
import { shareJson } from '../../src/json/share.ts';
import { handOut, type HandOutOptions } from '../../src/snapshot/hand-out.ts';
import { copyMetadata, guarded } from '../../src/snapshot/own-copy.ts';
import type { SnapshotNode } from '../../src/snapshot/session-tree.ts';
import {
  sessionOf,
  type SessionSnapshot,
  type SnapshotMetadata,
  type StoredSnapshot,
} from '../../src/snapshot/snapshot.ts';
import { usageOf, type SnapshotUsage } from '../../src/store/list/session-summary.ts';
import { pack, type PackedState, type RecentState } from './packed-state.ts';

/** One stored snapshot. Immutable: a rewrite creates a new record. */
export class SnapshotRecord implements SnapshotNode {
  /** The commit that saved the snapshot first; a rewrite keeps it. Higher is later. */
  readonly sequence: number;
  /** The session it belongs to. */
  readonly sessionId: string | undefined;
  /** Whether all members of the state are empty, so that other states have nothing to share with it. */
  readonly isBlank: boolean;
  readonly #metadata: SnapshotMetadata;
  readonly #state: PackedState | undefined;
  readonly #recent: RecentState;

  /**
   * @param snapshot Copied, so that the caller's later changes have no effect.
   * @param base The record with the most similar state. Equal parts are kept once.
   * @param recent The store's cache.
   * @throws `INVALID_ARGUMENT` with the path when the snapshot has a value that JSON can't represent.
   */
  constructor(sequence: number, snapshot: SessionSnapshot, base: SnapshotRecord | undefined, recent: RecentState) {
    this.#recent = recent;
    this.sequence = sequence;
    this.#metadata = copyMetadata(snapshot);
    const like = base === undefined ? undefined : base.#state;
    this.#state = guarded(snapshot.snapshotId, '/state', () => packState(snapshot.state, like, recent));
    this.sessionId = sessionOf(snapshot);
    this.isBlank = Object.values(snapshot.state ?? {}).every(isEmpty);
  }

  get snapshotId(): string {
    return this.#metadata.snapshotId;
  }

  get parentId(): string | undefined {
    return this.#metadata.parentId;
  }

  get createdAt(): string {
    return this.#metadata.createdAt;
  }

  get updatedAt(): string | undefined {
    return this.#metadata.updatedAt;
  }

  get status(): SnapshotMetadata['status'] {
    return this.#metadata.status;
  }

  /** The usage of model calls, from the metadata. */
  get usage(): SnapshotUsage {
    return usageOf(this.#metadata);
  }

  /** Whether `state` is equal to the stored one. */
  hasState(state: SessionState | undefined): boolean {
    if (state === undefined || this.#state === undefined) return state === this.#state;
    const plain = this.#recent.plainOf(this.#state);
    return guarded(this.snapshotId, '/state', () => shareJson(plain, state)) === plain;
  }

  /** The snapshot for the rules of a rewrite, see `revise`. */
  get stored(): StoredSnapshot {
    return { ...this.#metadata, state: { sessionId: this.sessionId } };
  }

  /** The caller's own copy of everything except the state. */
  metadata(): SnapshotMetadata {
    return copyJson(this.#metadata);
  }

  /** The snapshot for a caller. */
  snapshot<S>({ frozen }: Pick<HandOutOptions, 'frozen'> = {}): SessionSnapshot<S> {
    const state = this.#state;
    // A frozen state is read at once, and cached. A copy is made later, when the state may have been removed, so it is not cached.
    const plain = frozen ? () => this.#recent.read(state!) : () => this.#recent.plainOf(state!);
    return handOut(this.#metadata, { state: state && plain, frozen });
  }
}

function packState(
  state: SessionState | undefined,
  base: PackedState | undefined,
  recent: RecentState,
): PackedState | undefined {
  if (state === undefined) {
    // The cached state may be the one that this record replaces.
    recent.forget();
    return undefined;
  }
  const known = base && { plain: recent.plainOf(base), state: base };
  const plain = known ? shareJson(known.plain, state) : copyJson(state);
  const packed = pack(plain, known);
  recent.note(packed, plain);
  return packed;
}

function isEmpty(member: unknown): boolean {
  if (Array.isArray(member)) return member.length === 0;
  return typeof member !== 'object' || member === null || Object.keys(member).length === 0;
}
