import { createHash } from 'node:crypto';
import { parseJson } from '../../../src/json/value.ts';
import type { Lift, ShardNames } from '../../chain/cut.ts';

/**
 * Lifted parts of a state (runs) that are stored together, because a run is short and Firestore bills by the document. The packed text is
 * one shard, or several if it exceeds the size of a shard. Immutable.
 */
export interface Pack {
  /** Names of its shards, in order. */
  readonly shards: readonly string[];
  /** Names of its runs, in order; see {@link RUN_NAMES}. */
  readonly runs: readonly string[];
  /** Lengths of the runs' texts. */
  readonly lengths: readonly number[];
  /** Bytes of its shards. */
  readonly bytes: number;
  /** The tag of the data key that it is encrypted with. Default: it is in clear. */
  readonly key?: string | undefined;
}

/** The place that the ciphertext of a pack is bound to. */
export function packPlace(runs: Pack['runs']): string {
  return JSON.stringify(['pack', ...runs]);
}

/** The place that the ciphertext of a checkpoint or a diff is bound to. `name` is the name of the state. */
export function statePlace(kind: 'whole' | 'diff', name: string): string {
  return JSON.stringify([kind, name]);
}

/** The names of runs: 96 bits of the hash of their text. */
export const RUN_NAMES: ShardNames = {
  of: (text) => createHash('sha256').update(text).digest().subarray(0, 12).toString('base64url'),
  has: () => true,
};

/** A whole state as it is stored: the skeleton, the places of the lifted parts, and the packs that hold them. */
export interface Checkpoint {
  /** JSON text. */
  readonly skeleton: string;
  readonly lifts: readonly Lift[];
  readonly packs: readonly Pack[];
  /** Approximate length of the state's JSON text. */
  readonly length: number;
}

/** JSON text of a checkpoint. */
export function formatCheckpoint({ skeleton, ...rest }: Checkpoint): string {
  return `{"skeleton":${skeleton},${JSON.stringify(rest).slice(1)}`;
}

/** @throws Error when the text is not that of a checkpoint. */
export function parseCheckpoint(text: string): Checkpoint {
  const { lifts, packs, length } = parseJson(text) as unknown as Checkpoint;
  return { skeleton: skeletonText(text), lifts, packs, length };
}

/** The skeleton's own text: parsing and writing it again would lose a minus zero. */
function skeletonText(text: string): string {
  return text.slice('{"skeleton":'.length, text.lastIndexOf(',"lifts":['));
}

/** Names of all shards that hold parts of a checkpoint. */
export function shardsOf({ packs }: Checkpoint): string[] {
  return packs.flatMap((pack) => pack.shards);
}
