import { failedPrecondition, notFound, quote } from '../../../errors.ts';
import type { Memory, MemoryDraft, MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { countOf, withConfidence } from '../consolidate/confidence.ts';
import { withoutEnd } from '../consolidate/working-memories.ts';
import type { Pipeline } from '../pipeline.ts';
import { commitPlan } from '../records/commit-plan.ts';
import { derivedNote } from './derived-notes.ts';
import { memoriesOf } from '../records/list-all.ts';

/** Removes the profile and the summary of a scope, which may say what does not hold or may not be known any more. */
export const REMOVE_DERIVED = [derivedNote('profile', undefined), derivedNote('summary', undefined)];

/** Counts a success or a failure of a procedure. */
export function noteOutcome(pipeline: Pipeline, target: ScopeTarget, id: string, isSuccess: boolean): Promise<void> {
  return changeMemory(pipeline, target, id, async (memory) => {
    if (memory.kind !== 'procedural')
      throw failedPrecondition(`The memory ${quote(id)} is no procedure, so it has no outcomes.`);
    const name = isSuccess ? 'successes' : 'failures';
    return [[putOf({ ...memory, [name]: countOf(memory, name) + 1 })]];
  });
}

/** Makes a memory hold again, ends the one that holds in its place, and removes the profile and the summary, in one commit. */
export function restoreMemory(pipeline: Pipeline, target: ScopeTarget, id: string): Promise<void> {
  return changeMemory(pipeline, target, id, async (memory) => {
    if (memory.validTo === undefined)
      throw failedPrecondition(
        `The memory ${quote(id)} holds already; an earlier revision of it can't be restored. To get it back, create the earlier fact again.`,
      );
    const [last, replacement] = (await successorsOf(pipeline, target, memory)).toReversed();
    const holding = last?.validTo === undefined ? last : undefined;
    const revisions =
      holding && replacement ? await pipeline.store.revisions(target.id, holding.id, target.options) : [];
    // `replacement` may have replaced both at once, and `holding` was restored since: then both may hold.
    const mayBothHold = revisions.some(
      ({ supersededBy, validTo }) => supersededBy === replacement?.id && validTo === memory.validTo,
    );
    const validTo = new Date(pipeline.now()).toISOString();
    const ended = holding && !mayBothHold ? [putOf({ ...holding, validTo, supersededBy: id })] : [];
    return [[putOf(withoutEnd(memory)), ...ended, ...REMOVE_DERIVED]];
  });
}

/**
 * Removes a memory with its revisions. Those that it has replaced are then replaced by the one that has replaced it. The store drops the
 * scope's profile and summary with it.
 */
export function removeMemory(pipeline: Pipeline, target: ScopeTarget, id: string): Promise<void> {
  return changeMemory(pipeline, target, id, async ({ supersededBy }) => {
    const steps: MemoryOperation[][] = [];
    if (supersededBy !== undefined) {
      for await (const memory of memoriesOf(pipeline, target))
        if (memory.supersededBy === id) steps.push([{ op: 'put', memory: { ...memory, supersededBy } }]);
    }
    return [...steps, [{ op: 'remove', id }]];
  });
}

/** Commits what `change` makes of a memory. Each of its steps is committed as a whole. */
async function changeMemory(
  pipeline: Pipeline,
  target: ScopeTarget,
  id: string,
  change: (memory: Memory) => Promise<MemoryOperation[][]>,
): Promise<void> {
  const { store } = pipeline;
  await commitPlan(pipeline, target, async () => {
    const revision = await store.revision(target.id, target.options);
    const [memory] = await store.get(target.id, [id], target.options);
    if (!memory) throw notFound(`There is no memory ${quote(id)}.`);
    return { revision, steps: await change(memory) };
  });
}

/** Writes a memory, with the confidence that its sources and outcomes give. */
function putOf(memory: MemoryDraft): MemoryOperation {
  return { op: 'put', memory: withConfidence(memory) };
}

/** The memory that replaced this one, the one that replaced that, and so on; up to one that holds or that was removed. */
async function successorsOf({ store }: Pipeline, { id, options }: ScopeTarget, memory: Memory): Promise<Memory[]> {
  const found = new Map<string, Memory>([[memory.id, memory]]);
  for (let next = memory.supersededBy; next !== undefined && !found.has(next);) {
    const [successor] = await store.get(id, [next], options);
    if (!successor) break;
    found.set(next, successor);
    next = successor.supersededBy;
  }
  return [...found.values()].slice(1);
}
