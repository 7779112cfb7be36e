import { quote, unavailable } from '../../../src/errors.ts';
import { stringifyJson, type Json } from '../../../src/json/value.ts';
import { assertId, reserveSnapshotId } from '../../../src/snapshot/ids.ts';
import { refuseCycle } from '../../../src/snapshot/session-tree.ts';
import { copyMetadata, copyState } from '../../../src/snapshot/own-copy.ts';
import { overflow } from '../../../src/snapshot/retention.ts';
import {
  assertStateMayChange,
  revise,
  sessionOf,
  storedOf,
  type SessionSnapshot,
  type SessionSnapshotInput,
} from '../../../src/snapshot/snapshot.ts';
import type { SaveRequest } from '../../../src/store/base-session-store.ts';
import type { SessionDetails } from '../../../src/store/contract.ts';
import { assertExpectedLeaf, assertRequiredSnapshot } from '../../../src/store/choose-leaf.ts';
import { mergeDetails } from '../../../src/store/list/session-summary.ts';
import { unreadableSnapshot } from '../../../src/store/parts/unreadable.ts';
import { cut, type Cut } from '../../chain/cut.ts';
import { planDiff } from '../../chain/plan-diff.ts';
import type { KnownState } from '../../chain/known-state.ts';
import { CallerFailure } from '../disk/io-error.ts';
import type { HeldLock } from '../disk/lock-folder.ts';
import { hashOf } from '../format/names.ts';
import {
  changeBody,
  NO_STATE,
  nextTrail,
  packedChangeBody,
  sealBody,
  wholeBody,
  type SnapshotHead,
} from '../format/snapshot-file.ts';
import { timeNow } from '../format/save-log.ts';
import { locate } from '../read/find-snapshot.ts';
import { loadHeads } from '../read/lists.ts';
import { assertStored, handOutLoaded, readFile, readSnapshot, type LoadedSnapshot } from '../read/read-snapshot.ts';
import { sealedNames } from '../read/shards.ts';
import { reconcile } from '../remove/remove-snapshots.ts';
import { DamagedSnapshot, headUnlessDamaged, newNonce, type FileSession } from '../file-session.ts';
import type { IndexNode } from '../session-index.ts';
import type { TenantSessions } from '../tenant-sessions.ts';
import { carryOut, NAME_IS_TAKEN, type Commit } from './commit.ts';

/** How often a save may start again because another process creates or removes the same snapshot. */
const MOST_ATTEMPTS = 50;

/** Longer than the default, because a read without a cache opens a file for each run. Still short, because each checkpoint stores the last run again. */
const RUNS = { shortest: 64 * 1024, longest: 256 * 1024, distance: 64 * 1024 };

/** The snapshot was created or removed before the lock was taken. */
const RETRY = Symbol('retry');

type Outcome = string | null | typeof RETRY;

/** A state to be written, and its members in the head. */
type WrittenPart = Pick<Commit, 'body' | 'shards' | 'known' | 'cipher'> &
  Pick<SnapshotHead, 'state' | 'base' | 'isLifted'>;

/** One call of `saveSnapshot`. */
export class Save<S> {
  readonly #tenant: TenantSessions;
  readonly #request: SaveRequest<S>;
  readonly #isNewTenant: boolean;

  /** @param isNewTenant The tenant has no data yet. */
  constructor(tenant: TenantSessions, request: SaveRequest<S>, isNewTenant: boolean) {
    this.#tenant = tenant;
    this.#request = request;
    this.#isNewTenant = isNewTenant;
  }

