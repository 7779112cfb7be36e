import { failedPrecondition } from '../../errors.ts';

/**
 * Every medium names the format it was written in; a store reads all formats up to its own.
 *
 * @param what What was written, as the beginning of a sentence.
 * @throws `FAILED_PRECONDITION` when a newer version wrote it.
 */
export function assertReadable(format: unknown, newest: number, what: string): void {
  if (typeof format !== 'number' || format <= newest) return;
  throw failedPrecondition(
    `${what} was written in format ${format} by a newer version of genkitx-agents; this one reads up to format ${newest}. Update it.`,
  );
}
