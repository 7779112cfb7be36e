import { invalidArgument } from '../../errors.ts';
import { checkOptions, isShare, isWhole } from '../../store/check-options.ts';
import type { Unreadable } from '../../store/contract.ts';
import type { Memory, MemoryOperation } from '../../store/memory/contract.ts';
import { isExpired } from '../../store/memory/version.ts';
import { commitPlan } from '../pipeline/records/commit-plan.ts';
import { agedConfidence, newestSourceTime } from '../pipeline/consolidate/confidence.ts';
import { removeTexts, waitingTexts } from './review.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import type { MemoryPrunePolicy } from '../types.ts';
import { memoriesOf } from '../pipeline/records/list-all.ts';
import type { ScopeTarget } from '../scopes.ts';

const POLICY = {
  maxAgeMs: isWhole(0),
  minConfidence: isShare,
  halfLifeMs: isWhole(1),
  unusedMs: isWhole(0),
  maxMemories: isWhole(0),
  quarantineMs: isWhole(0),
};

/** The counts of `prune`. */
export interface PrunedMemories {
  /** Removed memories; with `dryRun`, memories to remove. Includes memories that are no longer valid. */
  memories: number;
  /** Removed quarantined texts; with `dryRun`, texts to remove. */
  quarantined: number;
  /** Data that can't be read, when all scopes are pruned. It was not pruned. Missing when there is none. */
  unreadable?: Unreadable[];
}

/** @throws `INVALID_ARGUMENT` */
export function checkPolicy(policy: MemoryPrunePolicy): void {
  checkOptions('prune', policy, POLICY);
  if (policy === undefined) throw invalidArgument('prune needs a policy, such as { maxAgeMs }.');
}

/** Removes the memories and the quarantined texts of a scope to which the policy applies. */
export async function pruneScope(
  pipeline: Pipeline,
  target: ScopeTarget,
  policy: MemoryPrunePolicy,
  dryRun: boolean,
): Promise<PrunedMemories> {
  const { quarantineMs } = policy;
  let quarantined = 0;
  if (quarantineMs !== undefined) {
    const isOld = ({ at }: { readonly at: string }) => pipeline.now() - Date.parse(at) > quarantineMs;
    quarantined = dryRun
      ? (await waitingTexts(pipeline, target)).filter(isOld).length
      : await removeTexts(pipeline, target, isOld);
  }
  return { memories: await pruneMemories(pipeline, target, policy, dryRun), quarantined };
}

/**
 * Removes the memories to which the policy applies. If another writer commits first, the selection is repeated, because a changed memory
 * may have to stay.
 */
async function pruneMemories(
  pipeline: Pipeline,
  target: ScopeTarget,
  policy: MemoryPrunePolicy,
  dryRun: boolean,
): Promise<number> {
  const { store, saveIndex } = pipeline;
  let removed = 0;
  const plan = async () => {
    const revision = await store.revision(target.id, target.options);
    const gone = await memoriesToPrune(pipeline, target, policy);
    return { revision, steps: gone.map((id): MemoryOperation[] => [{ op: 'remove', id }]) };
  };
  if (dryRun) return (await plan()).steps.length;
  await commitPlan(pipeline, target, plan, ({ length }) => (removed += length));
  if (removed > 0) saveIndex(target.scope);
  return removed;
}

async function memoriesToPrune(pipeline: Pipeline, target: ScopeTarget, policy: MemoryPrunePolicy): Promise<string[]> {
  const now = pipeline.now();
  const uses = pipeline.usesOf(target.scope);
  const rank: { id: string; worth: number }[] = [];
  const gone: string[] = [];
  for await (const memory of memoriesOf(pipeline, target)) {
    const lastUsedAt = uses.get(memory.id) ?? memory.lastUsedAt;
    if (matchesPolicy({ ...memory, lastUsedAt }, policy, now)) gone.push(memory.id);
    else if (memory.validTo === undefined) {
      const worth = agedConfidence(memory, now, policy.halfLifeMs) + memory.importance;
      rank.push({ id: memory.id, worth });
    }
  }
  const { maxMemories = Infinity } = policy;
  const excess = rank.toSorted((a, b) => a.worth - b.worth).slice(0, Math.max(0, rank.length - maxMemories));
  return [...gone, ...excess.map(({ id }) => id)];
}

function matchesPolicy(memory: Memory, policy: MemoryPrunePolicy, now: number): boolean {
  const { maxAgeMs, minConfidence, halfLifeMs, unusedMs } = policy;
  const { updatedAt, lastUsedAt, validTo } = memory;
  if (isExpired(memory, now)) return true;
  const isOld = maxAgeMs !== undefined && now - lastChange(memory) > maxAgeMs;
  if (validTo !== undefined) return isOld;
  if (minConfidence !== undefined && agedConfidence(memory, now, halfLifeMs) < minConfidence) return true;
  const lastNeeded = lastUsedAt !== undefined && lastUsedAt > updatedAt ? lastUsedAt : updatedAt;
  return isOld || (unusedMs !== undefined && now - Date.parse(lastNeeded) > unusedMs);
}

/**
 * Returns when a memory was created, got its last source, or became invalid. Does not use `updatedAt`, which the use of a memory also
 * changes.
 */
function lastChange(memory: Memory): number {
  const { createdAt, validTo = createdAt } = memory;
  return Math.max(...[createdAt, validTo, newestSourceTime(memory)].map((time) => Date.parse(time)));
}
