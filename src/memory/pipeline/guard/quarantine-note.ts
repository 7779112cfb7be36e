import type { MessageData } from 'genkit';
import type { Json } from '../../../json/value.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { Candidate } from '../extract/candidate.ts';
import type { JobSource } from '../jobs/job-input.ts';
import { NOTES } from '../pipeline.ts';

/** A message or a memory that waits for a decision. */
export interface Quarantined {
  readonly reason: string;
  readonly at: string;
  readonly source: JobSource;
  /** A message, with its position. */
  readonly message?: MessageData;
  readonly position?: number;
  /** Or a memory. */
  readonly candidate?: Candidate;
  /** It was decided on, and its text is removed. It stays in the list, so that the indexes of the others do not change. */
  readonly isDecided?: boolean;
}

/** The note of a job's quarantined texts. A job that takes several commits may have several notes. */
export function quarantineNote(key: string, items: readonly Quarantined[]): MemoryOperation {
  const value = items.length === 0 ? undefined : (JSON.parse(JSON.stringify({ version: 1, items })) as Json);
  return { op: 'note', kind: NOTES.quarantine, key, value };
}

/** The texts of a note. */
export function quarantinedOf(value: unknown): readonly Quarantined[] {
  return (value as { items?: Quarantined[] } | undefined)?.items ?? [];
}
