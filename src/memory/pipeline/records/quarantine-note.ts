import type { MessageData } from 'genkit';
import type { Json } from '../../../json/value.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import type { Candidate, JobSource } from './candidate.ts';
import type { LearnInput } from './job-input.ts';
import { NOTES } from '../pipeline.ts';

/** A message or a memory that waits for a decision. */
export interface Quarantined {
  readonly reason: string;
  readonly at: string;
  readonly source: JobSource;
  /** The message, with its position and the task of its job. */
  readonly message?: MessageData;
  readonly position?: number;
  readonly task?: LearnInput['task'];
  /** The memory, if it is not a message. */
  readonly candidate?: Candidate;
}

/** Writes the note of a quarantined text, whose key is the text's id; `undefined` removes it. */
export function quarantineNote(id: string, text: Quarantined | undefined): MemoryOperation {
  return { op: 'note', kind: NOTES.quarantine, key: id, value: text && ({ version: 1, ...text } as unknown as Json) };
}

/** Parses the note of a quarantined text. */
export function quarantinedOf(value: Json): Quarantined {
  return value as unknown as Quarantined;
}
