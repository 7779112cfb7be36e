import { GenkitError } from 'genkit';
import { applyShared } from '../../../src/json/patch/apply-checked.ts';
import type { JsonPatch } from '../../../src/json/patch/diff.ts';
import { parseJson } from '../../../src/json/value.ts';
import type { Sealer } from '../../../src/store/encryption/encryption.ts';
import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import { fill } from '../../chain/fill.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { isTransportFailure } from '../failures.ts';
import { packPlace, parseCheckpoint, shardsOf, statePlace, type Checkpoint, type Pack } from '../format/checkpoint.ts';
import { orderKey, ownerOfShard, shardName } from '../format/names.ts';
import { unpackText } from '../format/packed-text.ts';
import { readPointer, type PointerDocument } from '../format/pointer-document.ts';
import { readSnapshotDocument, type SnapshotDocument, type StoredState } from '../format/snapshot-document.ts';
import { chainTo, endOf, extended, type StateChain } from '../format/state-chain.ts';
import type { SealedFor, TenantDatabase } from '../tenant-database.ts';

type DiffState = Extract<StoredState, { kind: 'diff' }>;

/** A part of a state is missing or damaged. */
class Broken extends Error {}

/** Reads states of a tenant's snapshots. */
export class StateReader {
  readonly #tenant: TenantDatabase;

  constructor(tenant: TenantDatabase) {
    this.#tenant = tenant;
  }

  /**
   * The state of a snapshot; `undefined` when it has none.
   *
   * @param pointer The session's pointer, if it was just read: nearly always it leads to the state.
   * @throws `DATA_LOSS` when a part of it is missing or damaged.
   */
  async stateOf(snapshot: SnapshotDocument, pointer?: PointerDocument): Promise<KnownState | undefined> {
    const { state } = snapshot;
    if (state.kind === 'none') return undefined;
    return this.#tenant.caches.states.get(state.name) ?? this.stateAt(await this.chainOf(snapshot, pointer), snapshot);
  }

  /** The state that a chain leads to. @throws as {@link stateOf}. */
  stateAt(chain: StateChain, place: SealedFor): Promise<KnownState> {
    return this.#namingSnapshot(place, () => this.#load(chain, this.#tenant.sealerOf(place)));
  }

