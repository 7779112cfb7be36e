import { diff } from '../../src/json/patch/diff.ts';
import { jsonBytes } from '../../src/json/size.ts';
import { stringifyJson, type Json } from '../../src/json/value.ts';
import { cut, type Cut, type CutMemory, type RunLengths, type ShardNames } from './cut.ts';
import { patchText } from './written-state.ts';

/** The plan for writing a state. */
export type WritePlan =
  /** As a checkpoint. */
  | { readonly kind: 'whole'; readonly cut: Cut }
  /** As a diff from the parent's state. `patch` is JSON text. */
  | { readonly kind: 'on-parent'; readonly patch: string; readonly depth: number };

/** Options of {@link planNew}. */
export interface WriteOptions {
  /** At least one of this many successive snapshots is a checkpoint. */
  readonly interval: number;
  /** The memory of an earlier cut. */
  readonly known: CutMemory | undefined;
  /** How long runs are; see `cut`. */
  readonly runs?: RunLengths;
  /** How shards are named; see `cut`. */
  readonly names?: ShardNames | undefined;
}

/** A state that a diff can start from. */
export interface DiffOrigin {
  readonly state: Json;
  /** The number of diffs from the last checkpoint to it; 0: it is a checkpoint. */
  readonly depth: number;
}

/**
 * Plans how a new snapshot's state is written: as a diff from its parent's state, or as a checkpoint if the diff is not smaller than the
 * state, or `interval` - 1 diffs come before it in a row.
 *
 * @param parent The parent's state; `undefined` if no diff can start from it.
 */
export function planNew(state: Json, parent: DiffOrigin | undefined, options: WriteOptions): WritePlan {
  if (parent && parent.depth + 1 < options.interval) {
    const patch = patchText(diff(parent.state, state));
    if (isSmaller(patch.length, state)) return { kind: 'on-parent', patch, depth: parent.depth + 1 };
  }
  // With an interval of 1 no parts are lifted out, so that every snapshot can be read by itself.
  if (options.interval > 1) return { kind: 'whole', cut: cut(state, options.known, options.runs, options.names) };
  const skeleton = stringifyJson(state);
  return { kind: 'whole', cut: { skeleton, lifts: [], shards: [], memory: new Map(), length: skeleton.length } };
}

function isSmaller(length: number, state: Json): boolean {
  return jsonBytes(state, length) > length;
}
