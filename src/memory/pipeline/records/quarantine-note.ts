import type { MessageData } from 'genkit';
import { cutByBytes } from '../../../json/size.ts';
import type { Json } from '../../../json/value.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { Candidate } from './candidate.ts';
import type { JobSource, LearnInput } from './job-input.ts';
import { NOTES } from '../pipeline.ts';

/** The most bytes of the texts in a note, unless a single one takes more: a store takes 512 KiB. */
const MAX_PART_BYTES = 384 * 1024;

/** A message or a memory that waits for a decision. */
export interface Quarantined {
  readonly reason: string;
  readonly at: string;
  readonly source: JobSource;
  /** A message, with its position and the task of its job. */
  readonly message?: MessageData;
  readonly position?: number;
  readonly task?: LearnInput['task'];
  /** Or a memory. */
  readonly candidate?: Candidate;
}

/** A text in a note. */
export interface WaitingText extends Quarantined {
  /** Its number among the texts of its job: a part of its id. */
  readonly number: number;
}

/** The notes of quarantined texts: as many as the store's limit for a note needs. */
export function quarantineNotes(key: string, items: readonly Quarantined[]): MemoryOperation[] {
  const numbered = items.map((item, number) => ({ ...item, number }));
  const parts = cutByBytes(numbered, MAX_PART_BYTES);
  return parts.map((part, i) => quarantineNote(i === 0 ? key : `${key}+${i}`, part));
}

/** A note of quarantined texts. A job may have several. */
export function quarantineNote(key: string, items: readonly WaitingText[]): MemoryOperation {
  const value = items.length === 0 ? undefined : ({ version: 1, items } as unknown as Json);
  return { op: 'note', kind: NOTES.quarantine, key, value };
}

/** The texts of a note. */
export function quarantinedOf(value: unknown): readonly WaitingText[] {
  return (value as { items?: WaitingText[] } | undefined)?.items ?? [];
}
