import { Problem } from '../../failures.ts';
import type { Io } from '../../io.ts';
import { count } from '../../output/text.ts';
import { isConfirmed, printDryRun, type RemovingFlags } from '../removing.ts';
import { printJson } from '../with-store.ts';

interface DiscardOptions {
  readonly noun: 'job' | 'text';
  readonly known: readonly { readonly id: string }[];
  /** The message for an id without an item. */
  readonly unknown: (id: string) => string;
  /** The message about the consequence. */
  readonly loss: string;
  readonly discard: (id: string) => Promise<void>;
}

/**
 * Asks, and removes the named items.
 *
 * @throws Problem when one of them does not exist. Then nothing is removed.
 */
export async function discardAll(
  io: Io,
  flags: RemovingFlags,
  given: readonly string[],
  { noun, known, unknown, loss, discard }: DiscardOptions,
): Promise<void> {
  const ids = knownIds(given, known, unknown);
  const what = count(ids.length, noun);
  const removed = { [`${noun}s`]: ids.length };
  if (flags.dryRun) return printDryRun(io, flags, removed, what);
  if (!(await isConfirmed(io, flags, `${what} will be removed permanently; ${loss}`))) return;
  for (const id of ids) await discard(id);
  if (flags.json) await printJson(io, removed);
  else await io.print(`Removed: ${what}\n`);
}

/**
 * Returns the ids, each once.
 *
 * @throws Problem when one of them does not exist.
 */
export function knownIds(
  given: readonly string[],
  known: DiscardOptions['known'],
  unknown: DiscardOptions['unknown'],
): string[] {
  const ids = [...new Set(given)];
  const wrong = ids.find((id) => known.every((one) => one.id !== id));
  if (wrong !== undefined) throw new Problem(unknown(wrong));
  return ids;
}
