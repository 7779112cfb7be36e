import { notFound, quote } from '../../errors.ts';
import { itemsOf } from '../../store/list/items-of.ts';
import type { MemoryPageOptions, MemoryStoreOptions } from '../../store/memory/contract.ts';
import { commitPlan } from '../pipeline/commit/commit-plan.ts';
import { readLearningState, sourceNoteOperation, splitOperation } from '../pipeline/guard/learning-state.ts';
import { parseJobInput, withInput } from '../pipeline/jobs/job-input.ts';
import { workOf, type Pipeline } from '../pipeline/pipeline.ts';
import { mint } from '../scopes.ts';

/**
 * Removes a dead job and the messages or facts in it. The messages count as read, so they are not learned later; facts can be given again.
 *
 * @throws `NOT_FOUND` when there is no such dead job.
 */
export async function discardJob(pipeline: Pipeline, id: string, options: MemoryStoreOptions): Promise<void> {
  const { store, now } = pipeline;
  const deadJobs = (page: MemoryPageOptions) => store.listJobs({ ...options, ...page, state: 'dead' });
  for await (const job of itemsOf(deadJobs, { limit: 1000 })) {
    if (job.id !== id) continue;
    const work = workOf(mint(job.scope, options.context));
    const input = parseJobInput(job);
    await commitPlan(pipeline, work, async () => {
      const { revision, note } = await readLearningState(pipeline, work, job.sourceId);
      const operations = [splitOperation(id, undefined)];
      if (input.task !== 'facts') operations.push(sourceNoteOperation(job.sourceId, withInput(note, input)));
      return { revision, operations };
    });
    await store.changeJob(id, { ...options, owner: undefined, to: 'remove', now: now() });
    return;
  }
  throw notFound(`There is no dead memory job ${quote(id)}.`);
}
