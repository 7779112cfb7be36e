import { randomUUID } from 'node:crypto';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import { isAborted } from '../../../errors.ts';
import { parseSourceNote, type SourceNote } from '../ingest/ranges.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { sha256Of } from '../jobs/job-input.ts';
import { NOTES, PIPELINE_KEYS, type Pipeline } from '../pipeline.ts';
import type { Candidate } from '../extract/candidate.ts';

/** The state that decides whether a job may learn, and from what: at one revision of the scope. */
export interface Gate {
  readonly revision: number;
  readonly consent: 'on' | 'off';
  /** Changes with each erasure of the scope; jobs of an earlier epoch are dropped. `undefined`: no job was made since the erasure. */
  readonly epoch: string | undefined;
  readonly note: SourceNote;
  /** The remaining candidates of a job that takes several commits. */
  readonly split: SplitJob | undefined;
}

/** The candidates of a job that takes several commits. */
export interface SplitJob {
  readonly candidates: readonly Candidate[];
  /** The texts of the earlier commits, for the profile. */
  readonly facts: readonly string[];
  readonly summary?: string;
  readonly invalidated: number;
}

/** The key of the note about a source: a hash, because the source's id may be personal. */
export function sourceNoteKey(sourceId: string): string {
  return PIPELINE_KEYS.source(sha256Of(sourceId).slice(0, 32));
}

/** Reads the gate: consent, epoch, the note about the source, and the job's remaining candidates. */
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
 * Reads the gate, and begins an epoch if the scope has none. The epoch is a note, which an erasure removes with all others. So jobs that
 * began before the erasure, in any process, are known by their old epoch.
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
