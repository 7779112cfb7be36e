import { GenkitError } from 'genkit';
import { applyPatch } from '../../src/json/apply.ts';
import type { JsonPatch } from '../../src/json/diff.ts';
import { parseJson } from '../../src/json/value.ts';
import { unreadableSnapshot } from '../../src/store/unreadable.ts';
import { materialise } from '../chain/materialise.ts';
import type { KnownState } from '../chain/written-state.ts';
import { parseCheckpoint, shardsOf, type Checkpoint } from './checkpoint.ts';
import { isTransportFailure } from './failures.ts';
import { FOREIGN_PATCH, foreignShards, type ForeignState } from './genkit-format.ts';
import { orderRange, ownerKey, ownerOfShard, shardName } from './names.ts';
import { unpackJson, unpackText } from './pack-json.ts';
import { readPointer, type PointerDocument } from './pointer-document.ts';
import { currentToken, readSnapshotDocument, type SnapshotDocument, type StoredState } from './snapshot-document.ts';
import { chainTo, endOf, extended, type StateChain, type StoredCheckpoint, type Token } from './state-chain.ts';
import type { CachedState, Tenant } from './tenant.ts';

/** A state as it was read; `chain` is absent where nothing may build on it. */
export interface LoadedState {
  readonly known: KnownState;
  readonly chain?: StateChain;
}

/** A state that builds on another snapshot's. */
export type DiffState = Extract<StoredState, { kind: 'diff' }>;

/** A piece of a state is missing or damaged. */
class Broken extends Error {}

/** Reads states of a tenant's snapshots. */
export class StateReader {
  readonly #tenant: Tenant;

  constructor(tenant: Tenant) {
    this.#tenant = tenant;
  }

  /**
   * The state of a snapshot; `undefined` when it has none.
   *
   * @param pointer The session's pointer, if it was just read: nearly always it leads to the state.
   * @throws `DATA_LOSS` when a piece of it is missing or damaged.
   */
  async stateOf(snapshot: SnapshotDocument, pointer?: PointerDocument): Promise<LoadedState | undefined> {
    const { state, meta } = snapshot;
    if (state.kind === 'none') return undefined;
    if (state.kind === 'foreign') return this.#explaining(meta.snapshotId, () => this.#foreignState(state));
    const cached = this.#tenant.caches.states.get(currentToken(state)!);
    if (cached) return cached;
    return this.#explaining(meta.snapshotId, async () => this.#load(await this.#chainOf(snapshot, pointer)));
  }

  /** The state that a chain leads to. Throws what {@link stateOf} throws. */
  stateAt(chain: StateChain, snapshotId: string): Promise<CachedState> {
    return this.#explaining(snapshotId, () => this.#load(chain));
  }

  /** The chain to the state that a diff of a snapshot starts from. */
  chainBefore(snapshot: SnapshotDocument, diff: DiffState): Promise<StateChain> {
    return this.#explaining(snapshot.meta.snapshotId, async () =>
      chainTo(await this.#chainOf({ ...snapshot, state: diff }, undefined), diff.parent.token)!,
    );
  }

  /** What a stored whole state is made of. */
  async checkpoint(base: StoredCheckpoint): Promise<Checkpoint> {
    base.checkpoint ??= parseCheckpoint(
      base.bytes ? await unpackText(base.bytes) : await this.#readText(base.shards ?? []),
    );
    return base.checkpoint;
  }

