import type { Json } from '../../../src/json/value.ts';
import type { Cipher } from '../../../src/store/encryption/encryption.ts';
import { cut } from '../../chain/cut.ts';
import { planDiff } from '../../chain/plan-diff.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { formatCheckpoint, RUN_NAMES, statePlace, type Pack } from '../format/checkpoint.ts';
import { packText } from '../format/packed-text.ts';
import type { StoredState } from '../format/snapshot-document.ts';
import { endOf, extended, patchBytes, type StateChain } from '../format/state-chain.ts';
import type { TenantDatabase } from '../tenant-database.ts';
import { planPacks, splitText, type NewShard } from './packs.ts';

/** How a state will be stored. */
export interface StatePlan {
  readonly state: StoredState;
  /** The state and the chain to it; `undefined` without a state. */
  readonly next: BaseState | undefined;
  /** Shards to be written. */
  readonly shards: readonly NewShard[];
  /** Names of reused shards. The commit requires that they exist. */
  readonly reused: readonly string[];
}

export const NO_STATE: StatePlan = { state: { kind: 'none' }, next: undefined, shards: [], reused: [] };

/** A state that can be the base of a diff. */
export interface BaseState {
  readonly known: KnownState;
  readonly chain: StateChain;
}

/** The place of a state. */
export interface StatePlace {
  /** The new name of the state. */
  readonly name: string;
  readonly owner: string;
  readonly seq: number;
  /** Encrypts it; `undefined`: it is stored in clear. */
  readonly cipher: Cipher | undefined;
}

/** Known facts about a new state. */
interface Known {
  readonly place: StatePlace;
  /** The state of the nearest completed ancestor. */
  readonly base?: BaseState | undefined;
  /** Shards of an earlier state of the snapshot. Default: those of the base. */
  readonly memory?: KnownState['memory'] | undefined;
  /** Packs of the same owner that may hold parts of the state. */
  readonly packs: () => Promise<readonly Pack[]>;
}

/** Instead of a larger patch, the whole state is stored. */
const LARGEST_PATCH = 96 * 1024;
/** The most bytes of patches in a pointer. */
const MOST_PATCH_BYTES = 192 * 1024;
/** A larger checkpoint, without its lifted parts, is put into shards as well. */
const LARGEST_INLINE = 128 * 1024;

/**
 * Plans how a state is stored: as a diff from the base if that is short and there are not too many diffs in a row, else as a checkpoint.
 */
export async function planState(
  tenant: TenantDatabase,
  state: Json | undefined,
  { place, base, memory = base?.known.memory, packs }: Known,
): Promise<StatePlan> {
  if (state === undefined) return NO_STATE;
  const { checkpointInterval } = tenant.settings;
  const chain = base && patchBytes(base.chain) < MOST_PATCH_BYTES ? base.chain : undefined;
  const origin = chain && { state: base!.known.state, depth: chain.patches.length };
  const text = planDiff(state, origin, checkpointInterval);
  if (text !== undefined) {
    const { name, cipher } = place;
    const patch = await packText(text, { cipher, place: statePlace('diff', name) });
    if (patch.length <= LARGEST_PATCH) {
      const known = { ...base!.known, state, length: base!.known.length + text.length };
      const stored = { kind: 'diff' as const, name, base: endOf(chain!), from: chain!.from, patch };
      return { ...NO_STATE, state: stored, next: { known, chain: extended(chain!, name, patch) } };
    }
  }
  return planCheckpoint(tenant, state, { place, memory, packs: await packs() });
}

/** Plans a checkpoint. */
export async function planCheckpoint(
  { settings: { shardSize } }: TenantDatabase,
  state: Json,
  {
    place: { owner, seq, name, cipher },
    memory,
    packs: known,
  }: { place: StatePlace; memory: KnownState['memory'] | undefined; packs: readonly Pack[] },
): Promise<StatePlan> {
  const whole = cut(state, memory, { names: RUN_NAMES });
  const { skeleton, lifts, length } = whole;
  const { packs, shards } = await planPacks(whole, known, { owner, shardSize, cipher });
  const checkpoint = { skeleton, lifts, packs, length };
  const text = formatCheckpoint(checkpoint);
  const at = statePlace('whole', name);
  const bytes = await packText(text, { cipher, place: at });
  const far = bytes.length > LARGEST_INLINE ? await splitText(text, at, { owner, shardSize, cipher }) : [];
  const base = far.length > 0 ? { shards: far.map((shard) => shard.name), checkpoint } : { bytes, checkpoint };
  const written = new Set(shards.map((shard) => shard.name));
  return {
    state: { kind: 'whole', name, base },
    next: {
      known: { state, memory: whole.memory, length },
      chain: { base, from: seq, names: [name], patches: [] },
    },
    shards: [...shards, ...far],
    reused: [...new Set(packs.flatMap((pack) => pack.shards))].filter((shard) => !written.has(shard)),
  };
}
