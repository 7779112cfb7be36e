import { randomUUID } from 'node:crypto';
import { jsonBytes } from '../../../json/size.ts';
import type { Json } from '../../../json/value.ts';
import type { MemoryOperation, WriteMemoryNote } from '../../../store/memory/contract.ts';
import { MAX_RECORD_BYTES } from '../../../store/records/record-scopes.ts';
import { invalidArgument } from '../../../errors.ts';
import { commitPlan } from './commit-plan.ts';
import { parseSourceNote, type SourceNote } from './ranges.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { sha256Of } from './job-input.ts';
import { NOTES, type Pipeline } from '../pipeline.ts';
import type { Candidate } from './candidate.ts';
import type { Quarantined } from './quarantine-note.ts';

type Consent = 'on' | 'off';

/** Keys of the notes of kind `pipeline`, besides {@link sourceNoteKey}. */
const KEYS = { consent: 'consent', epoch: 'epoch', split: (jobId: string) => `split:${jobId}` } as const;

/** The state that decides whether a job may learn and from which messages, at one revision of the scope. */
export interface LearningState {
  readonly revision: number;
  readonly consent: Consent;
  /** Changes with each erasure of the scope; jobs of an earlier epoch are dropped. `undefined`: the scope had no job since the erasure. */
  readonly epoch: string | undefined;
  readonly note: SourceNote;
  readonly split: SplitJob | undefined;
}

/** The remaining candidates of a job that takes several commits. */
export interface SplitJob {
  /** A key for the messages from which they were learned. */
  readonly part?: string | undefined;
  /** The number of commits that were made from these messages. */
  readonly commits: number;
  readonly candidates: readonly Candidate[];
  readonly quarantined: readonly Quarantined[];
  readonly invalidated: number;
}

/** Returns the key of the note about a source: a hash, because the source's id may be personal. */
export function sourceNoteKey(sourceId: string): string {
  return `source:${sha256Of(sourceId).slice(0, 32)}`;
}

/** Writes the note about a source. */
export function sourceNoteOperation(sourceId: string, note: SourceNote): MemoryOperation {
  return { op: 'note', kind: NOTES.pipeline, key: sourceNoteKey(sourceId), value: note as unknown as Json };
}

/**
 * Writes the remaining candidates of a job, or removes them. Also removes them if they are too large for a note: then a later attempt
 * learns again.
 */
export function splitOperation(jobId: string, split: SplitJob | undefined): WriteMemoryNote {
  const isKept = jsonBytes(split, MAX_RECORD_BYTES) <= MAX_RECORD_BYTES;
  const value = isKept ? (split as unknown as Json) : undefined;
  return { op: 'note', kind: NOTES.pipeline, key: KEYS.split(jobId), value };
}

/** Reads the state. Without `sourceId` it has an empty note, without `jobId` no remaining candidates. */
export async function readLearningState(
  { store, consent }: Pipeline,
  { id, options }: ScopeTarget,
  sourceId?: string,
  jobId?: string,
): Promise<LearningState> {
  const sourceKey = sourceId && sourceNoteKey(sourceId);
  const splitKey = jobId && KEYS.split(jobId);
  const keys = [KEYS.consent, KEYS.epoch, sourceKey, splitKey].filter((key) => key !== undefined);
  const { revision, notes } = await store.notes(id, NOTES.pipeline, { ...options, keys });
  const valueOf = (key: string | undefined) => notes.find((note) => note.key === key)?.value as unknown;
  const set = valueOf(KEYS.consent) as { consent: Consent } | undefined;
  return {
    revision,
    consent: set?.consent ?? consent,
    epoch: valueOf(KEYS.epoch) as string | undefined,
    note: parseSourceNote(valueOf(sourceKey)),
    split: valueOf(splitKey) as SplitJob | undefined,
  };
}

/**
 * Reads the state, and begins an epoch if the scope has none. The epoch is a note, which an erasure removes with all other notes. So jobs
 * that began before the erasure, in any process, have an old epoch.
 */
export function beginEpoch(
  pipeline: Pipeline,
  target: ScopeTarget,
  sourceId: string,
): Promise<Omit<LearningState, 'revision'>> {
  return commitPlan(pipeline, target, async () => {
    const state = await readLearningState(pipeline, target, sourceId);
    if (state.epoch !== undefined || state.consent === 'off') return { ...state, steps: [] };
    const epoch = randomUUID();
    const note: MemoryOperation = { op: 'note', kind: NOTES.pipeline, key: KEYS.epoch, value: epoch };
    return { ...state, epoch, steps: [[note]] };
  });
}

/** Returns the stored consent of a scope; `undefined` if none is stored. */
export async function readConsent({ store }: Pipeline, { id, options }: ScopeTarget): Promise<Consent | undefined> {
  const { notes } = await store.notes(id, NOTES.pipeline, { ...options, keys: [KEYS.consent] });
  return (notes[0]?.value as { consent: Consent } | undefined)?.consent;
}

/** @throws `INVALID_ARGUMENT` if `consent` is neither `on` nor `off`. */
export async function writeConsent(
  { store, now }: Pipeline,
  { id, options }: ScopeTarget,
  consent: Consent,
): Promise<void> {
  if (consent !== 'on' && consent !== 'off') throw invalidArgument("consent must be 'on' or 'off'.");
  const value = { consent, at: new Date(now()).toISOString() };
  const note: MemoryOperation = { op: 'note', kind: NOTES.pipeline, key: KEYS.consent, value };
  await store.commit(id, [note], { ...options, now: now() });
}
