import type { PageOptions } from '../../../store/contract.ts';
import { itemsOf } from '../../../store/list/items-of.ts';
import type { Memory, MemoryJob, MemoryQuery, MemoryStore } from '../../../store/memory/contract.ts';
import type { Pipeline } from '../pipeline.ts';
import type { ScopeTarget } from '../../scopes.ts';

type WantedJobs = Parameters<MemoryStore['listJobs']>[0];

/** All memories of a scope, including those that are no longer valid. */
export async function* memoriesOf({ store }: Pipeline, { id, options }: ScopeTarget): AsyncGenerator<Memory> {
  const all = { ...options, filter: { includeInvalid: true }, k: 1000 };
  for await (const { memory } of itemsOf((query: MemoryQuery) => store.query(id, query), all)) yield memory;
}

/** All jobs of a tenant, of a scope, or in a state, oldest first. */
export function jobsOf({ store }: Pipeline, wanted: WantedJobs): AsyncGenerator<MemoryJob> {
  return itemsOf((page: PageOptions) => store.listJobs({ ...wanted, ...page }), { limit: 1000 });
}

/** Like {@link jobsOf}, but returns an array. */
export async function listAllJobs(pipeline: Pipeline, wanted: WantedJobs): Promise<MemoryJob[]> {
  const all: MemoryJob[] = [];
  for await (const job of jobsOf(pipeline, wanted)) all.push(job);
  return all;
}
