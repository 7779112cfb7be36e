import { GenkitError } from 'genkit';
import { isAborted } from '../../../errors.ts';
import type { Memory, MemoryDraft, MemoryJob, MemoryOperation } from '../../../store/memory/contract.ts';
import { mint } from '../../scopes.ts';
import type { MemoryChangeCounts } from '../../types.ts';
import { consolidate, type Consolidated } from '../consolidate/consolidate.ts';
import { modelAsker, withinTime } from '../extract/ask-model.ts';
import type { Candidate } from '../extract/candidate.ts';
import { learn, type LearnContext, type Learned } from '../extract/learn.ts';
import { readGate, sourceNoteKey, type Gate, type SplitJob } from '../guard/learning-state.ts';
import { guardOf } from '../guard/judge-text.ts';
import { quarantineNote } from '../guard/quarantine-note.ts';
import {
  procedureMark,
  sourceNoteValue,
  unreadRanges,
  withRange,
  withSeen,
  hashInRange,
  type SourceNote,
} from '../ingest/ranges.ts';
import { parseJobInput, partOf, type JobInput } from '../jobs/job-input.ts';
import { NOTES, PIPELINE_KEYS, type Pipeline, type ScopeWork } from '../pipeline.ts';
import { nextProfile, organizedNotes, readOrganized, type Organized } from './organize.ts';

/** The most candidates of one commit: with their vectors they stay within the limits of a store. */
const MOST_CANDIDATES = 30;
/** The most commits of one attempt, those included that are refused because of other commits. Then the attempt fails. */
const MOST_COMMITS = 20;
const NEAREST = 10;
/** The most memories whose last use one commit writes. */
const MOST_USES = 10;

/** How a run ended. `dropped`: nothing may be kept; `lost`: another worker has the job. */
export type JobOutcome = 'committed' | 'known' | 'dropped' | 'lost';

/** Carries out a job that this worker holds: from the guard to the commit that removes the job. */
export async function runJob(
  pipeline: Pipeline,
  job: MemoryJob,
  { owner, signal, options }: { owner: string; signal: AbortSignal; options: ScopeWork['options'] },
): Promise<JobOutcome> {
  const { model, ai, limits } = pipeline;
  const ask = model === undefined ? undefined : modelAsker(ai, model, { timeoutMs: limits.timeoutMs, signal });
  const scope = mint(job.scope, options.context);
  return new JobRun(pipeline, { scope, id: job.scope, options, job, ask, signal }, owner).run();
}

/** A running job. */
interface JobWork extends ScopeWork, LearnContext {
  readonly job: MemoryJob;
}

class JobRun {
  readonly #pipeline: Pipeline;
  readonly #work: JobWork;
  readonly #owner: string;
  readonly #input: JobInput;
  #learned: Learned | undefined;
  #organized: Organized = {};
  readonly #counts: MemoryChangeCounts = { created: 0, updated: 0, invalidated: 0, ignored: 0, quarantined: 0 };

  constructor(pipeline: Pipeline, work: JobWork, owner: string) {
    this.#pipeline = pipeline;
    this.#work = work;
    this.#owner = owner;
    this.#input = parseJobInput(work.job);
  }

  async run(): Promise<JobOutcome> {
    for (let commits = 0, lastRevision = -1; commits < MOST_COMMITS; commits++) {
      const gate = await this.#gate();
      const reason = this.#reasonToDrop(gate);
      if (reason !== undefined) return this.#drop(reason, gate);
      const left = this.#unread(gate.note);
      if (!left) return this.#drop('known', gate);
      // The commit was refused although the scope has not changed: this worker has lost the job.
      if (gate.revision === lastRevision) return 'lost';
      lastRevision = gate.revision;
      try {
        if (await this.#step(gate, left)) return 'committed';
        lastRevision = -1;
      } catch (error) {
        if (!isAborted(error) || this.#work.signal.aborted) throw error;
      }
    }
    throw new GenkitError({ status: 'ABORTED', message: 'Other writers changed the scope again and again.' });
  }

  #gate(): Promise<Gate> {
    const { job } = this.#work;
    return readGate(this.#pipeline, this.#work, job.sourceId, job.id);
  }

  #reasonToDrop({ consent, note, epoch }: Gate): 'erased' | 'no-consent' | 'forgotten' | undefined {
    if (epoch !== this.#input.epoch) return 'erased';
    if (consent === 'off') return 'no-consent';
    return note.forgottenJobs?.includes(this.#work.job.id) ? 'forgotten' : undefined;
  }

  /** The part of the input that no other job has read yet. */
  #unread(note: SourceNote): JobInput | undefined {
    const input = this.#input;
    if (input.isApproved) return input;
    if (input.task === 'facts') return note.seen.includes(input.sha256) ? undefined : input;
    if (input.task === 'procedure') return note.seen.includes(procedureMark(input.range)) ? undefined : input;
    const [first, ...more] = unreadRanges(input.range, (at) => hashInRange(input.range, at), note.ranges);
    if (!first) return undefined;
    // If the middle of the range was read, it is read again: the same source does not count twice.
    return partOf(input, { from: first.from, to: more.at(-1)?.to ?? first.to });
  }

  /** Removes the job, and its remaining candidates if it takes several commits. */
  async #drop(reason: 'erased' | 'no-consent' | 'forgotten' | 'known', { split }: Gate): Promise<JobOutcome> {
    const { job, id, options, scope } = this.#work;
    const hold = { id: job.id, owner: this.#owner };
    try {
      await this.#pipeline.store.commit(id, split ? [splitNote(job.id, undefined)] : [], {
        ...options,
        job: hold,
        now: this.#pipeline.now(),
      });
    } catch (error) {
      // Otherwise another worker has the job, or it was removed, and no worker can carry it out.
      if (isAborted(error)) return reason === 'known' ? 'lost' : 'dropped';
      throw error;
    }
    if (reason === 'no-consent') this.#pipeline.report({ type: 'no-consent', scope, sourceId: job.sourceId });
    return reason === 'known' ? 'known' : 'dropped';
  }

