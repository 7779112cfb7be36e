import type { Json } from '../../src/json/value.ts';
import { planNew, planRewrite, planWhole, type WritePlan } from '../chain/plan-write.ts';
import type { KnownState } from '../chain/written-state.ts';
import { checkpointOf, formatCheckpoint } from './checkpoint.ts';
import { ownerKey } from './names.ts';
import { packText } from './pack-json.ts';
import { planPacks, splitText, type NewShard, type Pack } from './packs.ts';
import type { PointerDocument } from './pointer-document.ts';
import type { SnapshotDocument, StoredState } from './snapshot-document.ts';
import { endOf, extended, newToken, patchBytes, type StateChain } from './state-chain.ts';
import type { LoadedState, StateReader } from './state-reader.ts';
import type { CachedState, Tenant } from './tenant.ts';

/** How a state is going to be stored. */
export interface StatePlan {
  readonly state: StoredState;
  /** `undefined`: there is no state. */
  readonly cached: CachedState | undefined;
  readonly shards: readonly NewShard[];
  /** Shards that are there, and must stay longer than they would. */
  readonly prolonged: readonly string[];
  /** How long the shards are kept at least, in ms; absent: for ever. */
  readonly life?: number;
}

/** Where a new snapshot's state may start from. */
export interface ParentState extends LoadedState {
  readonly snapshotId: string;
  /** The parent's place. */
  readonly seq: number;
  /** When the parent counts as gone, in ms; absent: never. */
  readonly until?: number;
}

export const NO_STATE: StatePlan = { state: { kind: 'none' }, cached: undefined, shards: [], prolonged: [] };

/** A patch larger than this is no better than a whole state. */
const LARGEST_PATCH = 96 * 1024;
/** A pointer carries at most so many bytes of patches. */
const MOST_PATCH_BYTES = 192 * 1024;
/** A larger whole state, the shards aside, is put into shards as well. */
const LARGEST_INLINE = 128 * 1024;
/** What is lifted, and when, is this store's own matter whatever the interval is. */
const LIFTING = 2;

/** Decides how states are stored. */
export class StateWriter {
  readonly #tenant: Tenant;
  readonly #reader: StateReader;

  constructor(tenant: Tenant, reader: StateReader) {
    this.#tenant = tenant;
    this.#reader = reader;
  }

  /** Plans the state of a new snapshot: what changed since its parent's where that is short. */
  async planNew(
    state: Json,
    options: { owner: string; parent: ParentState | undefined; pointer: PointerDocument | undefined },
  ): Promise<StatePlan> {
    const { owner, parent, pointer } = options;
    const { checkpointInterval: interval } = this.#tenant.settings;
    const chain = parent?.chain;
    const canPatch =
      interval > 1 && chain && patchBytes(chain) < MOST_PATCH_BYTES && (await this.mayStandOn(chain, parent));
    const origin = canPatch ? { state: parent.known.state, depth: chain.patches.length } : undefined;
    const plan = planNew(state, origin, { interval: Math.max(interval, LIFTING), known: parent?.known.memory });
    if (plan.kind === 'on-parent' && parent && chain) {
      const patch = await packText(plan.patch);
      if (patch.length <= LARGEST_PATCH) return this.#patched(state, { parent, chain, patch, text: plan.patch });
    }
    const { expireAfterMs: life } = this.#tenant.settings;
    return this.#whole(state, plan, { owner, known: parent?.known, chain, pointer, life });
  }

  /**
   * Plans the state of a snapshot that is there.
   *
   * @param canAppend What it stands on lives as long as it does.
   * @param life How long the state is needed, in ms; absent: for ever.
   */
  async planRewrite(
    state: Json,
    current: {
      snapshot: SnapshotDocument;
      loaded: LoadedState | undefined;
      pointer: PointerDocument | undefined;
      canAppend: boolean;
      life: number | undefined;
    },
  ): Promise<StatePlan> {
    const { snapshot, loaded, pointer, canAppend, life } = current;
    const { state: stored } = snapshot;
    const interval = this.#tenant.settings.checkpointInterval;
    const owner = ownerKey(snapshot.sessionId, snapshot.meta.snapshotId);
    const chain = loaded?.chain;
    const options = { interval: Math.max(interval, LIFTING), known: loaded?.known.memory };
    if (canAppend && interval > 1 && loaded && chain && (stored.kind === 'whole' || stored.kind === 'diff')) {
      const patches = stored.patches.map((patch) => patch.toString('latin1'));
      const plan = planRewrite(state, { state: loaded.known.state, depth: 0, patches }, options);
      const patch = plan.kind === 'appended' ? await packText(plan.patch) : undefined;
      if (plan.kind === 'appended' && patch && patchBytes(chain) + patch.length <= MOST_PATCH_BYTES) {
        const token = newToken();
        const appended = { ...stored, tokens: [...stored.tokens, token], patches: [...stored.patches, patch] };
        const cached = following(loaded.known, state, plan.patch, extended(chain, [token], [patch]));
        return { state: appended, cached, shards: [], prolonged: [] };
      }
    }
    return this.#whole(state, undefined, { owner, known: loaded?.known, chain, pointer, life });
  }

