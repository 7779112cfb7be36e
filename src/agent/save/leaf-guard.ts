import type { ActionContext } from 'genkit';
import type { SessionStore, SnapshotMutator } from 'genkit/beta';
import { SessionConflictError } from '../../errors.ts';
import type { SessionOwner } from '../../session/log/session-log.ts';
import type { SaveSnapshotOptions, ScopeChange, SessionDetails } from '../../store/contract.ts';
import type { AgentDefinition } from '../agent-definition.ts';
import { healthySnapshotOf } from '../open/damaged-session.ts';
import { assertNotRunning, findLastCompleted } from '../open/open-session.ts';
import { readStored } from '../open/read-snapshot.ts';

/** What {@link LeafGuard} needs to know. */
export interface LeafGuardOptions<State> {
  agent: AgentDefinition<State>;
  sessionId: string;
  /** What the call found as the session's leaf (`null`: nothing), and no other turn may follow; absent: it does not look. */
  expectedLeafId?: string | null;
  context: ActionContext | undefined;
  /** Whose the session is; absent: nobody's. */
  owner?: SessionOwner | undefined;
}

/** Where a snapshot belongs. */
export interface Place {
  snapshotId: string;
  parentId: string | undefined;
  /** The store does not have it, unless by an earlier attempt. */
  isNew: boolean;
}

/**
 * Saves the snapshots of a call, each new one only while the session's leaf is the one that the call knows: a new snapshot becomes the leaf,
 * and would hide what others saved meanwhile.
 */
export class LeafGuard<State> {
  readonly #agent: AgentDefinition<State>;
  readonly #sessionId: string;
  readonly #context: ActionContext | undefined;
  /** Only of a store that keeps it. */
  readonly #session: { session?: SessionDetails };
  /** What was the leaf when the call was opened, then what it saved last; `undefined`: it does not look. */
  #expectedLeafId: string | null | undefined;
  /** The leaf that can't be read, and the session goes on from before it. */
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
   * @throws `SessionConflictError` when another turn came first, and what the store throws.
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
        // The snapshot itself: an earlier write of the same turn came first.
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

  /** The leaf is one that did not complete, and the session goes on from before it; a silent run may have been taken over since. */
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

  /** Whether what came first has come to nothing: the session continues from where it did. */
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