  /** Makes one commit. Returns whether it was the last one. */
  async #step(gate: Gate, input: JobInput): Promise<boolean> {
    const { split } = gate;
    this.#organized = await this.#readOrganized();
    if (!split) {
      this.#learned ??= await learn(this.#pipeline, this.#work, input, this.#organized.summary);
      if (this.#learned.candidates.length > MOST_CANDIDATES) {
        await this.#beginSplit(gate, this.#learned);
        return false;
      }
    }
    const {
      candidates,
      summary,
      invalidated,
      facts: earlier,
    } = split ?? { ...this.#learned!, invalidated: 0, facts: [] };
    const now = candidates.slice(0, MOST_CANDIDATES);
    const later = candidates.slice(MOST_CANDIDATES);
    // The person who approved a fact has approved its replacements as well.
    const most = input.isApproved ? Infinity : this.#pipeline.limits.maxInvalidations;
    const result = await this.#consolidate(now, most - invalidated);
    const after: SplitJob = {
      candidates: later,
      facts: this.#pipeline.profile ? [...earlier, ...factsOf(result.working.changed)] : [],
      invalidated: invalidated + result.working.counts.invalidated,
      ...(summary !== undefined && { summary }),
    };
    await this.#commit(gate, input, result, after);
    return later.length === 0;
  }

