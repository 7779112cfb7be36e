import type { ActionContext } from 'genkit';
import type { SessionStore, SnapshotMutator } from 'genkit/beta';
import { SessionConflictError } from '../../errors.ts';
import type { SessionOwner } from '../../session/log/session-log.ts';
import type { SaveSnapshotOptions, ScopeChange, SessionDetails } from '../../store/contract.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { healthySnapshotOf } from '../open/damaged-session.ts';
import { assertNotRunning, findLastCompleted } from '../open/open-session.ts';
import { readStored } from '../open/read-snapshot.ts';

export interface LeafGuardOptions<State> {
  agent: AgentDefinition<State>;
  sessionId: string;
  /** The session's leaf when the call opened it (`null`: none); another turn must not come first. Optional: without it the leaf is not checked. */
  expectedLeafId?: string | null;
  context: ActionContext | undefined;
  /** The owner of the session. Optional: without one the session has no owner. */
  owner?: SessionOwner | undefined;
}

/** The position of a snapshot in its session. */
export interface Place {
  snapshotId: string;
  parentId: string | undefined;
  /** The store does not have it yet, except from an earlier attempt of the same save. */
  isNew: boolean;
}

/**
 * Saves the snapshots of a call, each new one only while the session's leaf is the one that the call knows. A new snapshot becomes the leaf
 * and would hide snapshots that other calls saved in the meantime.
 */
export class LeafGuard<State> {
  readonly #agent: AgentDefinition<State>;
  readonly #sessionId: string;
  readonly #context: ActionContext | undefined;
  /** Empty for a store that does not keep it. */
  readonly #session: { session?: SessionDetails };
  /** The leaf when the call opened the session, then the snapshot that it saved last; `undefined`: no check. */
  #expectedLeafId: string | null | undefined;
  /** A leaf that can't be read; the session continues from before it. */
  #damagedLeafId: string | null | undefined;

  constructor({ agent, sessionId, expectedLeafId, context, owner }: LeafGuardOptions<State>) {
    this.#agent = agent;
    this.#sessionId = sessionId;
    this.#expectedLeafId = expectedLeafId;
    this.#context = context;
    const ownerId = owner && { ownerId: owner.userId };
    this.#session = agent.can.details ? { session: { ...ownerId, agent: agent.name } } : {};
  }

  /**
   * Saves a snapshot.
   *
   * @throws `SessionConflictError` when another turn came first, and the store's errors.
   */
  async save(
    store: SessionStore<State>,
    { snapshotId, parentId, isNew }: Place,
    mutator: SnapshotMutator<State>,
    scopes: readonly ScopeChange[] = [],
  ): Promise<string | null> {
    for (;;) {
      const isLooking = isNew && this.#expectedLeafId !== undefined;
      try {
        // The leaf may be this snapshot itself, from an earlier write of the same turn.
        const isPassed = this.#expectedLeafId === snapshotId || this.#expectedLeafId === this.#damagedLeafId;
        if (isLooking && !isPassed) await this.#assertPassed(parentId);
        const options: SaveSnapshotOptions = {
          context: this.#context,
          ...(isNew && this.#session),
          ...(isLooking && { expectedLeafId: this.#expectedLeafId }),
          ...(scopes.length > 0 && { scopes }),
        };
        const saved = await store.saveSnapshot(snapshotId, mutator, options);
        if (isLooking) this.#expectedLeafId = snapshotId;
        return saved;
      } catch (error) {
        if (!SessionConflictError.isInstance(error) || !(await this.#isStillLast(parentId, error))) throw error;
      }
    }
  }

  /** Passes when the leaf did not complete and the session still continues from before it. An expired run may have been taken over in the meantime. */
  async #assertPassed(parentId: string | undefined): Promise<void> {
    const leafId = this.#expectedLeafId;
    if (typeof leafId !== 'string' || leafId === parentId) return;
    const leaf = await readStored(this.#agent, leafId, this.#context);
    if (leaf) assertNotRunning(this.#agent, leaf);
    if (leaf?.status !== 'completed') return;
    throw new SessionConflictError({
      sessionId: this.#sessionId,
      expectedLeafId: parentId ?? null,
      actualLeafId: leafId,
    });
  }

  /** Whether the turns that came first did not complete, so that the session still continues from `parentId`. */
  async #isStillLast(parentId: string | undefined, { actualLeafId }: SessionConflictError): Promise<boolean> {
    let found: Awaited<ReturnType<typeof findLastCompleted<State>>>;
    try {
      found = await findLastCompleted(this.#agent, this.#sessionId, this.#context);
    } catch (error) {
      const isBeforeDamage = parentId !== undefined && healthySnapshotOf(error) === parentId;
      if (!isBeforeDamage || actualLeafId === this.#damagedLeafId) throw error;
      this.#expectedLeafId = this.#damagedLeafId = actualLeafId;
      return true;
    }
    const { leaf, snapshot } = found;
    const isRunning = leaf?.status === 'pending';
    const isNew = leaf !== undefined && leaf.snapshotId !== this.#expectedLeafId;
    if (isRunning || !isNew || snapshot?.snapshotId !== parentId) return false;
    this.#expectedLeafId = leaf.snapshotId;
    return true;
  }
}
