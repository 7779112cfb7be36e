import { failedPrecondition, notFound, quote } from '../../../errors.ts';
import type { Memory, MemoryDraft, MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { countOf, withConfidence } from '../consolidate/confidence.ts';
import { withoutEnd } from '../consolidate/working-memories.ts';
import type { Pipeline } from '../pipeline.ts';
import { commitPlan } from '../records/commit-plan.ts';
import { REMOVE_DERIVED } from './derived-notes.ts';
import { memoriesOf } from '../records/list-all.ts';

/** Counts a success or a failure of a procedure. */
export function noteOutcome(pipeline: Pipeline, target: ScopeTarget, id: string, isSuccess: boolean): Promise<void> {
  return changeMemory(pipeline, target, id, async (memory) => {
    if (memory.kind !== 'procedural')
      throw failedPrecondition(`The memory ${quote(id)} is not a procedure. Only procedures have outcomes.`);
    const name = isSuccess ? 'successes' : 'failures';
    return [[putOf({ ...memory, [name]: countOf(memory, name) + 1 })]];
  });
}

/** In one commit, makes a memory valid again, ends the memory that replaced it, and removes the profile and the summary. */
export function restoreMemory(pipeline: Pipeline, target: ScopeTarget, id: string): Promise<void> {
  return changeMemory(pipeline, target, id, async (memory) => {
    if (memory.validTo === undefined)
      throw failedPrecondition(
        `The memory ${quote(id)} is valid already. An earlier revision of a memory can't be restored; create the earlier fact again instead.`,
      );
    const [last, replacement] = (await successorsOf(pipeline, target, memory)).toReversed();
    const holding = last?.validTo === undefined ? last : undefined;
    const revisions =
      holding && replacement ? await pipeline.store.revisions(target.id, holding.id, target.options) : [];
    // If `replacement` replaced both at once and `holding` was restored since, both may be valid.
    const mayBothHold = revisions.some(
      ({ supersededBy, validTo }) => supersededBy === replacement?.id && validTo === memory.validTo,
    );
    const validTo = new Date(pipeline.now()).toISOString();
    const ended = holding && !mayBothHold ? [putOf({ ...holding, validTo, supersededBy: id })] : [];
    return [[putOf(withoutEnd(memory)), ...ended, ...REMOVE_DERIVED]];
  });
}

/**
 * Removes a memory with its revisions. The memories that it replaced then name its own successor as theirs. With the memory, the store
 * drops the scope's profile and summary.
 */
export async function removeMemory(pipeline: Pipeline, target: ScopeTarget, id: string): Promise<void> {
  await changeMemory(pipeline, target, id, async ({ supersededBy }) => {
    const steps: MemoryOperation[][] = [];
    if (supersededBy !== undefined) {
      for await (const memory of memoriesOf(pipeline, target))
        if (memory.supersededBy === id) steps.push([{ op: 'put', memory: { ...memory, supersededBy } }]);
    }
    return [...steps, [{ op: 'remove', id }]];
  });
  pipeline.saveIndex(target.scope);
}

/** Commits the steps that `change` returns for a memory. Each step is committed as a whole. */
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

/** Writes a memory, with a new confidence from its sources and outcomes. */
function putOf(memory: MemoryDraft): MemoryOperation {
  return { op: 'put', memory: withConfidence(memory) };
}

/**
 * Follows `supersededBy`: returns the memory that replaced this one, then its own successor, and so on, up to a memory that is valid or was
 * removed.
 */
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
