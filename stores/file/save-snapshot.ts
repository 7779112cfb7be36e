import { quote, unavailable } from '../../src/errors.ts';
import { type Json } from '../../src/json/value.ts';
import { copyMetadata, copyState } from '../../src/snapshot/own-copy.ts';
import { assertId, reserveSnapshotId } from '../../src/snapshot/ids.ts';
import { overflow } from '../../src/snapshot/retention.ts';
import {
  revise,
  storedOf,
  sessionOf,
  type SessionSnapshot,
  type SessionSnapshotInput,
} from '../../src/snapshot/snapshot.ts';
import type { ScopeChange, SnapshotMutator } from '../../src/store/contract.ts';
import { assertExpectedLeaf } from '../../src/store/lookup.ts';
import { refuseCycle } from '../../src/snapshot/lineage.ts';
import { planNew, planRewrite, type WritePlan } from '../chain/plan-write.ts';
import type { KnownState } from '../chain/written-state.ts';
import { Cleanup } from './cleanup.ts';
import { carryOut, type Commit } from './commit.ts';
import { MutatorFailure } from './io-error.ts';
import type { HeldLock } from './lock.ts';
import { assertLeafIsThere } from './find-snapshot.ts';
import { hashOf } from './names.ts';
import { isLost, takeInLost, takeInNewer } from './lost-snapshots.ts';
import { writePointer } from './pointer.ts';
import { assertStored, handOutLoaded, readSnapshot, type LoadedSnapshot } from './read-snapshot.ts';
import { readLive } from './read-version.ts';
import type { Session } from './session.ts';
import type { IndexNode } from './session-index.ts';
import { ScopeRecords } from './scope-records.ts';
import { stateTextOf, type StateText, type Version } from './snapshot-file.ts';
import type { StateCache } from './state-cache.ts';
import type { Tenant } from './tenant.ts';

/** What a save needs to know beside the snapshot. */
export interface SaveSettings {
  readonly cache: StateCache;
  readonly checkpointInterval: number;
  readonly maxPersistedChainLength: number | undefined;
}

/** The state that is saved, how it is written, and what was known before. */
interface NextState {
  readonly state: Json | undefined;
  readonly plan: WritePlan | undefined;
  readonly before: KnownState | undefined;
}

/** How often a save may start again because others create or remove the same snapshot. */
const MOST_ATTEMPTS = 50;

/** The snapshot came or went between looking and locking. */
const AGAIN = Symbol('again');

/** One call of `saveSnapshot`. */
export class Save<S> {
  readonly #tenant: Tenant;
  readonly #mutator: SnapshotMutator<S>;
  readonly #expectedLeafId: string | null | undefined;
  readonly #scopes: ReadonlyMap<string, ScopeChange>;
  readonly #settings: SaveSettings;

  constructor(
    tenant: Tenant,
    mutator: SnapshotMutator<S>,
    options: {
      expectedLeafId: string | null | undefined;
      scopes: ReadonlyMap<string, ScopeChange>;
      settings: SaveSettings;
    },
  ) {
    this.#tenant = tenant;
    this.#mutator = mutator;
    this.#expectedLeafId = options.expectedLeafId;
    this.#scopes = options.scopes;
    this.#settings = options.settings;
  }

