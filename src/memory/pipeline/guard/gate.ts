import { parseSourceNote, type SourceNote } from '../ingest/ranges.ts';
import { sha256Of } from '../jobs/job-input.ts';
import { NOTES, PIPELINE_KEYS, type Pipeline, type ScopeWork } from '../pipeline.ts';
import type { Candidate } from '../extract/candidate.ts';

/** What stands before anything is learned, as of one revision of the scope. */
export interface Gate {
  readonly revision: number;
  readonly consent: 'on' | 'off';
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
  { id, options }: Pick<ScopeWork, 'id' | 'options'>,
  sourceId: string,
  jobId?: string,
): Promise<Gate> {
  const sourceKey = sourceNoteKey(sourceId);
  const keys = [PIPELINE_KEYS.consent, sourceKey, ...(jobId === undefined ? [] : [PIPELINE_KEYS.split(jobId)])];
  const { revision, notes } = await store.notes(id, NOTES.pipeline, { ...options, keys });
  const valueOf = (key: string) => notes.find((note) => note.key === key)?.value as unknown;
  const set = valueOf(PIPELINE_KEYS.consent) as { consent: 'on' | 'off' } | undefined;
  return {
    revision,
    consent: set?.consent ?? consent,
    note: parseSourceNote(valueOf(sourceKey)),
    split: jobId === undefined ? undefined : (valueOf(PIPELINE_KEYS.split(jobId)) as SplitJob | undefined),
  };
}
