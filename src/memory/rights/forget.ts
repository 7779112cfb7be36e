import { randomUUID } from 'node:crypto';
import { z } from 'genkit';
import { unavailable } from '../../errors.ts';
import { markedLines } from '../../session/log/transcript.ts';
import type { Memory, MemoryDraft, MemoryJob, MemoryOperation, MemorySource } from '../../store/memory/contract.ts';
import { withConfidence, withSources } from '../pipeline/consolidate/confidence.ts';
import { isBlank, sameFactKey } from '../pipeline/consolidate/duplicates.ts';
import { procedureOf } from '../pipeline/consolidate/procedures.ts';
import { withoutEnd, keyedIds, strongestStatement } from '../pipeline/consolidate/working-memories.ts';
import { WITHOUT_DERIVED } from '../pipeline/commit/change-memory.ts';
import { commitPlan } from '../pipeline/commit/commit-plan.ts';
import { vectorsOf, type AskModel } from '../pipeline/extract/ask-model.ts';
import { readLearningState, sourceNoteOperation, splitOperation } from '../pipeline/guard/learning-state.ts';
import { quarantinedOf, quarantineNote } from '../pipeline/guard/quarantine-note.ts';
import { withoutDeadJob, withRange } from '../pipeline/ingest/ranges.ts';
import { parseJobInput, type JobInput, type LearnInput } from '../pipeline/jobs/job-input.ts';
import { NOTES, type Pipeline } from '../pipeline/pipeline.ts';
import { jobsOf, memoriesOf } from '../pipeline/contents.ts';
import type { ScopeTarget } from '../scopes.ts';

/** The most memories that one commit replaces: each takes two operations, and one for each memory that it has superseded. */
const MOST_AT_ONCE = 25;
const LOOK_AGAIN_MS = 50;

/** The counts of `forgetSource`. */
export interface ForgottenSource {
  /** Memories that had no other source. */
  removed: number;
  /** Memories with other sources; they were made again from the statements of these. */
  regenerated: number;
  /** Memories that hold again, because the memory that replaced them is removed. */
  reinstated: number;
  /** Removed jobs that would have read the source. */
  jobs: number;
  /** Removed texts of the source that waited for a decision. */
  quarantined: number;
}

/** A source to forget, or only its statements from some snapshots. */
interface Forgotten {
  readonly sourceId: string;
  readonly snapshotIds: readonly string[] | undefined;
}

/** By the id of a replaced memory, its new id; of a removed one, its `supersededBy`. */
type NewIds = Map<string, string | undefined>;

/** Functions of the manager for a {@link SourceRemoval}. */
interface RemovalTools {
  readonly ask: AskModel | undefined;
  readonly removeJob: (job: MemoryJob) => Promise<boolean>;
}

/** Removes a source's statements everywhere, and makes memories with other sources again. */
export class SourceRemoval {
  readonly #pipeline: Pipeline;
  readonly #work: ScopeTarget;
  readonly #forgotten: Forgotten;
  readonly #tools: RemovalTools;
  readonly #counts: ForgottenSource = { removed: 0, regenerated: 0, reinstated: 0, jobs: 0, quarantined: 0 };

  constructor(pipeline: Pipeline, work: ScopeTarget, forgotten: Forgotten, tools: RemovalTools) {
    this.#pipeline = pipeline;
    this.#work = work;
    this.#forgotten = forgotten;
    this.#tools = tools;
  }

  async run(): Promise<ForgottenSource> {
    await this.#forgetJobs();
    await this.#forgetNotes();
    while (await this.#forgetMemories());
    await this.#finish();
    this.#pipeline.changed(this.#work.scope);
    return this.#counts;
  }

  #isForgotten({ id, snapshotId }: Pick<MemorySource, 'id' | 'snapshotId'>): boolean {
    const { sourceId, snapshotIds } = this.#forgotten;
    return (
      id === sourceId && (snapshotIds === undefined || (snapshotId !== undefined && snapshotIds.includes(snapshotId)))
    );
  }

