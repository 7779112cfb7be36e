import type { Json } from '../../src/json/value.ts';
import { revise, storedOf, type SessionSnapshot } from '../../src/snapshot/snapshot.ts';
import { copyMetadata, copyState } from '../../src/snapshot/own-copy.ts';
import { beatSnapshot, commitSave, removalOf, rewriteSnapshot, writePointer } from './commit-writes.ts';
import { finishDeletion } from './delete-session.ts';
import { Stale } from './failures.ts';
import { adopt } from './genkit-session.ts';
import { lifetimeWith, type Pointer, type PointerDocument } from './pointer-document.ts';
import { assertFits, doubted, type SaveRequest, type SaveTools, type Trust } from './save-request.ts';
import { nextBy, nextRev, type SnapshotDocument, type SnapshotHead } from './snapshot-document.ts';
import { handOutLoaded } from './snapshot-reader.ts';
import { endOf } from './state-chain.ts';
import type { LoadedState } from './state-reader.ts';
import { NO_STATE, StateWriter, type StatePlan } from './state-writer.ts';

/** What a rewrite is going to write. */
interface Revision {
  readonly head: SnapshotHead;
  /** The changed state; the current one when it stays as it is. */
  readonly state: Json | undefined;
  readonly isSameState: boolean;
}

/** A save of a snapshot that is there. */
export class RewriteSnapshot<S> {
  readonly #save: SaveRequest<S>;
  readonly #tools: SaveTools;
  readonly #current: SnapshotDocument;

  /** @param current The snapshot as it was just read; the commit counts only while it is so. */
  constructor(save: SaveRequest<S>, current: SnapshotDocument) {
    this.#save = save;
    this.#tools = save.tools;
    this.#current = current;
  }

  async run(trust: Trust): Promise<string | null> {
    const { meta, sessionId } = this.#current;
    if (sessionId !== undefined) this.#save.hint = { sessionId };
    const loaded = await this.#load();
    const answer = this.#save.ask(handOutLoaded<S>({ snapshot: this.#current, state: loaded }));
    if (answer === null) return null;
    const next = revise(meta.snapshotId, storedOf(meta, sessionId), answer, () => new Date().toISOString());
    const revision = this.#revision(next, loaded);
    if (sessionId === undefined) {
      this.#save.assertLeaf(undefined, undefined);
      return this.#rewriteAlone(revision, loaded);
    }
    if (this.#isBeat(revision)) return this.#beat(revision, loaded);
    try {
      return await this.#save.inSession(sessionId, () => this.#rewrite(revision, loaded, sessionId, trust));
    } catch (error) {
      throw trust === 'cached' ? doubted(error) : error;
    }
  }

  async #load(): Promise<LoadedState | undefined> {
    const { reader } = this.#tools;
    try {
      return await reader.states.stateOf(this.#current);
    } catch (error) {
      // It may have been rewritten since it was read, and what it stood on removed.
      const now = await reader.document(this.#current.meta.snapshotId);
      throw now?.updateTime.isEqual(this.#current.updateTime) ? error : new Stale(error);
    }
  }

  #revision(next: SessionSnapshot<S>, loaded: LoadedState | undefined): Revision {
    const { sessionId, seq, state: stored } = this.#current;
    assertFits(next, this.#tools.tenant);
    const state = copyState(next, loaded?.known.state);
    const until = this.#until();
    const head = {
      meta: copyMetadata(next),
      sessionId,
      seq,
      rev: nextRev(this.#current),
      by: nextBy(this.#current, this.#save.nonce),
      ...(until !== undefined && { until }),
    };
    return { head, state, isSameState: state === loaded?.known.state && stored.kind !== 'foreign' };
  }

  /** When the snapshot counts as gone from now on; never earlier than before: others that live as long may stand on it. */
  #until(): number | undefined {
    const { expireAfterMs } = this.#tools.tenant.settings;
    const { until } = this.#current;
    return expireAfterMs === undefined || until === undefined ? undefined : Math.max(until, Date.now() + expireAfterMs);
  }

  /** Whether only the metadata changes: then the session's pointer has nothing to learn. */
  #isBeat({ head, isSameState }: Revision): boolean {
    if (!isSameState || head.meta.status !== this.#current.meta.status || this.#save.expectedLeafId !== undefined) {
      return false;
    }
    const { expireAfterMs } = this.#tools.tenant.settings;
    const { until } = this.#current;
    // The pointer must not expire before the snapshot does.
    return until === undefined || (expireAfterMs !== undefined && until > Date.now() + expireAfterMs / 2);
  }

  async #beat({ head }: Revision, loaded: LoadedState | undefined): Promise<string> {
    const { until } = this.#current;
    const beating = until === undefined ? head : { ...head, until };
    await this.#save.commit([beatSnapshot(this.#current, beating)], NO_STATE);
    this.#tell(beating, loaded);
    return head.meta.snapshotId;
  }

  async #rewriteAlone(revision: Revision, loaded: LoadedState | undefined): Promise<string> {
    const { tenant } = this.#tools;
    const plan = await this.#plan(revision, loaded, undefined);
    const { head } = revision;
    await this.#save.commit([rewriteSnapshot(tenant, this.#current, head, { state: plan.state, old: [] })], plan);
    this.#tell(head, this.#remember(plan));
    return head.meta.snapshotId;
  }

  async #rewrite(
    revision: Revision,
    loaded: LoadedState | undefined,
    sessionId: string,
    trust: Trust,
  ): Promise<string> {
    const { tenant } = this.#tools;
    const pointer = await this.#save.pointer(sessionId, trust);
    // Whoever removes the session may have died, and nothing is left to rewrite once it is gone.
    if (pointer?.isGone) await finishDeletion(tenant, pointer);
    if (!pointer || pointer.isGone) throw new Stale();
    const { expectedLeafId } = this.#save;
    if (expectedLeafId !== undefined) {
      this.#save.assertLeaf(sessionId, (await this.#tools.reader.surviving(pointer)).lineage);
    }
    if (pointer.isForeign) {
      await adopt(tenant, sessionId);
      await this.#takePlace(sessionId, pointer);
    }
    const { head } = revision;
    const id = head.meta.snapshotId;
    const plan = await this.#plan(revision, loaded, pointer);
    const { state: before, old } = this.#current;
    const isKept = plan.state === before;
    const isReplaced = !isKept && before.kind !== 'none' && !isAppended(plan, before);
    // Only a leaf is known to have no children that stand on it.
    const isLeaf = pointer.lineage.leaves.some((leaf) => leaf.id === id);
    const kept = isLeaf ? [] : isReplaced && before.kind !== 'foreign' ? [...old, before] : old;
    const written = this.#written(head, pointer, plan, isKept);
    const times = await this.#save.commit(
      [
        rewriteSnapshot(tenant, this.#current, head, { state: plan.state, old: kept, isLeaf }),
        writePointer(tenant, pointer, written),
      ],
      plan,
    );
    tenant.rememberPointer(sessionId, { ...written, ref: pointer.ref, updateTime: times[1]! });
    this.#tell(head, isKept ? loaded : this.#remember(plan));
    return id;
  }

