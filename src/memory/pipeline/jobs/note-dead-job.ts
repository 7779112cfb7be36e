import type { MemoryJob, MemoryStoreOptions } from '../../../store/memory/contract.ts';
import { memoryScope, targetOf } from '../../scopes.ts';
import { commitPlan } from '../records/commit-plan.ts';
import { readLearningState, sourceNoteOperation } from '../records/learning-state.ts';
import { withDeadJob } from '../records/ranges.ts';
import type { Pipeline } from '../pipeline.ts';
import { coversRange, parseJobInput } from '../records/job-input.ts';

/**
 * Notes that a job which `owner` holds will be dead, so that other jobs of its source skip its messages. They would fail on the same
 * message.
 */
export async function noteDeadJob(
  pipeline: Pipeline,
  job: MemoryJob,
  owner: string,
  options: MemoryStoreOptions,
): Promise<void> {
  const input = parseJobInput(job);
  if (!coversRange(input)) return;
  const { task, range } = input;
  const target = targetOf(memoryScope(job.scope, options.context));
  const hold = { id: job.id, owner, keep: true };
  await commitPlan(pipeline, target, async () => {
    const { revision, note, epoch } = await readLearningState(pipeline, target, job.sourceId);
    const next = withDeadJob(note, { ...range, jobId: job.id, task });
    return { revision, job: hold, steps: epoch === input.epoch ? [[sourceNoteOperation(job.sourceId, next)]] : [] };
  });
}