  /** @returns The snapshot's id; `null`: the mutator skipped the write. */
  async run(): Promise<string | null> {
    const { snapshotId } = this.#request;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const answer = snapshotId === undefined ? this.#runMutator(undefined) : undefined;
      if (answer === null) return null;
      const id = snapshotId ?? answer?.snapshotId ?? reserveSnapshotId();
      assertId(id, 'snapshotId');
      const isFresh = snapshotId === undefined && answer?.snapshotId === undefined;
      const outcome = await this.#save(id, answer, isFresh);
      if (outcome !== RETRY) return outcome;
    }
    throw unavailable(
      `Snapshot ${quote(snapshotId ?? '')} was created and removed too often while it was saved. Try again.`,
    );
  }

  /** @param isFresh The id was just generated, so no other snapshot has it. */
  async #save(id: string, given: SessionSnapshotInput<S> | undefined, isFresh: boolean): Promise<Outcome> {
    const location = isFresh ? undefined : await locate(this.#tenant, id);
    if (location === 'no-session') return this.#lockSnapshot(id, (lock) => this.#rewriteSingle(lock, id));
    if (location?.index.tree.has(id)) return location.withLock((lock) => this.#rewrite(location, lock, id));
    if (location) {
      await reconcile(location, id);
      return RETRY;
    }
    const answer = given ?? this.#runMutator(undefined);
    if (answer === null) return null;
    const next = revise(id, undefined, answer, now);
    // Checked before folders are created, so that a refused first save creates none.
    if (this.#isNewTenant) check(next);
    const sessionId = sessionOf(next);
    if (sessionId === undefined) return this.#lockSnapshot(id, (lock) => this.#commitSingle(lock, next, undefined));
    const session = this.#tenant.session(sessionId);
    return session.withLock((lock) => this.#create(session, lock, next, isFresh));
  }

  #runMutator(current: SessionSnapshot<S> | undefined): SessionSnapshotInput<S> | null {
    try {
      return this.#request.mutator(current);
    } catch (error) {
      throw new CallerFailure(error);
    }
  }

  async #create(session: FileSession, lock: HeldLock, next: SessionSnapshot<S>, isFresh: boolean): Promise<Outcome> {
    const { snapshotId: id, parentId } = next;
    const { index } = session;
    const { folder } = this.#tenant;
    if (!isFresh && folder.store.fs.stat(folder.snapshot(id))) return RETRY;
    if (index.tree.has(id)) throw unreadableSnapshot(id, 'its file is missing', session.id);
    this.#assertConditions(session);
    if (index.tree.wouldCycle(id, parentId)) refuseCycle(id, parentId!);
    const parent = await this.#readParent(session, parentId);
    const diffBase = parent && (await this.#diffBaseOf(session, parent));
    const meta = copyMetadata(next);
    const state = copyState(next, diffBase?.known?.state ?? parent?.known?.state);
    const part = await this.#write(id, state, { session, diffBase });
    const removes = await this.#placesToRemove(session, next);
    const place = index.next;
    const line = { save: place, id, parent: parentId, at: timeNow(), ...(removes.length > 0 && { removes }) };
    const isSaved = await this.#carryOut(lock, session, part, {
      line,
      replaces: isFresh,
      head: {
        meta,
        session: session.id,
        incarnation: session.incarnation,
        place,
        write: 1,
        statuses: nextTrail([], 1, meta.status),
        details: await this.#details(session),
      },
    });
    if (isSaved) this.#tenant.rememberSnapshot(id, session);
    return isSaved ? id : RETRY;
  }

  /** The places of the snapshots that a new one removes, because of `maxPersistedChainLength`. */
  async #placesToRemove(session: FileSession, next: SessionSnapshot<S>): Promise<number[]> {
    const { maxPersistedChainLength: longest } = this.#tenant.shared;
    if (longest === undefined) return [];
    const { tree } = session.index;
    await loadHeads(
      session,
      [...tree.nodes()].filter(({ seen }) => !seen),
    );
    return overflow(tree, next, longest).map((id) => tree.mustGet(id).place);
  }

  async #rewrite(session: FileSession, lock: HeldLock, id: string): Promise<Outcome> {
    const current = await readSnapshot(this.#tenant, session, id);
    if (!current) return RETRY;
    await assertStored(session, current);
    const { head, known: before } = current;
    const { state: stored, base, isLifted } = head;
    const answer = this.#runMutator(handOutLoaded<S>(current));
    if (answer === null) return null;
    const next = revise(id, storedOf(head.meta, head.session), answer, now);
    this.#assertConditions(session);
    const meta = copyMetadata(next);
    const state = copyState(next, before?.state);
    const isSameState = state === before?.state;
    const { tree } = session.index;
    assertStateMayChange(
      head.meta,
      () => tree.hasChildren(id),
      () => isSameState,
    );
    const parent = isSameState ? undefined : await this.#readParent(session, meta.parentId).catch(() => undefined);
    const diffBase = parent && (await this.#diffBaseOf(session, parent));
    const part: WrittenPart = isSameState
      ? {
          state: stored,
          base,
          isLifted,
          ...(await this.#sameBody(session, tree.mustGet(id))),
          shards: [],
          known: before,
        }
      : await this.#write(id, state, { session, diffBase, before });
    const write = head.write + 1;
    const statuses = nextTrail(head.statuses, write, meta.status);
    const details = await this.#details(session);
    await this.#carryOut(lock, session, part, { replaces: true, head: { ...head, meta, write, statuses, details } });
    return id;
  }

  /** @returns `false` if another process has created a snapshot with this id. */
  async #carryOut(
    lock: HeldLock,
    session: FileSession | undefined,
    { body, shards, known, cipher, ...state }: WrittenPart,
    commit: Pick<Commit, 'line' | 'replaces'> & { readonly head: Omit<SnapshotHead, keyof WrittenPart> },
  ): Promise<boolean> {
    const { scopes } = this.#request;
    const head = { ...commit.head, base: undefined, isLifted: false, ...state };
    const outcome = await carryOut(this.#tenant, lock, {
      ...commit,
      head,
      body,
      shards,
      known,
      cipher,
      scopes,
      session,
    });
    return outcome !== NAME_IS_TAKEN;
  }

  #lockSnapshot(id: string, task: (lock: HeldLock) => Promise<Outcome>): Promise<Outcome> {
    const { folder } = this.#tenant;
    return folder.store.locks.run(hashOf(folder.tenant, id, 'snapshot'), `Snapshot ${quote(id)}`, task);
  }

  async #rewriteSingle(lock: HeldLock, id: string): Promise<Outcome> {
    const current = await readSnapshot(this.#tenant, 'no-session', id);
    // A session may have used the id since.
    if (!current || current.head.session !== null) return RETRY;
    const answer = this.#runMutator(handOutLoaded<S>(current));
    if (answer === null) return null;
    const next = revise(id, storedOf(current.head.meta, null), answer, now);
    return this.#commitSingle(lock, next, current);
  }

  async #commitSingle(lock: HeldLock, next: SessionSnapshot<S>, current: LoadedSnapshot | undefined): Promise<Outcome> {
    this.#assertConditions(undefined);
    const meta = copyMetadata(next);
    const state = copyState(next, undefined);
    const before = current?.head;
    const write = (before?.write ?? 0) + 1;
    const plain = state === undefined ? NO_STATE : wholeBody(uncut(state));
    const known = state === undefined ? undefined : { state, memory: new Map(), length: plain.length };
    const version = newNonce();
    const cipher = await this.#tenant.folder.sealer('snapshot', meta.snapshotId).cipher();
    const body = cipher ? await sealBody(plain, { id: meta.snapshotId, version }, cipher) : plain;
    const part = { state: { version, depth: 0 }, body, shards: [], known, cipher };
    const isSaved = await this.#carryOut(lock, undefined, part, {
      replaces: current !== undefined,
      head: {
        meta,
        session: null,
        incarnation: before?.incarnation ?? '',
        place: 0,
        write,
        statuses: nextTrail(before?.statuses ?? [], write, meta.status),
        records: before?.records,
      },
    });
    return isSaved ? meta.snapshotId : RETRY;
  }

  #assertConditions(session: FileSession | undefined): void {
    const { expectedLeafId, ifSnapshot } = this.#request;
    const tree = session?.index.tree;
    assertExpectedLeaf(expectedLeafId, session?.id, tree?.latestLeaf()?.snapshotId ?? null);
    assertRequiredSnapshot(ifSnapshot, session?.id, (one) => tree?.has(one) ?? false);
  }

  /** Reads the parent. Throws if it can't be read: a snapshot is never saved on a damaged parent. */
  async #readParent(session: FileSession, parentId: string | undefined): Promise<LoadedSnapshot | undefined> {
    const parent = parentId === undefined ? undefined : await readSnapshot(this.#tenant, session, parentId);
    if (parent) await assertStored(session, parent);
    return parent;
  }

  /** The base for a diff: `parent` or its nearest completed ancestor, whose state never changes. */
  async #diffBaseOf(session: FileSession, parent: LoadedSnapshot): Promise<LoadedSnapshot | undefined> {
    if (parent.head.meta.status === 'completed') return parent;
    const { tree } = session.index;
    for (const id of tree.ancestors(parent.head.meta.snapshotId)) {
      const node = tree.get(id);
      if (node && headUnlessDamaged(session, node)?.meta.status === 'completed') {
        return readSnapshot(this.#tenant, session, id).catch(() => undefined);
      }
    }
    return undefined;
  }

  /** @param before The snapshot's current state. */
  async #write(
    id: string,
    state: Json | undefined,
    {
      session,
      diffBase,
      before,
    }: { session: FileSession; diffBase: LoadedSnapshot | undefined; before?: KnownState | undefined },
  ): Promise<WrittenPart> {
    const version = newNonce();
    const cipher = await session.sealer.cipher();
    const sealed = async (body: string): Promise<string> => (cipher ? sealBody(body, { id, version }, cipher) : body);
    if (state === undefined) {
      return { state: { version, depth: 0 }, body: await sealed(NO_STATE), shards: [], known: undefined, cipher };
    }
    const origin = diffBase?.known && { state: diffBase.known.state, depth: diffBase.head.state.depth };
    const memory = before?.memory ?? diffBase?.known?.memory;
    const interval = this.#tenant.shared.checkpointInterval;
    const patch = planDiff(state, origin, interval);
    if (patch === undefined) {
      // With an interval of 1 each snapshot can be read from its file alone.
      const whole =
        interval === 1 ? uncut(state) : cut(state, memory, { runs: RUNS, names: cipher && sealedNames(cipher) });
      const body = await sealed(wholeBody(whole));
      const known = { state, memory: whole.memory, length: whole.length };
      const isLifted = whole.lifts.length > 0;
      return { state: { version, depth: 0 }, isLifted, body, shards: whole.shards, known, cipher };
    }
    const { head, known: from } = diffBase!;
    const known = { state, memory: memory ?? new Map(), length: from!.length + patch.length };
    const base = { id: head.meta.snapshotId, version: head.state.version };
    const depth = head.state.depth + 1;
    const body = cipher ? await sealed(changeBody(patch)) : await packedChangeBody(patch);
    return { state: { version, depth }, base, body, shards: [], known, cipher };
  }

  /** The second line of a file that is rewritten with the same state. An encrypted line is kept, under its key. */
  async #sameBody(session: FileSession, node: IndexNode): Promise<Pick<Commit, 'body' | 'cipher'>> {
    const { head, body, isSealed } = await readFile(session, node);
    const cipher = await session.sealer.cipher();
    if (isSealed || !cipher) return { body, cipher };
    return { body: await sealBody(body, { id: node.snapshotId, version: head.state.version }, cipher), cipher };
  }

  /** The session's details after the save. If their encrypted part is damaged, the others are kept. */
  async #details(session: FileSession): Promise<SessionDetails | undefined> {
    if (session.index.tree.size === 0) return this.#request.session;
    const head = session.headWithDetails();
    const opening = head && session.opened(head);
    const opened = await opening?.catch((error: unknown) => {
      if (error instanceof DamagedSnapshot) return head;
      throw error;
    });
    return mergeDetails(opened?.details, this.#request.session);
  }
}

/** A whole state, no part of which is in a shard. */
function uncut(state: Json): Cut {
  const skeleton = stringifyJson(state);
  return { skeleton, lifts: [], shards: [], memory: new Map(), length: skeleton.length };
}

function now(): string {
  return new Date().toISOString();
}

/** Refuses values that can't be saved. */
function check<S>(next: SessionSnapshot<S>): void {
  copyMetadata(next);
  copyState(next, undefined);
}
