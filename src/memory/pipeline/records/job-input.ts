import { createHash } from 'node:crypto';
import type { MessageData } from 'genkit';
import { dataLoss, quote } from '../../../errors.ts';
import type { MemoryJob } from '../../../store/memory/contract.ts';
import type { ScopeTarget } from '../../scopes.ts';
import type { MemoryFact } from '../../types.ts';
import type { Candidate, JobSource } from './candidate.ts';
import {
  hashInRange,
  isUnread,
  procedureMark,
  unreadParts,
  withoutDeadJob,
  withRange,
  withSeen,
  type ReadRange,
  type SourceNote,
} from './ranges.ts';

/** The most uses of memories that a job carries, and that a commit writes. */
export const MOST_USES = 10;

interface AnyInput {
  readonly version: 1;
  /** The time of each memory's last use, by memory id, from the process that adds the job, because another process may run it. */
  readonly uses?: Readonly<Record<string, string>>;
  /** `LearningState.epoch` when the work began. */
  readonly epoch?: string;
  readonly source: JobSource;
  /** Whether a person has approved it. Then the guards do not check it, and a fact for an app needs no further approval. */
  readonly isApproved?: boolean;
}

/** Messages to learn from. */
export interface LearnInput extends AnyInput {
  readonly task: 'learn' | 'verbatim' | 'procedure';
  readonly range: ReadRange;
  /** The messages of the range, redacted. */
  readonly messages: readonly MessageData[];
  /** For each message, the hash of all messages up to it; for a procedure only the last hash. */
  readonly sha256s: readonly string[];
}

/** Facts to store. Approved facts are candidates. */
export interface FactsInput extends AnyInput {
  readonly task: 'facts';
  readonly facts: readonly (MemoryFact | Candidate)[];
  /** The hash of the facts. */
  readonly sha256: string;
}

export type JobInput = LearnInput | FactsInput;

/** Whether the messages of an input count as read when its job is done. */
export function coversRange(input: JobInput): input is LearnInput {
  return (input.task === 'learn' || input.task === 'verbatim') && !input.isApproved;
}

/** @throws `DATA_LOSS` for a job of another version. */
export function parseJobInput(job: MemoryJob): JobInput {
  const input = job.input as unknown as JobInput;
  if (input?.version === 1) return input;
  throw dataLoss(
    `The memory job ${quote(job.id)} was written by another version of this package. Use that version to run it.`,
  );
}

/** Returns the id of the job for an input. All processes make the same id for the same work. */
export function jobId({ key }: ScopeTarget, input: JobInput): string {
  const { task, source } = input;
  const work =
    input.task === 'facts'
      ? [input.sha256]
      : [input.range.from, input.range.to, hashInRange(input.range, input.range.to)];
  return sha256Of([key, input.epoch, task, source.id, ...work, input.isApproved ?? false]);
}

/** Returns the note of a source after the job for an input was done or discarded. `isLearned`: it was done. */
export function withInput(note: SourceNote, input: JobInput, jobId: string, isLearned: boolean): SourceNote {
  if (input.task === 'facts') return withSeen(note, input.sha256);
  if (input.task === 'procedure') return withSeen(note, procedureMark(input.range));
  return coversRange(input) ? withRange(withoutDeadJob(note, jobId), { ...input.range, isLearned }) : note;
}

/** Returns the parts of an input that do not belong to a dead job of its task, and the ids of the dead jobs. */
export function outsideDeadJobs(
  input: JobInput,
  { deadJobs = [] }: SourceNote,
  jobId?: string,
): { readonly parts: readonly JobInput[]; readonly deadIds: readonly string[] } {
  if (!coversRange(input)) return { parts: [input], deadIds: [] };
  const keeping = deadJobs.filter(
    (job) => job.task === input.task && job.jobId !== jobId && !isUnread(input.range, [job]),
  );
  const parts = unreadParts(input.range, keeping).map((part) => partOf(input, part));
  return { parts, deadIds: keeping.map((job) => job.jobId) };
}

/** Returns the SHA-256 of a value's JSON text, in hex. */
export function sha256Of(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/** Returns an input for a part of the messages. */
export function partOf(input: LearnInput, part: ReadRange): LearnInput {
  const { range, messages, sha256s } = input;
  const [from, to] = [part.from - range.from, part.to - range.from];
  return { ...input, range: part, messages: messages.slice(from, to), sha256s: sha256s.slice(from, to) };
}
