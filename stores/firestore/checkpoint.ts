import { parseJson, type Json } from '../../src/json/value.ts';
import type { Cut, Lift } from '../chain/cut.ts';
import { runName, type Pack } from './packs.ts';

/** A whole state as it is stored: what is not lifted, where the lifted parts go, and the packs that they are in. */
export interface Checkpoint {
  /** JSON text. */
  readonly skeleton: string;
  readonly lifts: readonly Lift[];
  readonly packs: readonly Pack[];
  /** Length of the state's JSON text, about. */
  readonly length: number;
  /** When it was written, in ms. */
  readonly at: number;
  /** How long what is written with it is kept, in ms, before Firestore may remove it; absent: for ever. */
  readonly life?: number;
}

export function checkpointOf(cut: Cut, packs: readonly Pack[], time: Pick<Checkpoint, 'at' | 'life'>): Checkpoint {
  const lifts = cut.lifts.map((lift) => ({ ...lift, shards: lift.shards.map(runName) }));
  return { skeleton: cut.skeleton, lifts, packs, length: cut.length, ...time };
}

/** JSON text of a checkpoint. */
export function formatCheckpoint({ skeleton, lifts, packs, length, at, life }: Checkpoint): string {
  const places = new Map<string, [pack: number, run: number]>();
  for (const [p, pack] of packs.entries()) for (const [r, run] of pack.runs.entries()) places.set(run, [p, r]);
  const rest = {
    lifts: lifts.map((lift) => [lift.path, lift.holds, lift.shards.map((run) => places.get(run)!)]),
    packs: packs.map((pack) => [pack.shards, pack.runs, pack.lengths, pack.bytes, pack.until ?? null]),
    length,
    at,
    life,
  };
  return `{"skeleton":${skeleton},${JSON.stringify(rest).slice(1)}`;
}

/** @throws Error when the text is not that of a checkpoint. */
export function parseCheckpoint(text: string): Checkpoint {
  const parsed = parseJson(text) as unknown as {
    skeleton: Json;
    lifts: [string[], Lift['holds'], [number, number][]][];
    packs: [string[], string[], number[], number, number | null][];
    length: number;
    at: number;
    life?: number;
  };
  const packs = parsed.packs.map(([shards, runs, lengths, bytes, until]): Pack => ({
    shards,
    runs,
    lengths,
    bytes,
    ...(until !== null && { until }),
  }));
  const lifts = parsed.lifts.map(([path, holds, places]): Lift => {
    const shards = places.map(([pack, run]) => packs[pack]!.runs[run]!);
    return { path, holds, shards };
  });
  const skeleton = skeletonText(text);
  const { length, at, life } = parsed;
  return { skeleton, lifts, packs, length, at, ...(life !== undefined && { life }) };
}

/** The skeleton as it stands in the text: writing it anew would lose a minus zero. */
function skeletonText(text: string): string {
  return text.slice('{"skeleton":'.length, text.lastIndexOf(',"lifts":['));
}

/** Names of all shards of a checkpoint. */
export function shardsOf({ packs }: Checkpoint): string[] {
  return packs.flatMap((pack) => pack.shards);
}
