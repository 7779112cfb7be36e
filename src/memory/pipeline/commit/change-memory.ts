import { notFound, quote } from '../../../errors.ts';
import type { MemoryDraft, MemoryOperation } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import type { Pipeline } from '../pipeline.ts';
import { retryAborted } from './retry-aborted.ts';

/** The most attempts of a change of single memories, if others commit in between. */
export const MOST_ATTEMPTS = 50;

/**
 * Changes a memory; tries again after commits of others.
 *
 * @throws `NOT_FOUND` when there is no such memory.
 */
export function changeMemory(
  { store, now }: Pick<Pipeline, 'store' | 'now'>,
  { id, options }: ScopeTarget,
  memoryId: string,
  change: (memory: MemoryDraft) => MemoryDraft,
): Promise<void> {
  return retryAborted(MOST_ATTEMPTS, async () => {
    const revision = await store.revision(id, options);
    const [memory] = await store.get(id, [memoryId], options);
    if (!memory) throw notFound(`There is no memory ${quote(memoryId)}.`);
    const operation: MemoryOperation = { op: 'put', memory: change(memory) };
    await store.commit(id, [operation], { ...options, expectedRevision: revision, now: now() });
  });
}
