import { isAborted, notFound, quote } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import { itemsOf } from '../../store/list/items-of.ts';
import type { MemoryJob, MemoryPageOptions, MemoryStoreOptions } from '../../store/memory/contract.ts';
import { commitPlan } from '../pipeline/commit/commit-plan.ts';
import { readLearningState, sourceNoteOperation, splitOperation } from '../pipeline/guard/learning-state.ts';
import { withoutFacts } from '../pipeline/ingest/ranges.ts';
import { parseJobInput, withInput } from '../pipeline/jobs/job-input.ts';
import { workOf, type Pipeline } from '../pipeline/pipeline.ts';
import { memoryScope } from '../scopes.ts';

/**
 * Removes a dead job. Its messages count as read, so they are not learned later; its facts can be given again.
 *
 * @throws `NOT_FOUND` when there is no such dead job; `ABORTED` when another process tries its facts, or an approved text, again.
 */
export async function discardJob(pipeline: Pipeline, id: string, options: MemoryStoreOptions): Promise<void> {
  assertId(id, 'job id');
  const { store, now } = pipeline;
  const { scope, sourceId } = await deadJob(pipeline, id, options);
  const work = workOf(memoryScope(scope, options.context));
  const { countsAsRead } = await commitPlan(pipeline, work, async () => {
    const { revision, note } = await readLearningState(pipeline, work, sourceId);
    // After the note: once the job was erased or carried out, nothing may be written, and the scope has another revision.
    const input = parseJobInput(await deadJob(pipeline, id, options));
    const next = input.task === 'facts' ? withoutFacts(note) : withInput(note, input, false);
    const countsAsRead = input.task !== 'facts' && !input.isApproved;
    const operations = [splitOperation(id, undefined)];
    if (next !== note) operations.push(sourceNoteOperation(sourceId, next));
    return { revision, operations, countsAsRead };
  });
  try {
    await store.changeJob(id, { ...options, owner: undefined, to: 'remove', now: now() });
  } catch (error) {
    // A worker tries it again by now, and learns nothing from messages that count as read.
    if (!isAborted(error) || !countsAsRead) throw error;
  }
}

async function deadJob({ store }: Pipeline, id: string, options: MemoryStoreOptions): Promise<MemoryJob> {
  const deadJobs = (page: MemoryPageOptions) => store.listJobs({ ...options, ...page, state: 'dead' });
  for await (const job of itemsOf(deadJobs, { limit: 1000 })) if (job.id === id) return job;
  throw notFound(`There is no dead memory job ${quote(id)}.`);
}
