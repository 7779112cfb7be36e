import type { QueryDocumentSnapshot } from '@google-cloud/firestore';
import { SessionTree } from '../../../src/snapshot/session-tree.ts';
import { largestUsage, usageOf } from '../../../src/store/list/session-summary.ts';
import { chunksOf } from '../../chain/chunks.ts';
import { PAGE, type DocumentWrite } from '../database.ts';
import { Stale } from '../failures.ts';
import { shardsOf } from '../format/checkpoint.ts';
import { writePointer, type Pointer, type PointerDocument } from '../format/pointer-document.ts';
import { HEAD_FIELDS, readHead, stateFields, type SnapshotHead } from '../format/snapshot-document.ts';
import { addUsage, type UsageCounts } from '../format/usage-counts.ts';
import { snapshotsOf } from '../read/owners.ts';
import type { SnapshotReader } from '../read/snapshot-reader.ts';
import { commitSave } from '../save/commit-save.ts';
import { NO_STATE, planCheckpoint } from '../save/plan-state.ts';
import type { TenantDatabase } from '../tenant-database.ts';

/** The data of a session for pruning: the metadata, the shards and the base of the diff of every snapshot. */
export class PrunedSession {
  readonly tree = new SessionTree();
  readonly #tenant: TenantDatabase;
  readonly #reader: SnapshotReader;
  readonly #documents = new Map<string, QueryDocumentSnapshot>();
  readonly #heads = new Map<string, SnapshotHead>();
  readonly #shards = new Map<string, readonly string[]>();
  #pointer: PointerDocument;

  private constructor(reader: SnapshotReader, pointer: PointerDocument) {
    this.#tenant = reader.tenant;
    this.#reader = reader;
    this.#pointer = pointer;
  }

  static async read(reader: SnapshotReader, pointer: PointerDocument): Promise<PrunedSession> {
    const session = new PrunedSession(reader, pointer);
    const snapshots = snapshotsOf(reader.tenant, pointer.owner).select(...HEAD_FIELDS, 'state', 'base', 'shards');
    for await (const document of reader.tenant.database.documents(snapshots)) {
      const head = readHead(document.id, document.data());
      const { snapshotId } = head.meta;
      session.tree.put(head.meta);
      session.#documents.set(snapshotId, document);
      session.#heads.set(snapshotId, head);
      session.#shards.set(snapshotId, (document.get('shards') as string[] | null) ?? []);
    }
    return session;
  }

  /** Finds the shards that the pointer needs. Call it before {@link shardsWithout}. */
  async readBase(): Promise<void> {
    const { head } = this.#pointer;
    if (head) await this.#reader.states.checkpoint(head.chain, this.#tenant.sealerOf(this.#pointer));
  }

  /** Names of the shards that are needed after the removal of these snapshots. */
  shardsWithout(removed: readonly string[]): ReadonlySet<string> {
    const gone = new Set(removed);
    const names = [...this.#shards].flatMap(([id, shards]) => (gone.has(id) ? [] : shards));
    const { shards = [], checkpoint } = this.#pointer.head?.chain.base ?? {};
    return new Set([...names, ...shards, ...(checkpoint ? shardsOf(checkpoint) : [])]);
  }

  /**
   * Removes snapshots. First, snapshots whose diffs need a removed one are rewritten as checkpoints.
   *
   * @throws `Stale` when the session was written meanwhile.
   */
  async remove(removed: readonly string[]): Promise<void> {
    await this.#rewriteDiffs(new Set(removed));
    for (const some of chunksOf(removed, PAGE)) await this.#removeSome(some);
  }

  async #rewriteDiffs(removed: ReadonlySet<string>): Promise<void> {
    const bases = new Set([...removed].map((id) => this.#documents.get(id)!.get('state') as string | null));
    const { states } = this.#reader;
    for (const [id, document] of this.#documents) {
      const base = document.get('base') as string | null;
      if (removed.has(id) || base === null || !bases.has(base)) continue;
      const snapshot = this.#reader.read(id, await this.#tenant.database.get(document.ref));
      if (snapshot?.state.kind !== 'diff') throw new Stale();
      const known = await states.stateOf(snapshot);
      const { owner, seq, ref, updateTime } = snapshot;
      const cipher = await this.#tenant.sealerOf(snapshot).cipher();
      const plan = await planCheckpoint(this.#tenant, known!.state, {
        memory: known!.memory,
        // The same name, because diffs of other snapshots may name this state as their base.
        place: { name: snapshot.state.name, owner, seq, cipher },
        packs: await states.packsOf(await states.chainOf(snapshot), snapshot),
      });
      const data = stateFields(plan.state);
      await commitSave(this.#tenant, [{ kind: 'update', ref, data, at: updateTime }], plan);
      this.#shards.set(id, data['shards'] as string[]);
    }
  }

  async #removeSome(snapshotIds: readonly string[]): Promise<void> {
    const refs = snapshotIds.map((id) => this.#documents.get(id)!.ref);
    for (const id of snapshotIds) {
      this.tree.remove(id);
      this.#heads.delete(id);
      this.#tenant.caches.snapshots.delete(this.#tenant.keyOf(id));
    }
    const pointer = { ...this.#pointer, ...this.#shape() };
    const writes: DocumentWrite[] = [
      writePointer(this.#tenant, this.#pointer, pointer, { isWritten: false }),
      ...refs.map((ref): DocumentWrite => ({ kind: 'delete', ref })),
    ];
    const [updateTime] = await commitSave(this.#tenant, writes, NO_STATE);
    this.#pointer = { ...pointer, updateTime: updateTime! };
    this.#tenant.rememberPointer(pointer.sessionId, this.#pointer);
  }

  /** The pointer's fields that depend on the remaining snapshots. */
  #shape(): Pick<Pointer, 'lineage' | 'createdAt' | 'usage' | 'summaryUsage'> {
    const leaves = this.tree.leaves().map(({ snapshotId: id, status }) => {
      const { seq } = this.#heads.get(id)!;
      return { id, seq, ...(status && { status }) };
    });
    const nodes = [...this.tree.nodes()];
    const parents = new Set(nodes.flatMap(({ parentId }) => (parentId === undefined ? [] : [parentId])));
    const missing = [...parents].filter((id) => !this.tree.has(id));
    const { nextSeq } = this.#pointer.lineage;
    const usages = [...this.#heads.values()].map((head) => usageOf(head.meta));
    const usage = usages.reduce<UsageCounts>((counts, one) => addUsage(counts, one.usage), {});
    const summaryUsage = largestUsage(usages.map((one) => one.summaryUsage));
    const lineage = { nextSeq, count: nodes.length, leaves, missing };
    return { lineage, createdAt: nodes[0]!.createdAt, usage, summaryUsage };
  }
}
