import type { SessionState } from 'genkit/beta';
import { copyJson } from '../../src/json/value.ts';
import { shareJson } from '../../src/json/share.ts';
import { handOut, type HandOutOptions } from '../../src/snapshot/hand-out.ts';
import { copyMetadata, guarded } from '../../src/snapshot/own-copy.ts';
import type { SnapshotNode } from '../../src/snapshot/lineage.ts';
import {
  sessionOf,
  type SessionSnapshot,
  type SnapshotMetadata,
  type StoredSnapshot,
} from '../../src/snapshot/snapshot.ts';
import { pack, unpack, type PackedState } from './packed-state.ts';

/** One snapshot as the store keeps it. Immutable: a rewrite makes a new record. */
export class SnapshotRecord implements SnapshotNode {
  /** The commit that saved the snapshot first; a rewrite keeps it. Higher is later. */
  readonly sequence: number;
  /** The session it belongs to. */
  readonly sessionId: string | undefined;
  /** Whether there is nothing in the state that another one could share: so it is while a detached run has not ended. */
  readonly isBlank: boolean;
  readonly #metadata: SnapshotMetadata;
  readonly #state: PackedState | undefined;

  /**
   * @param snapshot Copied, so that nothing of it is aliased.
   * @param base The record whose state this one's resembles most: what is equal is kept once.
   * @throws `INVALID_ARGUMENT` with the path when the snapshot holds what JSON cannot hold.
   */
  constructor(sequence: number, snapshot: SessionSnapshot, base: SnapshotRecord | undefined) {
    this.sequence = sequence;
    this.#metadata = copyMetadata(snapshot);
    const like = base === undefined ? undefined : base.#state;
    this.#state = guarded(snapshot.snapshotId, '/state', () => packState(snapshot.state, like));
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

  /** What deciding about a rewrite needs to know. */
  get stored(): StoredSnapshot {
    return { ...this.#metadata, state: { sessionId: this.sessionId } };
  }

  /** The caller's own copy of all but the state. */
  metadata(): SnapshotMetadata {
    return copyJson(this.#metadata);
  }

  /** The snapshot as a caller gets it. */
  snapshot<S>({ frozen }: Pick<HandOutOptions, 'frozen'> = {}): SessionSnapshot<S> {
    const state = this.#state;
    return handOut(this.#metadata, { state: state && (() => unpack(state)), frozen });
  }
}

function packState(state: SessionState | undefined, base: PackedState | undefined): PackedState | undefined {
  if (state === undefined) return undefined;
  if (!base) return pack(copyJson(state));
  const plain = unpack(base);
  return pack(shareJson(plain, state), { plain, state: base });
}

function isEmpty(member: unknown): boolean {
  if (Array.isArray(member)) return member.length === 0;
  return typeof member !== 'object' || member === null || Object.keys(member).length === 0;
}
