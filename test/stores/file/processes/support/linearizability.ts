import type { Observed } from '../scripts/tasks.ts';

/**
 * Whether what several processes saw of a session's leaf can have happened in one order, each call at some instant between its start and
 * its end. `history` is the session's chain from its root: the order of the saves is known, so the only question is whether instants can be
 * found for all calls; the earliest possible ones are tried. Answers the call for which there is none.
 */
export function findAnomaly(history: readonly string[], seen: readonly Observed[]): Observed | undefined {
  const saves = new Map<string, Observed>();
  const reads = new Map<string | null, Observed[]>();
  for (const call of seen) {
    if (call.kind === 'save') saves.set(call.leaf!, call);
    else reads.set(call.leaf, [...(reads.get(call.leaf) ?? []), call]);
  }
  const known = new Set<string | null>([null, ...history]);
  const unknownRead = seen.find((call) => !known.has(call.leaf));
  if (unknownRead) return unknownRead;

  let now = 0n;
  for (const leaf of [null, ...history]) {
    const save = leaf === null ? undefined : saves.get(leaf);
    if (save) {
      now = later(now, save.start);
      if (now > save.end) return save;
    }
    let last = now;
    for (const read of reads.get(leaf) ?? []) {
      const instant = later(now, read.start);
      if (instant > read.end) return read;
      last = later(last, instant);
    }
    now = last;
  }
  return undefined;
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