  /** A snapshot of Genkit's own store has just got its place, so it is not any more as it was read. */
  async #takePlace(sessionId: string, pointer: PointerDocument): Promise<void> {
    const { tenant } = this.#tools;
    const { removals, createdAt, updatedAt, lineage } = pointer;
    const adopted = { sessionId, removals, createdAt, updatedAt, lineage, isGone: false };
    await commitSave(tenant, [writePointer(tenant, pointer, adopted)], NO_STATE);
    throw new Stale();
  }

  async #plan(
    { head, state, isSameState }: Revision,
    loaded: LoadedState | undefined,
    pointer: PointerDocument | undefined,
  ): Promise<StatePlan> {
    if (state === undefined) return NO_STATE;
    const { tenant, reader } = this.#tools;
    const writer = new StateWriter(tenant, reader.states);
    const { until, state: stored } = this.#current;
    const chain = loaded?.chain;
    // Where the snapshot lives longer now, what its state stands on may not.
    const canStay = head.until === until || !chain || (await writer.mayStandOn(chain, this.#current));
    if (isSameState && canStay) return { ...NO_STATE, state: stored };
    const { expireAfterMs = 0 } = tenant.settings;
    const isLonger = head.until !== undefined && head.until === until;
    const life = head.until === undefined ? undefined : isLonger ? head.until - Date.now() : expireAfterMs;
    return writer.planRewrite(state, { snapshot: this.#current, loaded, pointer, canAppend: canStay, life });
  }

  #written(head: SnapshotHead, before: PointerDocument, plan: StatePlan, isKept: boolean): Pointer {
    const { snapshotId, status, createdAt, updatedAt } = head.meta;
    const leaves = before.lineage.leaves.map((leaf) =>
      leaf.id === snapshotId
        ? { id: leaf.id, seq: leaf.seq, ...(status && { status }), ...(head.until && { until: head.until }) }
        : leaf,
    );
    const { head: headBefore, until: _until, completeUntil: _complete, isForeign: _isForeign, ...same } = before;
    const chain = plan.cached?.chain;
    const isHead = !isKept && headBefore?.id === snapshotId;
    const next = isHead ? chain && { id: snapshotId, chain } : headBefore;
    return {
      ...same,
      lineage: { ...before.lineage, leaves },
      updatedAt: updatedAt ?? createdAt,
      ...(next && { head: next }),
      ...lifetimeWith(before, head, removalOf(this.#tools.tenant, head)),
    };
  }

  #remember({ cached }: StatePlan): LoadedState | undefined {
    if (cached) this.#tools.tenant.caches.remember(endOf(cached.chain), cached);
    return cached;
  }

  #tell(head: SnapshotHead, state: LoadedState | undefined): void {
    const snapshot = { ...this.#current, ...head };
    const { snapshotId: id, status } = head.meta;
    const version = { id, rev: head.rev, createTime: snapshot.createTime, status };
    this.#tools.onSaved(version, () => handOutLoaded({ snapshot, state }));
  }
}

/** Whether a plan only adds to what was stored, so that earlier states are still there. */
function isAppended(plan: StatePlan, before: SnapshotDocument['state']): boolean {
  const { state } = plan;
  if (state.kind === 'none' || state.kind === 'foreign' || before.kind === 'none' || before.kind === 'foreign') {
    return false;
  }
  return state.tokens[0] === before.tokens[0];
}