  /** The chain to the state of a snapshot that has one. @throws as {@link stateOf}. */
  chainOf(snapshot: SnapshotDocument, pointer?: PointerDocument): Promise<StateChain> {
    return this.#namingSnapshot(snapshot, async () => {
      const { state, seq, sessionId } = snapshot;
      if (state.kind === 'none') throw new Broken('it has no state');
      if (state.kind === 'whole') return wholeChain(state, seq);
      // The pointer is one document with all diffs before the snapshot.
      const { head } = pointer ?? (await this.#pointerOf(sessionId!)) ?? {};
      const known = chainTo(head?.chain, state.name) ?? chainTo(head?.chain, state.base);
      if (!known) return this.#walk(snapshot, state);
      return endOf(known) === state.name ? known : extended(known, state.name, state.patch);
    });
  }

  /** Packs of the checkpoint that a chain begins with. */
  async packsOf(chain: StateChain | undefined, place: SealedFor): Promise<readonly Pack[]> {
    return chain ? (await this.checkpoint(chain, this.#tenant.sealerOf(place))).packs : [];
  }

  /** The content of the checkpoint that a chain begins with. */
  async checkpoint({ base, names }: Pick<StateChain, 'base' | 'names'>, sealer: Sealer): Promise<Checkpoint> {
    if (base.checkpoint) return base.checkpoint;
    const bytes = base.bytes ?? Buffer.concat(await this.#shards(base.shards!));
    base.checkpoint = parseCheckpoint(await unpackText(bytes, { sealer, place: statePlace('whole', names[0]!) }));
    return base.checkpoint;
  }

  async #pointerOf(sessionId: string): Promise<PointerDocument | undefined> {
    const document = await this.#tenant.database.get(this.#tenant.pointerRef(sessionId));
    return document.exists ? readPointer(document, sessionId) : undefined;
  }

  async #namingSnapshot<T>({ sessionId, meta }: SealedFor, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Broken) throw unreadableSnapshot(meta.snapshotId, error.message, sessionId);
      if (error instanceof GenkitError || isTransportFailure(error)) throw error;
      throw unreadableSnapshot(meta.snapshotId, 'the stored parts of its state do not fit together', sessionId);
    }
  }

  /** Starts from the newest state of the chain that is in the cache, or from its checkpoint, and applies the patches after it. */
  async #load(chain: StateChain, sealer: Sealer): Promise<KnownState> {
    const { names, patches } = chain;
    const { states } = this.#tenant.caches;
    const at = names.findLastIndex((name) => states.get(name));
    const start = (at < 0 ? undefined : states.get(names[at]!)) ?? (await this.#whole(chain, sealer));
    let state = start.state;
    for (let i = Math.max(at, 0); i < patches.length; i++) {
      const text = await unpackText(patches[i]!, { sealer, place: statePlace('diff', names[i + 1]!) });
      state = applyShared(state, parseJson(text) as unknown as JsonPatch);
    }
    const known = { ...start, state };
    this.#tenant.rememberState(names.at(-1)!, known);
    return known;
  }

  async #whole(chain: StateChain, sealer: Sealer): Promise<KnownState> {
    const checkpoint = await this.checkpoint(chain, sealer);
    const names = [...new Set(shardsOf(checkpoint))];
    const shards = new Map((await this.#shards(names)).map((data, i) => [names[i]!, data]));
    const texts = new Map<string, string>();
    for (const pack of checkpoint.packs) {
      const bytes = Buffer.concat(pack.shards.map((name) => shards.get(name)!));
      const text = await unpackText(bytes, { sealer, place: packPlace(pack.runs) });
      let start = 0;
      for (const [i, run] of pack.runs.entries()) {
        const end = start + pack.lengths[i]!;
        texts.set(run, text.slice(start, end));
        start = end;
      }
    }
    return fill(parseJson(checkpoint.skeleton), checkpoint.lifts, (run) => texts.get(run)!);
  }

  /**
   * Reads the diffs back to the checkpoint. All are on earlier snapshots of the session, and the checkpoint's place is known, so one query
   * reads them all.
   */
  async #walk({ owner, seq }: SnapshotDocument, state: DiffState): Promise<StateChain> {
    const { database, snapshots } = this.#tenant;
    const query = snapshots.where('at', '>=', orderKey(owner, state.from)).where('at', '<', orderKey(owner, seq));
    const byName = new Map<string, { state: StoredState; seq: number }>();
    for (const document of await database.query(query)) {
      const { state, seq } = readSnapshotDocument(document.id, document);
      if (state.kind !== 'none') byName.set(state.name, { state, seq });
    }
    const newestFirst: DiffState[] = [];
    for (let at: DiffState = state; ;) {
      newestFirst.push(at);
      const before = byName.get(at.base);
      if (!before || before.state.kind === 'none')
        throw new Broken('the snapshot that its diff starts from is missing');
      if (before.state.kind === 'whole') {
        const whole = wholeChain(before.state, before.seq);
        return newestFirst.reduceRight((chain, { name, patch }) => extended(chain, name, patch), whole);
      }
      at = before.state;
    }
  }

  /** The content of shards, in the order of their names. */
  async #shards(names: readonly string[]): Promise<Buffer[]> {
    const { database, shards } = this.#tenant;
    const documents = await database.getAll(names.map((name) => shards.doc(name)));
    return documents.map((document, i) => {
      const data = document.get('data') as Buffer | undefined;
      if (!data) throw new Broken('a part of its state is missing');
      if (shardName(ownerOfShard(names[i]!), data) !== names[i]) throw new Broken('a part of its state is damaged');
      return data;
    });
  }
}

export function wholeChain({ name, base }: Extract<StoredState, { kind: 'whole' }>, seq: number): StateChain {
  return { base, from: seq, names: [name], patches: [] };
}
