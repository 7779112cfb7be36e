import { isAborted } from '../../../errors.ts';
import { cutByBytes } from '../../../json/size.ts';
import type { MemoryJobHold, MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import type { Pipeline } from '../pipeline.ts';

const MOST_ATTEMPTS = 50;
/** The most operations of one commit, and the most bytes of them. A store takes 100 operations and 2 MiB. */
const MOST_OPERATIONS = 100;
const MOST_BYTES = 1024 * 1024;

/** The operations to commit to a scope at a revision. */
export interface CommitPlan {
  readonly revision: number;
  /** The job that makes the commit. */
  readonly job?: MemoryJobHold;
  /** The steps in their order. A commit contains as many whole steps as fit. Without operations nothing is committed. */
  readonly steps: readonly (readonly MemoryOperation[])[];
}

/**
 * Commits a plan, in several commits if it is too large for one. If another writer commits first, makes a new plan. Returns the plan that
 * was committed last.
 *
 * @param onCommit Called with the operations of each commit.
 */
export async function commitPlan<P extends CommitPlan>(
  { store, now }: Pipeline,
  { id, options }: ScopeTarget,
  makePlan: () => Promise<P>,
  onCommit: (operations: readonly MemoryOperation[]) => void = () => {},
): Promise<P> {
  let refusedAt: number | undefined;
  for (let attempt = 1; ; attempt++) {
    // Outside of `try`, because it may call a model, whose errors must not lead to another attempt.
    const plan = await makePlan();
    let expectedRevision = plan.revision;
    try {
      for (const operations of commitsOf(plan)) {
        const { revision } = await store.commit(id, operations, {
          ...options,
          expectedRevision,
          job: plan.job,
          now: now(),
        });
        expectedRevision = revision;
        onCommit(operations);
      }
      return plan;
    } catch (error) {
      // The commit was refused twice at the same revision, so the worker has lost the job.
      const isLost = plan.job !== undefined && plan.revision === refusedAt;
      if (!isAborted(error) || isLost || attempt === MOST_ATTEMPTS) throw error;
      refusedAt = plan.revision;
    }
  }
}

function commitsOf({ steps }: CommitPlan): MemoryOperation[][] {
  return cutByBytes(steps, MOST_BYTES).flatMap((some) => {
    const commits: MemoryOperation[][] = [];
    for (const step of some) {
      const last = commits.at(-1);
      if (last && last.length + step.length <= MOST_OPERATIONS) last.push(...step);
      else if (step.length > 0) commits.push([...step]);
    }
    return commits;
  });
}
