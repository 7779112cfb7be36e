import { isAborted } from '../../../errors.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import type { Pipeline } from '../pipeline.ts';

const MOST_ATTEMPTS = 50;

/** What to commit to a scope that has a revision. Without operations nothing is committed. */
interface CommitPlan {
  readonly revision: number;
  readonly operations: readonly MemoryOperation[];
}

/** Commits a plan. If another commit comes first, makes a new plan. Returns the plan that was committed. */
export async function commitPlan<P extends CommitPlan>(
  { store, now }: Pick<Pipeline, 'store' | 'now'>,
  { id, options }: ScopeTarget,
  makePlan: () => Promise<P>,
): Promise<P> {
  for (let attempt = 1; ; attempt++) {
    // Outside of `try`: it may call a model, whose errors do not lead to another attempt.
    const plan = await makePlan();
    const { revision: expectedRevision, operations } = plan;
    if (operations.length === 0) return plan;
    try {
      await store.commit(id, operations, { ...options, expectedRevision, now: now() });
      return plan;
    } catch (error) {
      if (!isAborted(error) || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}
