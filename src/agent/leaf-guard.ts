import type { ActionContext } from 'genkit';
import type { SessionStore, SnapshotMutator } from 'genkit/beta';
import { SessionConflictError } from '../errors.ts';
import type { SaveSnapshotOptions, ScopeChange } from '../store/contract.ts';
import type { AgentDefinition } from './agent-definition.ts';
import { findLastCompleted } from './open-session.ts';
import { isTransient, withRetries } from './retry.ts';

/** What {@link LeafGuard} needs to know. */
export interface LeafGuardOptions<State> {
  agent: AgentDefinition<State>;
  sessionId: string;
  /** What the first save of the call expects to be the session's leaf (`null`: nothing); absent: it does not look. */
  expectedLeafId?: string | null;
  context: ActionContext | undefined;
}

/** Saves the first snapshot of a call only while the session's leaf is the one that the call has seen; the later ones follow its own. */
export class LeafGuard<State> {
  readonly #agent: AgentDefinition<State>;
  readonly #sessionId: string;
  readonly #context: ActionContext | undefined;
  #expectedLeafId: string | null | undefined;

  constructor({ agent, sessionId, expectedLeafId, context }: LeafGuardOptions<State>) {
    this.#agent = agent;
    this.#sessionId = sessionId;
    this.#expectedLeafId = expectedLeafId;
    this.#context = context;
  }

  /** What is saved next stands in nobody's way, whatever the session's leaf is by then. */
  ignoreLeaf(): void {
    this.#expectedLeafId = undefined;
  }

  /**
   * Saves a snapshot; a failing store is asked again.
   *
   * @throws `SessionConflictError` when another turn came first, and what the store throws.
   */
  async save(
    store: SessionStore<State>,
    { snapshotId, parentId }: { snapshotId: string; parentId: string | undefined },
    mutator: SnapshotMutator<State>,
    scopes: readonly ScopeChange[] = [],
  ): Promise<string | null> {
    for (;;) {
      try {
        const expected = this.#expectedLeafId !== undefined && { expectedLeafId: this.#expectedLeafId };
        const options: SaveSnapshotOptions = {
          context: this.#context,
          ...expected,
          ...(scopes.length > 0 && { scopes }),
        };
        const saved = await withRetries(() => store.saveSnapshot(snapshotId, mutator, options), isTransient);
        // From here on the session's leaf is this call's own.
        this.#expectedLeafId = undefined;
        return saved;
      } catch (error) {
        if (!SessionConflictError.isInstance(error) || !(await this.#isStillLast(parentId))) throw error;
      }
    }
  }

  /** Whether what came first has come to nothing: the session continues from where it did. */
  async #isStillLast(parentId: string | undefined): Promise<boolean> {
    const { leaf, snapshot } = await findLastCompleted(this.#agent, this.#sessionId, this.#context);
    const isRunning = leaf?.status === 'pending';
    const isNew = leaf !== undefined && leaf.snapshotId !== this.#expectedLeafId;
    if (isRunning || !isNew || snapshot?.snapshotId !== parentId) return false;
    this.#expectedLeafId = leaf.snapshotId;
    return true;
  }
}
