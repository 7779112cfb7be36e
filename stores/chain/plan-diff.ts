import { diff, type JsonPatch } from '../../src/json/patch/diff.ts';
import { jsonBytes } from '../../src/json/size.ts';
import { stringifyJson, type Json } from '../../src/json/value.ts';

/** A state that a diff can start from. */
export interface DiffOrigin {
  readonly state: Json;
  /** The number of diffs from the last checkpoint to it; 0: it is a checkpoint. */
  readonly depth: number;
}

/**
 * Plans how a new snapshot's state is written: as a diff from another state, or as a checkpoint if the diff is not smaller than the state,
 * or `interval` - 1 diffs come before it in a row.
 *
 * @param origin Usually the parent's state; `undefined` if no diff can start from it.
 * @param interval At least one of this many successive snapshots is a checkpoint.
 * @returns The JSON text of the patch; `undefined`: the state is written as a checkpoint.
 */
export function planDiff(state: Json, origin: DiffOrigin | undefined, interval: number): string | undefined {
  if (!origin || origin.depth + 1 >= interval) return undefined;
  const patch = patchText(diff(origin.state, state));
  return jsonBytes(state, patch.length) > patch.length ? patch : undefined;
}

/** JSON text of a patch. Each value is written by itself, so that the patch around it does not count against the depth limit. */
export function patchText(patch: JsonPatch): string {
  const operations = patch.map(({ op, path, value }) => {
    const head = `{"op":"${op}","path":${JSON.stringify(path)}`;
    return value === undefined ? `${head}}` : `${head},"value":${stringifyJson(value)}}`;
  });
  return `[${operations.join(',')}]`;
}