  /** Removes the jobs that read the source; from here on they can't commit. Their messages count as read, so they are not learned again. */
  async #forgetJobs(): Promise<void> {
    const jobs = await this.#jobs();
    if (jobs.length === 0) return;
    await this.#changeSourceNote(jobs);
    const deadline = this.#pipeline.now() + 2 * this.#pipeline.limits.leaseMs;
    for (const job of jobs) {
      while (!(await this.#tools.removeJob(job))) {
        if (this.#pipeline.now() > deadline)
          throw unavailable('A worker still reads the source; call forgetSource again.');
        await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
      }
      this.#counts.jobs++;
    }
  }

  async #jobs(): Promise<MemoryJob[]> {
    const found: MemoryJob[] = [];
    const { id, options } = this.#work;
    for await (const job of jobsOf(this.#pipeline, { ...options, scope: id })) {
      if (job.sourceId === this.#forgotten.sourceId && this.#isForgotten(parseJobInput(job).source)) found.push(job);
    }
    return found;
  }

  async #changeSourceNote(jobs: readonly MemoryJob[]): Promise<void> {
    await this.#commit(async () => {
      const { note, revision } = await readLearningState(this.#pipeline, this.#work, this.#forgotten.sourceId);
      const isRange = (input: JobInput): input is LearnInput => input.task === 'learn' || input.task === 'verbatim';
      const read = jobs.map(parseJobInput).filter(isRange);
      const marked = read.reduce((next, { range }) => withRange(next, range), note);
      const next = {
        ...jobs.reduce((one, { id }) => withoutDeadJob(one, id), marked),
        forgottenJobs: jobs.map(({ id }) => id),
      };
      return { revision, operations: [sourceNoteOperation(this.#forgotten.sourceId, next)] };
    });
  }

  /** Removes the source's quarantined texts. */
  async #forgetNotes(): Promise<void> {
    const { store } = this.#pipeline;
    const { id, options } = this.#work;
    await this.#commit(async () => {
      const { revision, notes } = await store.notes(id, NOTES.quarantine, options);
      const operations: MemoryOperation[] = [];
      this.#counts.quarantined = 0;
      for (const { key, value } of notes) {
        const items = quarantinedOf(value);
        const kept = items.filter(({ source }) => !this.#isForgotten(source));
        if (kept.length === items.length) continue;
        this.#counts.quarantined += items.length - kept.length;
        operations.push(quarantineNote(key, kept));
      }
      return { revision, operations };
    });
  }

  /** Replaces some memories of the source. Returns whether there may be more. */
  async #forgetMemories(): Promise<boolean> {
    const { store } = this.#pipeline;
    const { id, options } = this.#work;
    let isMore = false;
    await this.#commit(async () => {
      const revision = await store.revision(id, options);
      const all = await store.bySource(id, this.#forgotten.sourceId, options);
      const { snapshotIds } = this.#forgotten;
      const affected: Memory[] = [];
      for (const memory of all) {
        if (snapshotIds === undefined || (await this.#wasFromForgotten(memory))) affected.push(memory);
        if (affected.length === MOST_AT_ONCE) break;
      }
      isMore = affected.length > 0;
      return { revision, operations: await this.#replace(affected) };
    });
    return isMore;
  }

  async #wasFromForgotten(memory: Memory): Promise<boolean> {
    const { id, options } = this.#work;
    const was = await this.#pipeline.store.revisions(id, memory.id, options);
    return [memory, ...was].some(({ sources }) => sources.some((source) => this.#isForgotten(source)));
  }

  async #replace(memories: readonly Memory[]): Promise<MemoryOperation[]> {
    if (memories.length === 0) return [];
    const operations: MemoryOperation[] = memories.map(({ id }) => ({ op: 'remove', id }));
    const newIds: NewIds = new Map();
    const puts: MemoryDraft[] = [];
    for (const memory of memories) {
      const sources = memory.sources.filter((source) => !this.#isForgotten(source));
      if (sources.length === 0) {
        newIds.set(memory.id, memory.supersededBy);
        this.#counts.removed++;
        continue;
      }
      const id = otherId(memory);
      newIds.set(memory.id, id);
      puts.push({ ...(await this.#regenerated(memory, sources)), id });
      this.#counts.regenerated++;
    }
    puts.push(...(await this.#predecessors(newIds)));
    const all = puts.map((memory) => withNewSuccessor(memory, newIds));
    const texts = all.map(({ text }) => text);
    const vectors = await vectorsOf(this.#pipeline, texts);
    for (const [i, memory] of all.entries())
      operations.push({ op: 'put', memory, ...(vectors && { vector: vectors[i]! }) });
    return operations;
  }

  /** Memories whose `supersededBy` names a replaced memory. */
  async #predecessors(newIds: NewIds): Promise<MemoryDraft[]> {
    const found: MemoryDraft[] = [];
    for await (const memory of memoriesOf(this.#pipeline, this.#work)) {
      const { supersededBy } = memory;
      if (supersededBy === undefined || !newIds.has(supersededBy) || newIds.has(memory.id)) continue;
      found.push(memory);
      if (successorOf(memory, newIds) === undefined) this.#counts.reinstated++;
    }
    return found;
  }

  async #regenerated(memory: Memory, sources: readonly MemorySource[]): Promise<MemoryDraft> {
    // The source is only in earlier revisions.
    if (sources.length === memory.sources.length) return memory;
    const left = withSources(memory, sources);
    if (memory['key'] !== undefined) return withConfidence({ ...left, ...strongestStatement(sources) });
    const topics = [...new Set(sources.flatMap((source) => source.topics ?? []))];
    const procedure = memory.kind === 'procedural' ? procedureOf(sources) : undefined;
    if (procedure) return withConfidence({ ...left, ...procedure, topics });
    const text = await this.#mergedText(sources);
    const { data: _, schemaId, ...rest } = left;
    const data = sources.findLast((source) => source.data !== undefined)?.data;
    const shaped = data === undefined ? {} : { data, ...(schemaId !== undefined && { schemaId }) };
    const validFrom = sources.map(({ at }) => at).toSorted()[0]!;
    return withConfidence({ ...(rest as MemoryDraft), text, ...shaped, topics, validFrom });
  }

  /** The statements of the sources as one text. */
  async #mergedText(sources: readonly MemorySource[]): Promise<string> {
    const statements = [...new Map(sources.map(({ statement }) => [sameFactKey(statement), statement])).values()];
    const { ask } = this.#tools;
    if (statements.length === 1) return statements[0]!;
    if (!ask) return statements.join(' ');
    const { text } = await ask({
      system:
        'You get statements about one thing. Write one sentence in the third person that says what all of them say, and nothing else.',
      prompt: statements.map((statement, i) => `${i + 1}.\n${markedLines(statement)}`).join('\n'),
      schema: z.object({ text: z.string().min(1).max(2_000) }),
    });
    return isBlank(text) ? statements.join(' ') : text;
  }

  /**
   * Removes the scope's profile and summary, and the remaining candidates of forgotten jobs, and lets jobs of the source commit again. The note
   * of the source changes the scope's revision, so that no running job writes what it made of the removed summary.
   */
  async #finish(): Promise<void> {
    await this.#commit(async () => {
      const { note, revision } = await readLearningState(this.#pipeline, this.#work, this.#forgotten.sourceId);
      const { forgottenJobs = [], ...rest } = note;
      const splits = forgottenJobs.slice(0, 90).map((jobId) => splitOperation(jobId, undefined));
      return {
        revision,
        operations: [
          ...WITHOUT_DERIVED,
          ...splits,
          sourceNoteOperation(this.#forgotten.sourceId, { ...rest, seen: [] }),
        ],
      };
    });
  }

  async #commit(plan: () => Promise<{ revision: number; operations: MemoryOperation[] }>): Promise<void> {
    const before = { ...this.#counts };
    await commitPlan(this.#pipeline, this.#work, () => {
      Object.assign(this.#counts, before);
      return plan();
    });
  }
}

/** A new id for a memory that is made again: a commit can't remove and write the same memory. */
function otherId(memory: Memory): string {
  const key = memory['key'] as string | undefined;
  if (key === undefined) return randomUUID();
  return keyedIds(key).find((id) => id !== memory.id)!;
}

/**
 * The memory with the new id in `supersededBy`. If the memory that superseded it is removed, the one that superseded that takes its
 * place; without one the memory holds again.
 */
function withNewSuccessor(memory: MemoryDraft, newIds: NewIds): MemoryDraft {
  const { supersededBy } = memory;
  if (supersededBy === undefined || !newIds.has(supersededBy)) return memory;
  const id = successorOf(memory, newIds);
  if (id !== undefined) return { ...memory, supersededBy: id };
  return withConfidence(withoutEnd(memory));
}

function successorOf({ supersededBy }: MemoryDraft, newIds: NewIds): string | undefined {
  let id = supersededBy;
  while (id !== undefined && newIds.has(id)) id = newIds.get(id);
  return id;
}
