import { randomUUID } from 'node:crypto';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import { isAborted } from '../../../errors.ts';
import { parseSourceNote, type SourceNote } from '../ingest/ranges.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { sha256Of } from '../jobs/job-input.ts';
import { NOTES, PIPELINE_KEYS, type Pipeline } from '../pipeline.ts';
import type { Candidate } from '../extract/candidate.ts';

/** What stands before anything is learned, as of one revision of the scope. */
export interface Gate {
  readonly revision: number;
  readonly consent: 'on' | 'off';
  /** Names the time between two erasures of the scope; what began in an earlier one is not learned. `undefined`: nothing has begun yet. */
  readonly epoch: string | undefined;
  readonly note: SourceNote;
  /** What is left of a job that is larger than a commit. */
  readonly split: SplitJob | undefined;
}

/** The candidates of a job that takes several commits. */
export interface SplitJob {
  readonly candidates: readonly Candidate[];
  readonly summary?: string;
  readonly invalidated: number;
}

/** The key of the note about a source. A source's id may be personal, so that it is not in the note. */
export function sourceNoteKey(sourceId: string): string {
  return PIPELINE_KEYS.source(sha256Of(sourceId).slice(0, 32));
}

/** Reads consent, how far the source was read, and what is left of the job. */
export async function readGate(
  { store, consent }: Pick<Pipeline, 'store' | 'consent'>,
  { id, options }: ScopeTarget,
  sourceId: string,
  jobId?: string,
): Promise<Gate> {
  const sourceKey = sourceNoteKey(sourceId);
  const keys = [
    PIPELINE_KEYS.consent,
    PIPELINE_KEYS.epoch,
    sourceKey,
    ...(jobId === undefined ? [] : [PIPELINE_KEYS.split(jobId)]),
  ];
  const { revision, notes } = await store.notes(id, NOTES.pipeline, { ...options, keys });
  const valueOf = (key: string) => notes.find((note) => note.key === key)?.value as unknown;
  const set = valueOf(PIPELINE_KEYS.consent) as { consent: 'on' | 'off' } | undefined;
  return {
    revision,
    consent: set?.consent ?? consent,
    epoch: valueOf(PIPELINE_KEYS.epoch) as string | undefined,
    note: parseSourceNote(valueOf(sourceKey)),
    split: jobId === undefined ? undefined : (valueOf(PIPELINE_KEYS.split(jobId)) as SplitJob | undefined),
  };
}

/**
 * The gate of a scope that has an epoch. It is kept as a note, which an erasure removes with all others: work that began before it, in any
 * process, is known by its epoch.
 */
export async function openGate(
  pipeline: Pick<Pipeline, 'store' | 'consent' | 'now'>,
  work: ScopeTarget,
  sourceId: string,
): Promise<Gate> {
  for (;;) {
    const gate = await readGate(pipeline, work, sourceId);
    if (gate.epoch !== undefined || gate.consent === 'off') return gate;
    const epoch = randomUUID();
    const note: MemoryOperation = { op: 'note', kind: NOTES.pipeline, key: PIPELINE_KEYS.epoch, value: epoch };
    const options = { ...work.options, expectedRevision: gate.revision, now: pipeline.now() };
    try {
      const { revision } = await pipeline.store.commit(work.id, [note], options);
      return { ...gate, revision, epoch };
    } catch (error) {
      if (!isAborted(error)) throw error;
    }
  }
}
