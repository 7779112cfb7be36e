import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import type { Cut } from '../../chain/cut.ts';
import { packPlace, type Pack } from '../format/checkpoint.ts';
import { shardName } from '../format/names.ts';
import { packText } from '../format/packed-text.ts';

/** A shard to be written. */
export interface NewShard {
  readonly name: string;
  readonly data: Buffer;
}

interface SplitOptions {
  readonly owner: string;
  readonly shardSize: number;
  /** `undefined`: shards are in clear. */
  readonly cipher: Cipher | undefined;
}

/** How the lifted parts of a state are stored. */
export interface PackPlan {
  readonly packs: readonly Pack[];
  readonly shards: readonly NewShard[];
}

/** A planned pack. Its runs may come from other packs. */
interface Draft {
  readonly known: Pack | undefined;
  readonly runs: readonly string[];
  readonly length: number;
  /** Approximate bytes after packing. */
  readonly bytes: number;
}

/** The usual size of packed text, as a fraction of the text's length. */
const PACKED_SHARE = 0.4;
const SHARDS_IN_PACK = 4;
/** A state may have this many shards, and one more for each `STATE_PER_SHARD` characters. */
const SPARE_SHARDS = 2;
const STATE_PER_SHARD = 512 * 1024;

/**
 * Plans how the parts of a cut are stored: parts in known packs stay there, the others go into new packs. If a reader without a cache would
 * have to read too many documents, packs are merged: always the newest ones, so that old parts are seldom written again.
 */
export async function planPacks(cut: Cut, known: readonly Pack[], options: SplitOptions): Promise<PackPlan> {
  const { cipher } = options;
  const lengths = lengthsOf(cut);
  // Packs in clear, or under another key, are not reused.
  const usable = known.filter((pack) => pack.key === cipher?.keyTag);
  const merged = mergeNewest(drafts(cut, lengths, usable, options.shardSize), options.shardSize, total(lengths));
  const texts = new Map(cut.shards.map((shard) => [shard.name, shard]));
  const packs: Pack[] = [];
  const shards: NewShard[] = [];
  for (const draft of merged) {
    if (draft.known) {
      packs.push(draft.known);
      continue;
    }
    const parts = draft.runs.map((run) => texts.get(run)!.text());
    const split = await splitText(parts.join(''), packPlace(draft.runs), options);
    shards.push(...split);
    packs.push({
      shards: split.map((shard) => shard.name),
      runs: draft.runs,
      lengths: parts.map((part) => part.length),
      bytes: split.reduce((sum, shard) => sum + shard.data.length, 0),
      ...(cipher && { key: cipher.keyTag }),
    });
  }
  return { packs, shards };
}

/**
 * Splits text into shards of at most `shardSize` bytes.
 *
 * @param place The place that encrypted text is bound to. Encrypted shards are named by their ciphertexts, which are never the same twice.
 */
export async function splitText(
  text: string,
  place: string,
  { owner, shardSize, cipher }: SplitOptions,
): Promise<NewShard[]> {
  const packed = await packText(text, { cipher, place });
  const shards: NewShard[] = [];
  for (let start = 0; start < packed.length; start += shardSize) {
    // A copy, because the client would keep the whole buffer alive behind a view.
    const data = Buffer.from(packed.subarray(start, start + shardSize));
    shards.push({ name: shardName(owner, data), data });
  }
  return shards;
}

function lengthsOf({ memory }: Cut): Map<string, number> {
  const lengths = new Map<string, number>();
  for (const parts of memory.values()) for (const part of parts) lengths.set(part.name, part.length);
  return lengths;
}

function total(lengths: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const length of lengths.values()) sum += length;
  return sum;
}

function drafts(cut: Cut, lengths: ReadonlyMap<string, number>, known: readonly Pack[], shardSize: number): Draft[] {
  const loose = new Set(cut.shards.map((shard) => shard.name));
  const kept: Draft[] = [];
  for (const pack of known) {
    const live = pack.runs.filter((run) => loose.has(run));
    const length = live.reduce((sum, run) => sum + (lengths.get(run) ?? 0), 0);
    const whole = pack.lengths.reduce((sum, runLength) => sum + runLength, 0);
    // Less than half of the pack is in use: writing these parts again costs less than reading the whole pack each time.
    if (length * 2 < whole || live.length === 0) continue;
    for (const run of live) loose.delete(run);
    kept.push({ known: pack, runs: live, length, bytes: pack.bytes });
  }
  return [...kept, ...fresh([...loose], lengths, shardSize)];
}

/** New packs of a few shards each, so that the unused rest of the last shard is a small part of a pack. */
function fresh(runs: readonly string[], lengths: ReadonlyMap<string, number>, shardSize: number): Draft[] {
  const packs: Draft[] = [];
  let group: string[] = [];
  let length = 0;
  const close = (): void => {
    if (group.length > 0) packs.push({ known: undefined, runs: group, length, bytes: length * PACKED_SHARE });
    group = [];
    length = 0;
  };
  for (const run of runs) {
    const next = lengths.get(run) ?? 0;
    if (length + next > SHARDS_IN_PACK * shardSize) close();
    group.push(run);
    length += next;
  }
  close();
  return packs;
}

function mergeNewest(packs: Draft[], shardSize: number, length: number): Draft[] {
  const allowed = SPARE_SHARDS + Math.floor(length / STATE_PER_SHARD);
  let merged = packs;
  while (countShards(merged, shardSize) > allowed) {
    const from = bestMerge(merged, shardSize);
    if (from === undefined) break;
    const tail = merged.slice(from);
    const one: Draft = {
      known: undefined,
      runs: tail.flatMap((pack) => pack.runs),
      length: tail.reduce((sum, pack) => sum + pack.length, 0),
      bytes: tail.reduce((sum, pack) => sum + pack.bytes, 0),
    };
    merged = [...merged.slice(0, from), one];
  }
  return merged;
}

function countShards(packs: readonly Draft[], shardSize: number): number {
  return packs.reduce(
    (sum, pack) => sum + (pack.known?.shards.length ?? Math.max(1, Math.ceil(pack.bytes / shardSize))),
    0,
  );
}

/** The index from which to merge all packs: the one with the fewest bytes to write for each document that is saved. */
function bestMerge(packs: readonly Draft[], shardSize: number): number | undefined {
  let best: number | undefined;
  let bestCost = Infinity;
  let bytes = packs.at(-1)?.bytes ?? 0;
  for (let from = packs.length - 2; from >= 0; from--) {
    bytes += packs[from]!.bytes;
    if (bytes > shardSize * 0.9) break;
    const cost = bytes / (packs.length - 1 - from);
    if (cost <= bestCost) {
      best = from;
      bestCost = cost;
    }
  }
  return best;
}
