import { isAborted } from '../../../errors.ts';
import { cutByBytes, jsonBytes } from '../../../json/size.ts';
import type {
  MemoryDraft,
  MemoryJob,
  MemoryJobHold,
  MemoryStoreOptions,
  PutMemory,
} from '../../../store/memory/contract.ts';
import { memoryScope, targetOf } from '../../scopes.ts';
import type { MemoryChangeCounts } from '../../types.ts';
import { consolidate, type Consolidated } from '../consolidate/consolidate.ts';
import { modelAsker, vectorsOf } from '../ask-model.ts';
import type { Candidate } from '../records/candidate.ts';
import { commitPlan, type CommitPlan } from '../records/commit-plan.ts';
import { learn, type LearnContext, type Learned } from '../extract/learn.ts';
import {
  readLearningState,
  sourceNoteOperation,
  splitOperation,
  type LearningState,
  type SplitJob,
} from '../records/learning-state.ts';
import { guardOf } from '../guard/judge-text.ts';
import { quarantineNote } from '../records/quarantine-note.ts';
import { isUnread, procedureMark, unreadParts, type SourceNote } from '../records/ranges.ts';
import {
  coversRange,
  MOST_USES,
  outsideDeadJobs,
  parseJobInput,
  partOf,
  withInput,
  type JobInput,
} from '../records/job-input.ts';
import type { Pipeline } from '../pipeline.ts';
import { derivedNotes, readDerived } from './derived-notes.ts';

/** The most candidates of one commit. With their vectors they stay within the limits of a store. */
const MOST_CANDIDATES = 30;
/**
 * The most changes that the candidates of a commit make, and the most other texts that a commit quarantines. A store takes 100 operations.
 */
const MOST_CHANGES = 60;
const MOST_TEXTS = 30;
/** The most bytes of a commit's memories, and of those texts. A store takes 2 MiB in total. */
const MOST_PUT_BYTES = 768 * 1024;
const MOST_TEXT_BYTES = 256 * 1024;
/**
 * A use is written only if the memory's last write is at least this much older, because each write adds a revision with all sources.
 * `updatedAt` is at least as late as `lastUsedAt`.
 */
const USE_INTERVAL_MS = 86_400_000;

/** How a run ended. `dropped`: nothing may be stored. */
export type JobOutcome = 'done' | 'dropped';

/** Why a job is removed without a further commit of memories. */
type DropReason = 'erased' | 'no-consent' | 'forgotten' | 'known';

/** The candidates of a commit, compared with the known memories. */
interface Compared extends Consolidated {
  readonly puts: readonly PutMemory[];
  /** The candidates of later commits. */
  readonly later: readonly Candidate[];
}

/** The part of a result that is not committed yet. A rest of an earlier commit has neither ignored facts nor a summary. */
type Pending = SplitJob & Pick<Learned, 'ignored' | 'summary'>;

interface JobPlan extends CommitPlan {
  /** Called after the commit. Returns how the run ended; `undefined`: the job has more commits. */
  readonly finish: () => JobOutcome | undefined | Promise<JobOutcome>;
}

/** Runs a job that a worker holds, from the guard to the commit that removes the job. */
export class JobRun {
  readonly #pipeline: Pipeline;
  readonly #context: LearnContext & { readonly job: MemoryJob };
  readonly #hold: MemoryJobHold;
  readonly #input: JobInput;
  /** The last learned result. `from` names the summary and the messages from which it was learned. */
  #last: { readonly from: string; readonly learned: Learned } | undefined;
  /** The remaining candidates after this run's last commit. The note with them is missing if they are too large for it. */
  #rest: SplitJob | undefined;
  readonly #counts: MemoryChangeCounts = { created: 0, updated: 0, invalidated: 0, ignored: 0, quarantined: 0 };

