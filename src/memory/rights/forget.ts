import { z } from 'genkit';
import { logWarning } from '../../errors.ts';
import { jsonEqual } from '../../json/value.ts';
import { markedLines } from '../../session/log/transcript.ts';
import type {
  Memory,
  MemoryDraft,
  MemoryJob,
  MemoryOperation,
  MemorySource,
  PutMemory,
} from '../../store/memory/contract.ts';
import {
  countOf,
  newestSourceTime,
  strongestOf,
  trustOf,
  withConfidence,
  withSources,
} from '../pipeline/consolidate/confidence.ts';
import { isBlank, sameFactKey } from '../same-fact.ts';
import { procedureOf } from '../pipeline/extract/procedures.ts';
import { withoutEnd, strongestStatement } from '../pipeline/consolidate/working-memories.ts';
import { REMOVE_DERIVED } from '../pipeline/commit/derived-notes.ts';
import { commitPlan } from '../pipeline/records/commit-plan.ts';
import { MalformedAnswerError, modelAsker, vectorsOf, type AskModel } from '../pipeline/ask-model.ts';
import { readLearningState, sourceNoteOperation, splitOperation } from '../pipeline/records/learning-state.ts';
import { quarantinedOf } from '../pipeline/records/quarantine-note.ts';
import { removeTexts } from './review.ts';
import { unreadParts, withoutDeadJob, withRange, type SourceNote } from '../pipeline/records/ranges.ts';
import { coversRange, parseJobInput, type JobInput } from '../pipeline/records/job-input.ts';
import { NOTES, type Pipeline } from '../pipeline/pipeline.ts';
import { jobsOf, memoriesOf } from '../pipeline/records/list-all.ts';
import type { MemoryWorker } from '../pipeline/jobs/worker.ts';
import type { ScopeTarget } from '../scopes.ts';

/** The most texts in one call of the embedder. */
const MOST_TEXTS = 30;

/** The counts of `forgetSource`. */
export interface ForgottenSource {
  /** Removed memories: they had no other source. */
  removed: number;
  /** Memories with other sources, which were made again from the statements of those. */
  regenerated: number;
  /** Memories that are valid again, because the memory that replaced them was removed. */
  reinstated: number;
  /** Removed jobs that would have read the source. */
  jobs: number;
  /** Removed texts of the source that waited for a decision. */
  quarantined: number;
}

/** A source to forget, or only its statements from some snapshots. */
interface Forgotten {
  readonly sourceId: string;
  readonly snapshotIds?: readonly string[] | undefined;
}

/** `supersededBy` of each removed memory, by the memory's id. */
type Removed = ReadonlyMap<string, string | undefined>;

/** Returns the ids of the sources that have jobs or quarantined texts. */
export async function waitingSources(pipeline: Pipeline, { id, options }: ScopeTarget): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const { sourceId } of jobsOf(pipeline, { ...options, scope: id })) found.add(sourceId);
  const { notes } = await pipeline.store.notes(id, NOTES.quarantine, options);
  for (const { value } of notes) found.add(quarantinedOf(value).source.id);
  return found;
}

/** Removes a source's statements everywhere, and makes memories with other sources again. */
export class SourceRemoval {
  readonly #pipeline: Pipeline;
  readonly #target: ScopeTarget;
  readonly #forgotten: Forgotten;
  readonly #worker: MemoryWorker;
  /** `undefined`: there is no model, or it does not answer. */
  #ask: AskModel | undefined;
  readonly #jobIds: string[] = [];
  readonly #counts: ForgottenSource = { removed: 0, regenerated: 0, reinstated: 0, jobs: 0, quarantined: 0 };
  /** Caches the memories that were made again, by their input, so that a repeated plan does not ask the model again. */
  readonly #made = new Map<string, PutMemory>();

  constructor(pipeline: Pipeline, target: ScopeTarget, forgotten: Forgotten, worker: MemoryWorker) {
    this.#pipeline = pipeline;
    this.#target = target;
    this.#forgotten = forgotten;
    this.#worker = worker;
    this.#ask = modelAsker(pipeline);
  }