  /**
   * A state by itself, whatever it is now; for a snapshot that loses what it stands on.
   *
   * @param life How long it is needed, in ms; absent: for ever.
   */
  planWhole(
    loaded: LoadedState,
    options: { owner: string; pointer: PointerDocument | undefined; life: number | undefined },
  ): Promise<StatePlan> {
    const { known, chain } = loaded;
    return this.#whole(known.state, undefined, { known, chain, ...options });
  }

  /**
   * Whether a state that is written now may stand on a chain for as long as it lives: what lives shorter is removed first.
   *
   * @param on The snapshot whose state the chain leads to.
   */
  async mayStandOn(chain: StateChain, on: { readonly until?: number }): Promise<boolean> {
    const { expireAfterMs } = this.#tenant.settings;
    // What never expires stands on nothing that does.
    if (expireAfterMs === undefined) return on.until === undefined;
    const { at, life } = await this.#reader.checkpoint(chain.base);
    return life === expireAfterMs && Date.now() - at <= expireAfterMs;
  }

  async #patched(
    state: Json,
    made: { parent: ParentState; chain: StateChain; patch: Buffer; text: string },
  ): Promise<StatePlan> {
    const { parent, chain, patch, text } = made;
    const token = newToken();
    const from = Math.max(0, parent.seq - chain.patches.length);
    return {
      state: {
        kind: 'diff',
        parent: { id: parent.snapshotId, token: endOf(chain), from },
        tokens: [token],
        patches: [patch],
      },
      cached: following(parent.known, state, text, extended(chain, [token], [patch])),
      shards: [],
      prolonged: [],
    };
  }

  async #whole(
    state: Json,
    planned: WritePlan | undefined,
    from: {
      owner: string;
      known: KnownState | undefined;
      chain: StateChain | undefined;
      pointer: PointerDocument | undefined;
      life: number | undefined;
    },
  ): Promise<StatePlan> {
    const { owner, known, chain, pointer, life } = from;
    const { shardSize } = this.#tenant.settings;
    const plan = planned?.kind === 'whole' ? planned : planWhole(state, { interval: LIFTING, known: known?.memory });
    if (plan.kind !== 'whole') throw new Error('invariant: a whole state was planned');
    const { cut } = plan;
    const now = Date.now();
    const trusted = await this.#trustedPacks(chain, pointer, life);
    const until = life === undefined ? undefined : now + 4 * life;
    const kept = life === undefined ? {} : { life };
    const { packs, shards } = await planPacks(cut, trusted, { owner, shardSize, ...kept, ...(until && { until }) });
    const checkpoint = checkpointOf(cut, prolongedPacks(packs, now, life), { at: now, ...kept });
    const bytes = await packText(formatCheckpoint(checkpoint));
    const far =
      bytes.length > LARGEST_INLINE ? await splitText(formatCheckpoint(checkpoint), { owner, shardSize, ...kept }) : [];
    const base = far.length > 0 ? { shards: far.map((shard) => shard.name), checkpoint } : { bytes, checkpoint };
    const whole: StateChain = { base, tokens: [newToken()], patches: [] };
    return {
      state: { kind: 'whole', ...whole },
      cached: { known: { state, memory: cut.memory, length: cut.length }, chain: whole },
      shards: [...shards, ...far],
      prolonged: packs.filter((pack, i) => pack !== checkpoint.packs[i]).flatMap((pack) => pack.shards),
      ...kept,
    };
  }

  /**
   * The packs that are surely there, and are kept for the same time: those of the state that the pointer leads to. The commit is guarded by
   * that pointer, and whoever removes shards writes it first.
   */
  async #trustedPacks(
    chain: StateChain | undefined,
    pointer: PointerDocument | undefined,
    life: number | undefined,
  ): Promise<readonly Pack[]> {
    const head = pointer?.head?.chain;
    if (!chain || !head || head.tokens[0] !== chain.tokens[0]) return [];
    const checkpoint = await this.#reader.checkpoint(chain.base);
    const { packs } = checkpoint;
    const isKept = checkpoint.life === life && (life !== undefined || packs.every((pack) => pack.until === undefined));
    return isKept ? packs : [];
  }
}

function following(before: KnownState, state: Json, patch: string, chain: StateChain): CachedState {
  return { known: { state, memory: before.memory, length: before.length + patch.length }, chain };
}

/** Packs that would be removed before what stands on them now may stay until later. */
function prolongedPacks(packs: readonly Pack[], now: number, life: number | undefined): readonly Pack[] {
  if (life === undefined) return packs;
  return packs.map((pack) =>
    pack.until === undefined || pack.until < now + 2 * life ? { ...pack, until: now + 4 * life } : pack,
  );
}