  /** Keeps the candidates in a note if they need several commits, so that the model is asked only once. */
  async #beginSplit({ revision }: Gate, { candidates, quarantined, summary }: Learned): Promise<void> {
    const { store, now } = this.#pipeline;
    const { id, options, job } = this.#work;
    const value: SplitJob = { candidates, facts: [], invalidated: 0, ...(summary !== undefined && { summary }) };
    const operations = [splitNote(job.id, value)];
    if (quarantined.length > 0) operations.push(quarantineNote(job.id, quarantined));
    await store.commit(id, operations, { ...options, expectedRevision: revision, now: now() });
    this.#counts.quarantined += quarantined.length;
    this.#learned = { candidates: [], quarantined: [] };
  }

  #consolidate(candidates: readonly Candidate[], maxInvalidations: number): Promise<Consolidated> {
    const { nearest, store } = this.#pipeline;
    const { scope, id, options, ask, signal } = this.#work;
    return consolidate({
      candidates,
      nearest: ({ text, kind }) => nearest(scope, text, { k: NEAREST, kind, abortSignal: signal }),
      get: (ids) => store.get(id, ids, options),
      ask,
      guard: guardOf(this.#work, this.#input.task, this.#pipeline),
      maxInvalidations,
    });
  }

  async #commit(
    { revision, note, split }: Gate,
    input: JobInput,
    { working, quarantined: kept }: Consolidated,
    after: SplitJob,
  ): Promise<void> {
    const isLast = after.candidates.length === 0;
    const { store, now } = this.#pipeline;
    const { scope, id, options, job } = this.#work;
    const at = new Date(now()).toISOString();
    const quarantined = [
      ...(split ? [] : this.#learned!.quarantined),
      ...kept.map(({ candidate, reason }) => ({ candidate, reason, at, source: input.source })),
    ];
    const { changed, counts } = working;
    const operations: MemoryOperation[] = await this.#puts(changed);
    if (quarantined.length > 0) {
      operations.push(quarantineNote(split ? `${job.id}:${after.candidates.length}` : job.id, quarantined));
    }
    const heard = { ...note, seen: note.seen.filter((one) => !working.outdated.has(one)) };
    const next = isLast ? withInput(heard, input) : heard;
    operations.push({
      op: 'note',
      kind: NOTES.pipeline,
      key: sourceNoteKey(job.sourceId),
      value: sourceNoteValue(next),
    });
    if (split || !isLast) operations.push(splitNote(job.id, isLast ? undefined : after));
    if (isLast) operations.push(...(await this.#organize(after)));
    await store.commit(id, operations, {
      ...options,
      expectedRevision: revision,
      ...(isLast && { job: { id: job.id, owner: this.#owner } }),
      now: now(),
    });
    counts.quarantined += quarantined.length;
    const uses = this.#pipeline.usesOf(scope);
    for (const operation of operations) if (operation.op === 'put') uses.delete(operation.memory.id);
    for (const [name, count] of Object.entries(counts)) this.#counts[name as keyof MemoryChangeCounts] += count;
    this.#pipeline.changed(scope);
    if (isLast) {
      this.#pipeline.report({ type: 'committed', scope, sourceId: job.sourceId, jobId: job.id, changes: this.#counts });
    }
  }

  /** Writes the changed memories with their vectors, and the last use of others. */
  async #puts(changed: readonly MemoryDraft[]): Promise<MemoryOperation[]> {
    const { store } = this.#pipeline;
    const { scope, id, options } = this.#work;
    const vectors = await vectorsOf(
      this.#pipeline,
      changed.map(({ text }) => text),
      this.#work.signal,
    );
    const puts = changed.map((memory, i): MemoryOperation => ({
      op: 'put',
      memory,
      ...(vectors && { vector: vectors[i]! }),
    }));
    const uses = [...this.#pipeline.usesOf(scope)]
      .filter(([used]) => changed.every((one) => one.id !== used))
      .slice(0, MOST_USES);
    if (uses.length === 0) return puts;
    const used = await store.get(
      id,
      uses.map(([one]) => one),
      options,
    );
    for (const [one] of uses) if (used.every((memory) => memory.id !== one)) this.#pipeline.usesOf(scope).delete(one);
    return [...puts, ...used.map((memory): MemoryOperation => ({ op: 'put', memory: usedAt(memory, new Map(uses)) }))];
  }

  async #organize({ facts, summary }: SplitJob): Promise<MemoryOperation[]> {
    const { ask } = this.#work;
    const profile =
      ask && facts.length > 0
        ? await nextProfile(this.#pipeline, this.#work, ask, this.#organized.profile, facts)
        : undefined;
    return organizedNotes({ ...(profile !== undefined && { profile }), ...(summary !== undefined && { summary }) });
  }

  #readOrganized(): Promise<Organized> | Organized {
    const { summary, profile } = this.#pipeline;
    return summary || profile ? readOrganized(this.#pipeline, this.#work) : {};
  }
}

/**
 * The vectors of texts, in their order; `undefined` without an embedder.
 *
 * @throws The embedder's error; `DEADLINE_EXCEEDED` at the timeout; the reason of `signal` when that aborts.
 */
export async function vectorsOf(
  { ai, embedder, limits }: Pick<Pipeline, 'ai' | 'embedder' | 'limits'>,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<number[][] | undefined> {
  if (embedder === undefined || texts.length === 0) return undefined;
  const embed = () => ai.embedMany({ embedder: embedder as string, content: [...texts] });
  const answers = await withinTime(limits.timeoutMs, signal, embed, embedderDeadlineExceeded);
  return answers.map(({ embedding }) => embedding);
}

function embedderDeadlineExceeded(timeoutMs: number): Error {
  return new GenkitError({
    status: 'DEADLINE_EXCEEDED',
    message: `The embedder did not answer within ${timeoutMs} ms.`,
  });
}

/** The note of a source after its input was read. */
function withInput(note: SourceNote, input: JobInput): SourceNote {
  if (input.task === 'facts') return withSeen(note, input.sha256);
  if (input.task === 'procedure') return withSeen(note, procedureMark(input.range));
  return input.isApproved ? note : withRange(note, input.range);
}

/** The texts of the facts that hold. */
function factsOf(memories: readonly MemoryDraft[]): string[] {
  return memories
    .filter(({ validTo, kind }) => validTo === undefined && kind === 'declarative')
    .map(({ text }) => text);
}

/** The memory with the time of its last use. */
function usedAt(memory: Memory, uses: ReadonlyMap<string, string>): MemoryDraft {
  return { ...memory, lastUsedAt: uses.get(memory.id)! };
}

function splitNote(jobId: string, value: SplitJob | undefined): MemoryOperation {
  const json = value && (JSON.parse(JSON.stringify(value)) as never);
  return { op: 'note', kind: NOTES.pipeline, key: PIPELINE_KEYS.split(jobId), value: json };
}
