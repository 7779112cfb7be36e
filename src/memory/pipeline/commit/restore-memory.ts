import { failedPrecondition, notFound, quote } from '../../../errors.ts';
import type { Memory, MemoryDraft, MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { withConfidence } from '../consolidate/confidence.ts';
import { withoutEnd } from '../consolidate/working-memories.ts';
import type { Pipeline } from '../pipeline.ts';
import { MOST_ATTEMPTS } from './change-memory.ts';
import { retryAborted } from './retry-aborted.ts';

/**
 * Makes a memory hold again, and ends the one that holds in its place, in one commit.
 *
 * @throws `NOT_FOUND` when there is no such memory; `FAILED_PRECONDITION` when it holds already.
 */
export async function restoreMemory(
  { store, now }: Pick<Pipeline, 'store' | 'now'>,
  { id: scope, options }: ScopeTarget,
  id: string,
): Promise<void> {
  const read = async (one: string) => (await store.get(scope, [one], options))[0];
  await retryAborted(MOST_ATTEMPTS, async () => {
    const expectedRevision = await store.revision(scope, options);
    const memory = await read(id);
    if (!memory) throw notFound(`There is no memory ${quote(id)}.`);
    if (memory.validTo === undefined)
      throw failedPrecondition(
        `The memory ${quote(id)} holds already; an earlier revision of it can't be restored. To get it back, create the earlier fact again.`,
      );
    const restored: MemoryDraft[] = [withoutEnd(memory)];
    const at = new Date(now()).toISOString();
    const chain = await successors(memory, read);
    const last = chain.at(-1);
    const isMeant = last && last.validTo === undefined && !(await wasReplacedWith(memory, last, chain.at(-2)));
    if (isMeant) restored.push({ ...last, validTo: at, supersededBy: id });
    const operations = restored.map((one): MemoryOperation => ({ op: 'put', memory: withConfidence(one) }));
    await store.commit(scope, operations, { ...options, expectedRevision, now: now() });
  });

  /** Whether one memory has replaced both at once, so that they do not contradict each other; the last one was restored since. */
  async function wasReplacedWith(memory: Memory, last: Memory, replaced: Memory | undefined): Promise<boolean> {
    if (!replaced) return false;
    const revisions = await store.revisions(scope, last.id, options);
    return revisions.some(({ supersededBy, validTo }) => supersededBy === replaced.id && validTo === memory.validTo);
  }
}

/** The memory that replaced this one, the one that replaced that, and so on; up to one that holds or that was removed. */
async function successors(memory: Memory, read: (id: string) => Promise<Memory | undefined>): Promise<Memory[]> {
  const found: Memory[] = [];
  const seen = new Set([memory.id]);
  for (let id = memory.supersededBy; id !== undefined && !seen.has(id);) {
    seen.add(id);
    const next = await read(id);
    if (!next) break;
    found.push(next);
    id = next.supersededBy;
  }
  return found;
}