  async #explaining<T>(snapshotId: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Broken) throw unreadableSnapshot(snapshotId, error.message);
      if (error instanceof GenkitError || isTransportFailure(error)) throw error;
      throw unreadableSnapshot(snapshotId, 'what is stored of its state does not fit together');
    }
  }

  async #load(chain: StateChain): Promise<CachedState> {
    const { states } = this.#tenant.caches;
    const cached = states.get(endOf(chain));
    if (cached) return cached;
    let texts: Map<string, string> | undefined;
    const known = await materialise<Token>(endOf(chain), {
      known: (token) => states.get(token)?.known,
      read: async (token) => {
        const at = chain.tokens.indexOf(token);
        if (at > 0) {
          const patch = unpackJson(chain.patches[at - 1]!) as unknown as JsonPatch;
          return { kind: 'base', base: chain.tokens[at - 1]!, patches: [patch] };
        }
        const checkpoint = await this.checkpoint(chain.base);
        texts = await this.#readRuns(checkpoint);
        return { kind: 'whole', skeleton: parseJson(checkpoint.skeleton), lifts: checkpoint.lifts, patches: [] };
      },
      shards: async () => texts!,
    });
    const state = { known: known!, chain };
    this.#tenant.caches.remember(endOf(chain), state);
    return state;
  }

  async #chainOf(snapshot: SnapshotDocument, given: PointerDocument | undefined): Promise<StateChain> {
    const { state, sessionId } = snapshot;
    if (state.kind === 'whole') return state;
    const diff = state as DiffState;
    const parent = this.#tenant.caches.states.get(diff.parent.token);
    if (parent) return extended(parent.chain, diff.tokens, diff.patches);
    const head = (given ?? (await this.#readPointer(sessionId)))?.head?.chain;
    const known = chainTo(head, currentToken(diff)!);
    if (known) return known;
    const before = chainTo(head, diff.parent.token);
    return before ? extended(before, diff.tokens, diff.patches) : this.#walk(snapshot, diff);
  }

  async #readPointer(sessionId: string | undefined): Promise<PointerDocument | undefined> {
    if (sessionId === undefined) return undefined;
    const document = await this.#tenant.database.get(this.#tenant.pointerRef(sessionId));
    return document.data()?.['v'] === undefined ? undefined : readPointer(document, sessionId);
  }

  /** Goes back from snapshot to snapshot. They were saved one after the other, so one query has nearly all of them. */
  async #walk(snapshot: SnapshotDocument, state: DiffState): Promise<StateChain> {
    const { database, collections } = this.#tenant;
    const owner = ownerKey(snapshot.sessionId, snapshot.meta.snapshotId);
    const { from } = orderRange(owner, state.parent.from);
    const below = orderRange(owner, snapshot.seq).from;
    const found = await database.query(collections.snapshots.where('at', '>=', from).where('at', '<', below));
    const documents = new Map(found.map((document) => [document.ref.path, document]));
    const newestFirst: { tokens: readonly Token[]; patches: readonly Buffer[] }[] = [];
    for (let at: StoredState = state; ;) {
      if (at.kind === 'none' || at.kind === 'foreign') throw new Broken('what it builds on has no state');
      if (at.kind === 'whole') {
        const before = newestFirst.toReversed();
        return before.reduce<StateChain>((chain, part) => extended(chain, part.tokens, part.patches), at);
      }
      newestFirst.push(at);
      const { id, token } = at.parent;
      const ref = this.#tenant.snapshotRef(id);
      const document = documents.get(ref.path) ?? (await database.get(ref));
      if (!document.exists) throw new Broken('a snapshot that it builds on is missing');
      at = upTo(readSnapshotDocument(id, document), token);
    }
  }

  async #readRuns(checkpoint: Checkpoint): Promise<Map<string, string>> {
    const names = shardsOf(checkpoint);
    const shards = await this.#readShards(names);
    const texts = new Map<string, string>();
    for (const pack of checkpoint.packs) {
      const text = await unpackText(Buffer.concat(pack.shards.map((name) => shards.get(name)!)));
      let start = 0;
      for (const [index, run] of pack.runs.entries()) {
        const end = start + pack.lengths[index]!;
        texts.set(run, text.slice(start, end));
        start = end;
      }
    }
    return texts;
  }

  async #readText(names: readonly string[]): Promise<string> {
    const shards = await this.#readShards(names);
    return unpackText(Buffer.concat(names.map((name) => shards.get(name)!)));
  }

  async #readShards(names: readonly string[]): Promise<Map<string, Buffer>> {
    const unique = [...new Set(names)];
    const documents = await this.#tenant.database.getAll(unique.map((name) => this.#tenant.shardRef(name)));
    const shards = new Map<string, Buffer>();
    for (const [index, document] of documents.entries()) {
      const name = unique[index]!;
      const { data, life } = (document.data() ?? {}) as { data?: Buffer; life?: number };
      if (!data) throw new Broken('a piece of its state is missing');
      if (shardName(ownerOfShard(name) ?? '', data, life) !== name) throw new Broken('a piece of its state is damaged');
      shards.set(name, data);
    }
    return shards;
  }

  async #foreignState(state: ForeignState): Promise<LoadedState> {
    const { database, collections } = this.#tenant;
    const shards = foreignShards(state).map((name) => collections.shards.doc(name));
    const segment = state.segment.map((id) => collections.snapshots.doc(id));
    const documents = await database.getAll([...shards, ...segment]);
    if (!documents.every((document) => document.exists)) throw new Broken('a piece of its state is missing');
    const chunks = documents.slice(0, shards.length).map((document) => document.data()!['chunk'] as Buffer);
    let json = parseJson(Buffer.concat(chunks).toString('utf8'));
    for (const document of documents.slice(shards.length)) {
      json = applyPatch(json, (document.data()![FOREIGN_PATCH] ?? []) as JsonPatch);
    }
    return { known: { state: json, memory: new Map(), length: 0 } };
  }
}

/** The state of a snapshot that a token names, be it the current one or an earlier one. */
function upTo(snapshot: SnapshotDocument, token: Token): StoredState {
  for (const state of [snapshot.state, ...snapshot.old]) {
    if (state.kind !== 'whole' && state.kind !== 'diff') continue;
    const at = state.tokens.indexOf(token);
    if (at < 0) continue;
    const patches = state.patches.slice(0, state.kind === 'whole' ? at : at + 1);
    return { ...state, tokens: state.tokens.slice(0, at + 1), patches };
  }
  throw new Broken('the state that it builds on is gone');
}