  /** @returns The snapshot's id; `null`: the mutator skipped the write. */
  async run(snapshotId: string | undefined): Promise<string | null> {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const answer = snapshotId === undefined ? this.#ask(undefined) : undefined;
      if (answer === null) return null;
      const id = snapshotId ?? answer?.snapshotId ?? reserveSnapshotId();
      assertId(id, 'snapshotId');
      const saved = await this.#save(id, answer);
      if (saved !== AGAIN) return saved;
    }
    throw unavailable(
      `Snapshot ${quote(snapshotId ?? '')} was created and removed too often while it was saved. Try again.`,
    );
  }

  async #save(id: string, answer: SessionSnapshotInput<S> | undefined): Promise<string | null | typeof AGAIN> {
    const kind = this.#tenant.folder.kind();
    const home = await this.#tenant.homeOf(id);
    if (home) {
      if (kind !== 'own') await this.#tenant.prepare();
      return home.locked((lock) => this.#rewrite(home, lock, id));
    }
    if (kind !== 'own') {
      // A first save that is refused, or that the mutator skips, makes no folders.
      const trial = answer ?? ((await this.#tenant.locate(id)) ? undefined : this.#ask(undefined));
      if (trial === null) return null;
      if (trial) this.#check(id, trial);
      await this.#tenant.prepare();
    }
    // Two sessions must not both get a snapshot of this id.
    const { locks } = this.#tenant.folder.store;
    const name = hashOf(this.#tenant.folder.tenant, id, 'id');
    return locks.run(name, `Snapshot ${quote(id)}`, async () => {
      const known = await this.#tenant.locate(id);
      if (known) {
        await bringInLine(known, id);
        return AGAIN;
      }
      const first = answer ?? this.#ask(undefined);
      if (first === null) return null;
      const next = revise(id, undefined, first, () => new Date().toISOString());
      const target = this.#tenant.sessionFor(sessionOf(next) ?? null);
      return target.locked((lock) => this.#create(target, lock, next));
    });
  }

  /** Refuses an answer that can't be saved. */
  #check(id: string, answer: SessionSnapshotInput<S>): void {
    const next = revise(id, undefined, answer, () => new Date().toISOString());
    copyMetadata(next);
    copyState(next, undefined);
  }

  #ask(current: SessionSnapshot<S> | undefined): SessionSnapshotInput<S> | null {
    try {
      return this.#mutator(current);
    } catch (error) {
      throw new MutatorFailure(error);
    }
  }

  async #create(session: Session, lock: HeldLock, next: SessionSnapshot<S>): Promise<string | typeof AGAIN> {
    const { snapshotId: id, parentId } = next;
    const { tree } = session.index;
    if (tree.has(id)) return AGAIN;
    const sessionId = sessionOf(next) ?? null;
    this.#assertLeaf(session, sessionId ?? undefined);
    if (tree.wouldCycle(id, parentId)) refuseCycle(id, parentId!);
    const parentNode = parentId === undefined ? undefined : tree.get(parentId);
    const parent = parentNode && (await this.#readParent(session, parentNode));
    const meta = copyMetadata(next);
    const state = copyState(next, parent?.known?.state);
    const plan = state === undefined ? undefined : this.#planNew(state, parent);
    const { maxPersistedChainLength: longest } = this.#settings;
    const beyond = longest === undefined ? [] : overflow(tree, next, longest);
    const commit = {
      meta,
      sessionId,
      seq: session.index.newSeq(),
      rev: 1,
      stateRev: 1,
      state: textOf(plan, parent?.node),
      shards: plan?.kind === 'whole' ? plan.cut.shards : [],
      retire: beyond.map((ancestor) => tree.mustGet(ancestor).version.seq),
      preserve: undefined,
    };
    await this.#carryOut(session, lock, commit, { state, plan, before: parent?.known });
    this.#tenant.noteHome(id, session);
    writePointer(session, id, this.#settings.checkpointInterval);
    return id;
  }

  async #rewrite(session: Session, lock: HeldLock, id: string): Promise<string | null | typeof AGAIN> {
    const current = await this.#read(session, id);
    if (!current) return AGAIN;
    const { node, isForeign } = current;
    if (!isForeign) await assertStored(session, current, this.#settings.cache);
    const answer = this.#ask(handOutLoaded<S>(current));
    if (answer === null) return null;
    const sessionId = session.id ?? null;
    const next = revise(id, storedOf(current.meta, sessionId), answer, () => new Date().toISOString());
    this.#assertLeaf(session, sessionId ?? undefined);
    const meta = copyMetadata(next);
    const state = copyState(next, current.known?.state);
    const isSameState = state === current.known?.state && !isForeign;
    const file = isForeign ? undefined : await readLive(session, node.version);
    if (!isForeign && !file) {
      // Another writer, which knows no locks, has just rewritten it, or the log lost a rewrite: the mutator is to see that.
      this.#settings.cache.delete(session.keyOf(node.version));
      await takeInNewer(session, id);
      return AGAIN;
    }
    const written = file ? stateTextOf(file.written) : {};
    const plan = isSameState || state === undefined ? undefined : this.#planRewrite(state, current, written);
    const commit = {
      meta,
      sessionId,
      seq: node.version.seq,
      rev: node.rev + 1,
      stateRev: node.version.stateRev + (isSameState ? 0 : 1),
      state: isSameState ? written : rewritten(written, plan),
      shards: plan?.kind === 'whole' ? plan.cut.shards : [],
      retire: [],
      preserve: !isSameState && session.index.isBase(node) ? node.version : undefined,
    };
    await this.#carryOut(session, lock, commit, { state, plan, before: current.known });
    return id;
  }

  #assertLeaf(session: Session, sessionId: string | undefined): void {
    if (this.#expectedLeafId !== undefined && sessionId !== undefined) assertLeafIsThere(session, sessionId);
    assertExpectedLeaf(this.#expectedLeafId, sessionId, session.index.tree.latestLeaf()?.snapshotId ?? null);
  }

  /** What starts from a rewrite that the log lost has to find it there. */
  async #read(session: Session, id: string): Promise<LoadedSnapshot | undefined> {
    const loaded = await readSnapshot(session, id, this.#settings.cache);
    if (!loaded || loaded.node.rev === session.index.tree.get(id)?.rev) return loaded;
    await takeInNewer(session, id);
    return readSnapshot(session, id, this.#settings.cache);
  }

  /** A snapshot is never saved on top of one that can't be read. */
  async #readParent(session: Session, node: IndexNode): Promise<LoadedSnapshot | undefined> {
    const parent = await this.#read(session, node.snapshotId);
    if (parent && !parent.isForeign) await assertStored(session, parent, this.#settings.cache);
    return parent;
  }

  #planNew(state: Json, parent: LoadedSnapshot | undefined): WritePlan {
    const options = { interval: this.#settings.checkpointInterval, known: parent?.known?.memory };
    // Nothing starts from a file of another writer, which may rewrite or remove it.
    const isBase = parent?.known && !parent.isForeign;
    return planNew(
      state,
      isBase ? { state: parent.known.state, depth: parent.node.version.depth } : undefined,
      options,
    );
  }

  #planRewrite(state: Json, { known, node }: LoadedSnapshot, written: StateText): WritePlan {
    const options = { interval: this.#settings.checkpointInterval, known: known?.memory };
    const origin = known && (written.base || written.skeleton !== undefined) ? known.state : undefined;
    const { depth } = node.version;
    return origin === undefined
      ? planNew(state, undefined, options)
      : planRewrite(state, { state: origin, depth, patches: written.patches ?? [] }, options);
  }

  #carryOut(session: Session, lock: HeldLock, commit: Omit<Commit, 'drafts'>, next: NextState): Promise<void> {
    return new ScopeRecords(session.folder).changing(this.#scopes, (drafts) =>
      carryOut(session, lock, { ...commit, drafts }, (stamp) => this.#remember(session, commit, stamp, next)),
    );
  }

  /** Keeps the state for the next turn. */
  #remember(session: Session, version: Version, stamp: string, { state, plan, before }: NextState): void {
    if (state === undefined) return;
    const known: KnownState =
      plan?.kind === 'whole'
        ? { state, memory: plan.cut.memory, length: plan.cut.length }
        : { state, memory: before?.memory ?? new Map(), length: (before?.length ?? 0) + (plan?.patch.length ?? 0) };
    this.#settings.cache.set(session.keyOf(version), known, stamp);
  }
}

/** A file is there, but the session's log does not know it: it was cut short, a crash left the file, or another writer added it. */
async function bringInLine(session: Session, snapshotId: string): Promise<void> {
  const node = session.index.tree.get(snapshotId);
  if (!node) {
    await session.locked(async (lock) => {
      if (await isLost(session, snapshotId)) await takeInLost(session, lock);
      // Unless it was taken in.
      await new Cleanup(session).removeLeftover(snapshotId);
    });
  } else if (node.foreign !== undefined) await session.locked(() => session.adopt(node));
}

function textOf(plan: WritePlan | undefined, parent: IndexNode | undefined): StateText {
  if (plan?.kind === 'whole') return { skeleton: plan.cut.skeleton, lifts: plan.cut.lifts };
  return plan ? { base: parent!.version, patches: [plan.patch] } : {};
}

function rewritten(written: StateText, plan: WritePlan | undefined): StateText {
  return plan?.kind === 'appended'
    ? { ...written, patches: [...(written.patches ?? []), plan.patch] }
    : textOf(plan, undefined);
}