  async run(): Promise<ForgottenSource> {
    await this.#forgetJobs();
    await this.#forgetTexts();
    await this.#forgetMemories();
    await this.#finish(REMOVE_DERIVED);
    this.#pipeline.saveIndex(this.#target.scope);
    return this.#counts;
  }

  /** Removes only the source's jobs and quarantined texts. */
  async runWaiting(): Promise<void> {
    await this.#forgetJobs();
    await this.#forgetTexts();
    await this.#finish();
  }

  #isForgotten({ id, snapshotId }: Pick<MemorySource, 'id' | 'snapshotId'>): boolean {
    const { sourceId, snapshotIds } = this.#forgotten;
    return (
      id === sourceId && (snapshotIds === undefined || (snapshotId !== undefined && snapshotIds.includes(snapshotId)))
    );
  }

  /**
   * Removes the jobs that read the source; their commits fail from here on. First marks their messages as read, so that no later job learns
   * from them.
   */
  async #forgetJobs(): Promise<void> {
    const { id, options } = this.#target;
    const jobs: MemoryJob[] = [];
    const others: JobInput[] = [];
    for await (const job of jobsOf(this.#pipeline, { ...options, scope: id })) {
      if (job.sourceId !== this.#forgotten.sourceId) continue;
      const input = parseJobInput(job);
      if (this.#isForgotten(input.source)) jobs.push(job);
      else others.push(input);
    }
    if (jobs.length === 0) return;
    this.#jobIds.push(...jobs.map((job) => job.id));
    // Jobs of later snapshots also contain the messages of earlier snapshots.
    const staying = others.filter(coversRange).map(({ range }) => range);
    const inputs = jobs.map(parseJobInput).filter(coversRange);
    const read = inputs.flatMap(({ range }) => unreadParts(range, staying));
    await this.#changeSourceNote((note) => read.reduce(withRange, note));
    // Removes the last job first, so that no worker begins another job in between.
    for (const job of jobs.toReversed()) {
      await this.#worker.remove(job, options);
      this.#counts.jobs++;
    }
    // Changes the note again, because a worker may have stored candidates before its job was removed. A later call would not know the job.
    await this.#changeSourceNote((note) => note);
  }

  async #forgetTexts(): Promise<void> {
    this.#counts.quarantined = await removeTexts(this.#pipeline, this.#target, ({ source }) =>
      this.#isForgotten(source),
    );
  }

  async #forgetMemories(): Promise<void> {
    const { id, options } = this.#target;
    const plan = async () => {
      const revision = await this.#pipeline.store.revision(id, options);
      return { revision, steps: await this.#replace(await this.#affected()) };
    };
    await commitPlan(this.#pipeline, this.#target, plan, (operations) => this.#count(operations));
  }

  /** The memories with a forgotten source, now or in an earlier revision. */
  async #affected(): Promise<Memory[]> {
    const { id, options } = this.#target;
    const { sourceId, snapshotIds } = this.#forgotten;
    const all = await this.#pipeline.store.bySource(id, sourceId, options);
    if (snapshotIds === undefined) return all;
    const affected: Memory[] = [];
    for (const memory of all) {
      const versions = await this.#pipeline.store.revisions(id, memory.id, options);
      if (versions.some(({ sources }) => sources.some((source) => this.#isForgotten(source)))) affected.push(memory);
    }
    return affected;
  }

  /** Removes memories that have no other source, and makes the others again, without their revisions. */
  async #replace(affected: readonly Memory[]): Promise<MemoryOperation[][]> {
    const isLeft = ({ sources }: Memory) => sources.some((source) => !this.#isForgotten(source));
    const removed: Removed = new Map(
      affected.filter((memory) => !isLeft(memory)).map(({ id, supersededBy }) => [id, supersededBy]),
    );
    const made = await this.#regenerate(affected.filter(isLeft));
    const others: MemoryDraft[] = made.map(({ memory }) => memory);
    if (removed.size > 0) {
      const isAffected = new Set(affected.map(({ id }) => id));
      for await (const memory of memoriesOf(this.#pipeline, this.#target))
        if (!isAffected.has(memory.id)) others.push(memory);
    }
    const next = withNewSuccessors(others, removed);
    const again = new Set(made.map(({ memory }) => memory.id));
    const puts: PutMemory[] = made.map((put) => ({ ...put, memory: next.get(put.memory.id) ?? put.memory }));
    for (const [id, memory] of next) if (!again.has(id)) puts.push({ op: 'put', memory });
    const isBack = ({ memory: { id, validTo } }: PutMemory) => validTo === undefined && next.has(id);
    const stepOf = (put: PutMemory): MemoryOperation[] =>
      again.has(put.memory.id) ? [{ op: 'remove', id: put.memory.id }, put] : [put];
    // If this is interrupted, the next call finds the remaining work through the memories to remove, so these are removed last. A memory
    // that is valid again is written after the others of its group.
    return [
      ...puts.filter((put) => !isBack(put)).map(stepOf),
      ...puts.filter(isBack).map(stepOf),
      ...Array.from(removed.keys(), (id): MemoryOperation[] => [{ op: 'remove', id }]),
    ];
  }

  #count(operations: readonly MemoryOperation[]): void {
    const gone = new Set(operations.flatMap((one) => (one.op === 'remove' ? one.id : [])));
    for (const one of operations) {
      if (one.op !== 'put') continue;
      if (gone.delete(one.memory.id)) this.#counts.regenerated++;
      else if (one.memory.validTo === undefined) this.#counts.reinstated++;
    }
    this.#counts.removed += gone.size;
  }

  /** Makes memories again from their other sources. */
  async #regenerate(memories: readonly Memory[]): Promise<PutMemory[]> {
    const keyOf = (memory: Memory) => JSON.stringify(memory);
    const missing = memories.filter((memory) => !this.#made.has(keyOf(memory)));
    for (let i = 0; i < missing.length; i += MOST_TEXTS) {
      const some = missing.slice(i, i + MOST_TEXTS);
      const drafts: MemoryDraft[] = [];
      for (const memory of some) drafts.push(await this.#regenerated(memory));
      const texts = drafts.map(({ text }) => text);
      const vectors = await vectorsOf(this.#pipeline, texts);
      for (const [n, memory] of drafts.entries())
        this.#made.set(keyOf(some[n]!), { op: 'put', memory, vector: vectors?.[n] });
    }
    return memories.map((memory) => this.#made.get(keyOf(memory))!);
  }

  async #regenerated(memory: Memory): Promise<MemoryDraft> {
    const sources = memory.sources.filter((source) => !this.#isForgotten(source));
    const { toolTtlMs } = this.#pipeline;
    // A fact that only tools state expires, even if it did not expire while a person stated it too.
    const isOfTools = memory.expiresAt === undefined && sources.every(({ type }) => type === 'tool');
    const end = Date.parse(newestSourceTime({ sources })) + toolTtlMs;
    const expiry = isOfTools ? { expiresAt: new Date(end).toISOString() } : {};
    return { ...(await this.#remade(memory, sources)), ...expiry };
  }

  async #remade(memory: Memory, sources: readonly MemorySource[]): Promise<MemoryDraft> {
    // The forgotten source is only in earlier revisions.
    if (sources.length === memory.sources.length) return memory;
    const left = withSources(memory, sources);
    if (memory['key'] !== undefined) return withConfidence({ ...left, ...strongestStatement(sources) });
    const topics = [...new Set(sources.flatMap((source) => source.topics ?? []))];
    const procedure = memory.kind === 'procedural' ? procedureOf(sources) : undefined;
    if (procedure) return withConfidence({ ...left, ...procedure, topics });
    const text = await this.#mergedText(sources);
    const { data: _, schemaId, ...rest } = left;
    const stating = sources.filter((source) => source.data !== undefined);
    const data = stating.length > 0 ? strongestOf(stating).best.data : undefined;
    const shaped = data === undefined ? {} : { data, ...(schemaId !== undefined && { schemaId }) };
    // If two sources had different data, one of them was counted as a contradiction.
    const isOther = (one: MemorySource) => one.data !== undefined && !jsonEqual(one.data, data);
    const gone = memory.sources.filter((one) => this.#isForgotten(one) && isOther(one)).length;
    const contradictions = Math.max(0, countOf(memory, 'contradictions') - gone);
    const validFrom = sources.map(({ at }) => at).toSorted()[0]!;
    const members = { text, ...shaped, topics, validFrom, ...(gone > 0 && { contradictions }) };
    return withConfidence({ ...(rest as MemoryDraft), ...members });
  }

  /** Merges the statements of the sources into one text. */
  async #mergedText(sources: readonly MemorySource[]): Promise<string> {
    const statements = [...new Map(sources.map(({ statement }) => [sameFactKey(statement), statement])).values()];
    if (statements.length === 1) return statements[0]!;
    if (!this.#ask) return statements.join(' ');
    try {
      const { text } = await this.#ask({
        system:
          'You get statements about one thing. Write one sentence in the third person that says what all of them say, and nothing else.',
        prompt: statements.map((statement, i) => `${i + 1}.\n${markedLines(statement)}`).join('\n'),
        schema: z.object({ text: z.string().min(1).max(2_000) }),
      });
      return isBlank(text) ? statements.join(' ') : await this.#pipeline.redact(text);
    } catch (error) {
      const isDown = !(error instanceof MalformedAnswerError);
      logWarning(
        `The model could not merge the statements of ${isDown ? 'memories' : 'a memory'}, so the statements are listed one after the other.`,
        error,
      );
      // Do not ask the model again: each further memory would also wait for it.
      if (isDown) this.#ask = undefined;
      return statements.join(' ');
    }
  }

  /** Changes the note of the source, and removes the jobs' remaining candidates and the note's entries of dead jobs. */
  async #changeSourceNote(
    change: (note: SourceNote) => SourceNote,
    more: readonly MemoryOperation[] = [],
  ): Promise<void> {
    const { sourceId } = this.#forgotten;
    await commitPlan(this.#pipeline, this.#target, async () => {
      const { note, revision } = await readLearningState(this.#pipeline, this.#target, sourceId);
      const splits = this.#jobIds.map((id) => [splitOperation(id, undefined)]);
      const next = change(this.#jobIds.reduce(withoutDeadJob, note));
      return { revision, steps: [...splits, [...more, sourceNoteOperation(sourceId, next)]] };
    });
  }

  /**
   * Allows the source's facts to be given again. This changes the scope's revision, so running jobs can't commit results from a removed
   * summary.
   */
  async #finish(more: readonly MemoryOperation[] = []): Promise<void> {
    await this.#changeSourceNote((note) => ({ ...note, seen: [] }), more);
  }
}

/**
 * Returns the memories that change when others are removed, by id. Of the memories that a removed memory superseded,
 * - all are superseded by the memory that superseded the removed one, if there is one;
 * - else the strongest is valid again, together with those that the removed memory superseded at the same time;
 * - the others are superseded by the strongest, which they may contradict.
 */
function withNewSuccessors(memories: Iterable<MemoryDraft>, removed: Removed): Map<string, MemoryDraft> {
  const next = new Map<string, MemoryDraft>();
  /** Groups by the id of the removed memory. */
  const groups = new Map<string, MemoryDraft[]>();
  for (const memory of memories) {
    let id = memory.supersededBy;
    if (id === undefined || !removed.has(id)) continue;
    let last = id;
    while (id !== undefined && removed.has(id)) [last, id] = [id, removed.get(id)];
    if (id !== undefined) next.set(memory.id, { ...memory, supersededBy: id });
    else groups.set(last, [...(groups.get(last) ?? []), memory]);
  }
  for (const group of groups.values()) {
    const best = group.reduce((one, other) => (isStronger(other, one) ? other : one));
    // Both ended at the same time, and either both were valid before, or neither was.
    const isTogether = ({ validFrom, validTo }: MemoryDraft) =>
      validTo === best.validTo && validTo! > validFrom === best.validTo! > best.validFrom;
    for (const memory of group) {
      const changed = isTogether(memory) ? withConfidence(withoutEnd(memory)) : { ...memory, supersededBy: best.id };
      next.set(memory.id, changed);
    }
  }
  return next;
}

/** Compares by trust, then by the time of the last source. */
function isStronger(a: MemoryDraft, b: MemoryDraft): boolean {
  const [trustA, trustB] = [trustOf(a), trustOf(b)];
  return trustA === trustB ? newestSourceTime(a) > newestSourceTime(b) : trustA > trustB;
}
