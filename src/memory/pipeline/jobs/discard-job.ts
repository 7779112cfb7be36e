import { isAborted, notFound, quote } from '../../../errors.ts';
import { assertId } from '../../../snapshot/ids.ts';
import type { MemoryJob, MemoryOperation, MemoryStoreOptions } from '../../../store/memory/contract.ts';
import { commitPlan } from '../records/commit-plan.ts';
import { jobsOf } from '../records/list-all.ts';
import { readLearningState, sourceNoteOperation, splitOperation } from '../records/learning-state.ts';
import { withoutDeadJob, withoutFacts } from '../records/ranges.ts';
import { outsideDeadJobs, parseJobInput, withInput } from '../records/job-input.ts';
import type { Pipeline } from '../pipeline.ts';
import { memoryScope, targetOf } from '../../scopes.ts';

/** Removes a dead job, and marks its messages as read. */
export async function discardJob(pipeline: Pipeline, id: string, options: MemoryStoreOptions): Promise<void> {
  assertId(id, 'job id');
  const { store, now } = pipeline;
  const { scope, sourceId } = await deadJob(pipeline, id, options);
  const target = targetOf(memoryScope(scope, options.context));
  const { countsAsRead } = await commitPlan(pipeline, target, async () => {
    const { revision, note } = await readLearningState(pipeline, target, sourceId);
    // Read the job after the note: if the job was erased or finished in between, the scope has another revision, and this commit fails.
    const input = parseJobInput(await deadJob(pipeline, id, options));
    // Messages that belong to other dead jobs are not marked as read.
    const { parts } = outsideDeadJobs(input, note, id);
    const next =
      input.task === 'facts'
        ? withoutFacts(note)
        : parts.reduce((one, part) => withInput(one, part, id, false), withoutDeadJob(note, id));
    const countsAsRead = input.task !== 'facts' && !input.isApproved;
    const operations: MemoryOperation[] = [splitOperation(id, undefined)];
    if (next !== note) operations.push(sourceNoteOperation(sourceId, next));
    return { revision, steps: [operations], countsAsRead };
  });
  try {
    await store.changeJob(id, { ...options, owner: undefined, to: 'remove', now: now() });
  } catch (error) {
    // A worker already tries the job again. It learns nothing from messages that count as read.
    if (!isAborted(error) || !countsAsRead) throw error;
  }
}

async function deadJob(pipeline: Pipeline, id: string, options: MemoryStoreOptions): Promise<MemoryJob> {
  for await (const job of jobsOf(pipeline, { ...options, state: 'dead' })) if (job.id === id) return job;
  throw notFound(`There is no dead memory job ${quote(id)}.`);
}