  constructor(
    pipeline: Pipeline,
    job: MemoryJob,
    { owner, signal, options }: { owner: string; signal: AbortSignal; options: MemoryStoreOptions },
  ) {
    const target = targetOf(memoryScope(job.scope, options.context));
    this.#pipeline = pipeline;
    this.#hold = { id: job.id, owner };
    this.#input = parseJobInput(job);
    const guard = guardOf({ scope: target.scope, signal }, this.#input.task, pipeline);
    this.#context = { ...target, job, ask: modelAsker(pipeline, signal), signal, guard };
  }

  async run(): Promise<JobOutcome> {
    const uses = this.#pipeline.usesOf(this.#context.scope);
    for (const [used, at] of Object.entries(this.#input.uses ?? {}))
      if (at > (uses.get(used) ?? '')) uses.set(used, at);
    for (;;) {
      const { finish } = await commitPlan(this.#pipeline, this.#context, () => this.#plan());
      const outcome = await finish();
      if (outcome !== undefined) return outcome;
    }
  }

  async #plan(): Promise<JobPlan> {
    const { job, signal } = this.#context;
    signal.throwIfAborted();
    const state = await readLearningState(this.#pipeline, this.#context, job.sourceId, job.id);
    const [input, ...later] = this.#unread(state.note);
    const reason = this.#reasonToDrop(state) ?? (input ? undefined : this.#reasonToSkip(state.note));
    if (reason === undefined) return this.#commitOf(state, input!, later.length > 0);
    return { revision: state.revision, steps: [], finish: () => this.#drop(reason, state) };
  }

  #reasonToDrop({ consent, epoch }: LearningState): DropReason | undefined {
    if (epoch !== this.#input.epoch) return 'erased';
    return consent === 'off' ? 'no-consent' : undefined;
  }

  /**
   * Returns why the job has nothing to read. If its messages count as read but no job has learned from any of them, the source was
   * forgotten meanwhile.
   */
  #reasonToSkip({ ranges }: SourceNote): DropReason {
    const input = this.#input;
    if (!coversRange(input) || unreadParts(input.range, ranges).length > 0) return 'known';
    const learned = ranges.filter(({ isLearned }) => isLearned);
    return isUnread(input.range, learned) ? 'forgotten' : 'known';
  }

  /** Returns the parts of the input that no other job has read and that do not belong to a dead job. */
  #unread(note: SourceNote): readonly JobInput[] {
    const input = this.#input;
    if (input.isApproved) return [input];
    if (input.task === 'facts') return note.seen.includes(input.sha256) ? [] : [input];
    if (input.task === 'procedure') return note.seen.includes(procedureMark(input.range)) ? [] : [input];
    const unread = unreadParts(input.range, note.ranges);
    return unread.flatMap((part) => outsideDeadJobs(partOf(input, part), note, this.#context.job.id).parts);
  }

  /** Removes the job, and its remaining candidates if it takes several commits. */
  async #drop(reason: DropReason, { split }: LearningState): Promise<JobOutcome> {
    const { store, now, report } = this.#pipeline;
    const { job, id, options, scope } = this.#context;
    const outcome = reason === 'known' ? 'done' : 'dropped';
    try {
      const operations = split ? [splitOperation(job.id, undefined)] : [];
      await store.commit(id, operations, { ...options, job: this.#hold, now: now() });
    } catch (error) {
      // Another worker holds the job, or it was removed.
      if (isAborted(error)) return outcome;
      throw error;
    }
    if (reason === 'no-consent') report({ type: 'no-consent', scope, sourceId: job.sourceId });
    return outcome;
  }

  /** Returns the candidates that an earlier commit left of a part, or learns from the part. */
  async #pending(state: LearningState, input: JobInput, summary: string | undefined): Promise<Pending> {
    const part = partKey(input);
    const rest = [this.#rest, state.split].find((one) => one !== undefined && one.part === part);
    return rest ?? { part, commits: 0, invalidated: 0, ...(await this.#learn(input, summary)) };
  }

  /**
   * Learns from an input. After a refused commit it reuses the result, unless the summary or the unread messages have changed: a removed
   * summary or message must not come back through an earlier result.
   */
  async #learn(input: JobInput, summary: string | undefined): Promise<Learned> {
    const from = JSON.stringify([summary, partKey(input)]);
    if (this.#last?.from !== from)
      this.#last = { from, learned: await learn(this.#pipeline, this.#context, input, summary) };
    return this.#last.learned;
  }

  /** Compares as many of the candidates as fit into a commit. */
  async #compare(candidates: readonly Candidate[], maxInvalidations: number): Promise<Compared> {
    for (let most = Math.min(MOST_CANDIDATES, candidates.length); ;) {
      const consolidated = await consolidate(
        this.#pipeline,
        this.#context,
        candidates.slice(0, most),
        maxInvalidations,
      );
      const puts = await this.#puts(consolidated.working.changed);
      // A memory contains all its sources, which may be large, and a candidate may replace several memories.
      const count = puts.length + consolidated.quarantined.length;
      const size = Math.max(jsonBytes(puts) / MOST_PUT_BYTES, count / MOST_CHANGES);
      if (most <= 1 || size <= 1) return { ...consolidated, puts, later: candidates.slice(most) };
      most = Math.max(1, Math.floor(most / size));
    }
  }

  /**
   * Plans the next commit of a part: as many candidates as fit, with the profile. Stores the remaining candidates in a note, so that the
   * model extracts the facts only once. The last commit of a part also marks its messages as read, and the last commit of the job removes
   * the job.
   *
   * @param hasMore Whether the job has another part.
   */
  async #commitOf(state: LearningState, input: JobInput, hasMore: boolean): Promise<JobPlan> {
    const { summary, profile, limits, now, report, saveIndex, usesOf } = this.#pipeline;
    const { scope, job, guard } = this.#context;
    const derived = summary || profile ? await readDerived(this.#pipeline, this.#context) : {};
    const pending = await this.#pending(state, input, derived.summary);
    // An approved fact may replace any number of memories.
    const mostInvalidations = input.isApproved ? Infinity : limits.maxInvalidations - pending.invalidated;
    const { working, quarantined, puts, later } = await this.#compare(pending.candidates, mostInvalidations);
    const [waiting = [], ...laterTexts] = cutByBytes(pending.quarantined, MOST_TEXT_BYTES, MOST_TEXTS);
    const rest: SplitJob = {
      part: pending.part,
      commits: pending.commits + 1,
      candidates: later,
      quarantined: laterTexts.flat(),
      invalidated: pending.invalidated + working.counts.invalidated,
    };
    const isPartDone = later.length === 0 && laterTexts.length === 0;
    const isLast = isPartDone && !hasMore;
    const at = new Date(now()).toISOString();
    const texts = [...waiting, ...quarantined.map((one) => ({ ...one, at, source: input.source }))];
    const note = { ...state.note, seen: state.note.seen.filter((sha256) => !working.outdated.has(sha256)) };
    const left = splitOperation(job.id, isPartDone ? undefined : rest);
    // If the rest is too large for its note, a later attempt learns again. With the new summary it would take the lost facts as known.
    const isKept = isPartDone || left.value !== undefined;
    const news = { facts: textsOf(working.changed), summary: isKept ? pending.summary : undefined };
    const operations = [
      ...puts,
      ...texts.map((text, i) => quarantineNote(textId(job.id, rest, i), text)),
      sourceNoteOperation(job.sourceId, isPartDone ? withInput(note, input, job.id, true) : note),
      ...(isPartDone && !state.split ? [] : [left]),
      ...(await derivedNotes(this.#pipeline, this.#context, input.isApproved ? undefined : guard, derived, news)),
    ];
    const finish = () => {
      this.#rest = isPartDone ? undefined : rest;
      for (const { memory } of puts) usesOf(scope).delete(memory.id);
      const ignored = working.counts.ignored + (pending.ignored ?? 0);
      const counts = { ...working.counts, ignored, quarantined: texts.length };
      for (const [name, count] of Object.entries(counts)) this.#counts[name as keyof MemoryChangeCounts] += count;
      saveIndex(scope);
      if (!isLast) return undefined;
      report({ type: 'committed', scope, sourceId: job.sourceId, jobId: job.id, changes: this.#counts });
      return 'done';
    };
    return { revision: state.revision, job: { ...this.#hold, keep: !isLast }, steps: [operations], finish };
  }

  /** Writes the changed memories with their vectors, and the last use of others. */
  async #puts(changed: readonly MemoryDraft[]): Promise<PutMemory[]> {
    const { scope, id, options, signal } = this.#context;
    const texts = changed.map(({ text }) => text);
    const vectors = await vectorsOf(this.#pipeline, texts, signal);
    const puts = changed.map((memory, i): PutMemory => ({ op: 'put', memory, vector: vectors?.[i] }));
    const uses = this.#pipeline.usesOf(scope);
    const others = [...uses.keys()].filter((used) => changed.every((one) => one.id !== used)).slice(0, MOST_USES);
    if (others.length === 0) return puts;
    const memories = await this.#pipeline.store.get(id, others, options);
    for (const used of others) {
      const memory = memories.find((one) => one.id === used);
      const lastUsedAt = uses.get(used)!;
      if (memory && Date.parse(lastUsedAt) - Date.parse(memory.updatedAt) >= USE_INTERVAL_MS)
        puts.push({ op: 'put', memory: { ...memory, lastUsedAt } });
      else uses.delete(used);
    }
    return puts;
  }
}

/** Returns a key for the messages of an input. `undefined`: it has no messages, or a person has approved it. */
function partKey(input: JobInput): string | undefined {
  return 'range' in input && !input.isApproved ? `${input.range.from}-${input.range.to}` : undefined;
}

/** Returns the id of a text that a commit quarantines. The ids of a part's texts sort in the order in which the texts were found. */
function textId(jobId: string, { part, commits }: SplitJob, index: number): string {
  return [jobId, part ?? '', ...[commits, index].map((number) => String(number).padStart(6, '0'))].join(':');
}

/** Returns the texts of the valid facts that do not expire. */
function textsOf(memories: readonly MemoryDraft[]): string[] {
  return memories
    .filter(
      ({ validTo, expiresAt, kind }) => validTo === undefined && expiresAt === undefined && kind === 'declarative',
    )
    .map(({ text }) => text);
}
