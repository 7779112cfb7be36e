import { failedPrecondition } from '../../errors.ts';

/**
 * Checks the format version of stored data: a store reads all formats up to its own.
 *
 * @param what Describes the data, as the beginning of a sentence.
 * @throws `FAILED_PRECONDITION` if a newer version wrote it.
 */
export function assertReadable(format: unknown, newest: number, what: string): void {
  if (typeof format !== 'number' || format <= newest) return;
  throw failedPrecondition(
    `${what} was written in format ${format} by a newer version of genkitx-agents; this one reads up to format ${newest}. Update it.`,
  );
}
