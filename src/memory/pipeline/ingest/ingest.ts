import type { Json } from '../../../json/value.ts';
import type { IngestOptions, IngestResult } from '../../types.ts';
import { toFact } from '../records/check-facts.ts';
import { beginEpoch, readLearningState } from '../records/learning-state.ts';
import type { JobSource } from '../records/candidate.ts';
import { jobId, MOST_USES, outsideDeadJobs, type JobInput } from '../records/job-input.ts';
import type { Pipeline } from '../pipeline.ts';
import { factsInputs, learnInputs, procedureInputs } from './plan-jobs.ts';
import type { SourceNote } from '../records/ranges.ts';
import { targetOf, type ScopeTarget } from '../../scopes.ts';
import { redactFact, redactMessage } from '../guard/redact.ts';

/** Ingests only if `isThere` returns true after the epoch was read, because the session may have been erased before. */
export type IngestWhile = (options: IngestOptions, isThere?: () => Promise<boolean>) => Promise<IngestResult>;

/** An {@link IngestResult}, and the jobs to work on. */
export interface Enqueued extends IngestResult {
  /**
   * The new jobs, and the jobs already queued, whose workers may have died. If there are none: the dead jobs that have some of the messages,
   * so that `wait` returns `failed`.
   */
  readonly openIds: readonly string[];
}

/**
 * Adds jobs for the messages or facts that were not read yet. Adds a job for a procedure only if `isSuccess` returns true.
 *
 * @param options Must be checked before.
 * @param isThere As in {@link IngestWhile}; called only if there is new data.
 */
export async function addJobs(
  pipeline: Pipeline,
  options: IngestOptions,
  isThere: () => Promise<boolean> = async () => true,
): Promise<Enqueued> {
  const { scope, messages, procedure } = options;
  const target = targetOf(scope);
  const source: JobSource = { ...options.source!, at: new Date(options.source!.at ?? pipeline.now()).toISOString() };
  const { consent, note, epoch } = await beginEpoch(pipeline, target, source.id);
  if (consent === 'off') {
    pipeline.report({ type: 'no-consent', scope, sourceId: source.id });
    return { status: 'refused', jobIds: [], openIds: [] };
  }
  const unread = await redactedInputs(pipeline, options, source, note);
  const planned = unread.map((input) => outsideDeadJobs(input, note));
  const inputs = planned.flatMap(({ parts }) => parts);
  if (inputs.length === 0) return { status: 'known', jobIds: [], openIds: planned.flatMap(({ deadIds }) => deadIds) };
  const isWanted = !procedure || (await pipeline.isSuccess!({ scope, sourceId: source.id, messages: messages! }));
  if (!isWanted || !(await isThere())) return { status: 'known', jobIds: [], openIds: [] };
  return enqueue(pipeline, target, { inputs, epoch });
}

/**
 * Adds jobs in their order; if the queue is full, a later call adds the rest. Removes them again if the scope was erased since `epoch` was
 * read: a worker would drop them, but until then their texts would stay in the queue.
 */
export async function enqueue(
  pipeline: Pipeline,
  target: ScopeTarget,
  { inputs, epoch }: { inputs: readonly JobInput[]; epoch: string | undefined },
): Promise<Enqueued> {
  const ofEpoch = inputs.map((input) => ({ ...input, epoch }));
  const result = await addInputs(pipeline, target, ofEpoch);
  if (result.jobIds.length === 0) return result;
  const current = await readLearningState(pipeline, target);
  if (current.epoch === epoch) return result;
  const { store, now } = pipeline;
  for (const id of result.jobIds) {
    try {
      await store.changeJob(id, { ...target.options, owner: undefined, to: 'remove', now: now() });
    } catch (error) {
      // `ABORTED`: a worker holds the job and will drop it. `NOT_FOUND`: the erasure has removed the job.
      if (!['ABORTED', 'NOT_FOUND'].includes((error as { status: string }).status)) throw error;
    }
  }
  return { status: 'refused', jobIds: [], openIds: [] };
}

async function addInputs(
  { store, limits, now, report, countRefusal, usesOf }: Pipeline,
  target: ScopeTarget,
  inputs: readonly JobInput[],
): Promise<Enqueued> {
  const { scope, id, options } = target;
  const uses = usesOf(scope);
  const jobIds: string[] = [];
  const openIds: string[] = [];
  for (const input of inputs) {
    const noted = [...uses].slice(0, MOST_USES);
    const carrying = noted.length === 0 ? input : { ...input, uses: Object.fromEntries(noted) };
    const job = { id: jobId(target, input), scope: id, input: carrying as unknown as Json, sourceId: input.source.id };
    const added = await store.addJob(job, { ...options, maxJobs: limits.maxJobs, now: now() });
    if (added === 'full') {
      report({ type: 'full', scope, sourceId: input.source.id, refused: countRefusal() });
      return { status: 'full', jobIds, openIds };
    }
    openIds.push(job.id);
    if (added === 'known') continue;
    jobIds.push(job.id);
    for (const [used, at] of noted) if (uses.get(used) === at) uses.delete(used);
  }
  return { status: jobIds.length > 0 ? 'queued' : 'known', jobIds, openIds };
}

/** Returns the redacted inputs of the jobs for the messages or facts that were not read yet. */
export async function redactedInputs(
  { redact, extract: ofManager }: Pipeline,
  { messages, memories, extract, procedure }: Omit<IngestOptions, 'scope'>,
  source: JobSource,
  note: SourceNote,
): Promise<JobInput[]> {
  if (memories) {
    const facts = await Promise.all(memories.map((fact) => redactFact(toFact(fact), redact)));
    return factsInputs(source, facts, note);
  }
  const isVerbatim = extract === 'verbatim' || ofManager === 'verbatim';
  const inputs = procedure
    ? procedureInputs(source, messages!, note)
    : learnInputs(isVerbatim ? 'verbatim' : 'learn', source, messages!, note);
  return Promise.all(
    inputs.map(async (input) => ({
      ...input,
      messages: await Promise.all(input.messages.map((message) => redactMessage(message, redact))),
    })),
  );
}
