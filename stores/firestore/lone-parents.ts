import type { DocumentData, DocumentSnapshot } from '@google-cloud/firestore';
import { refuseCycle } from '../../src/snapshot/lineage.ts';
import type { SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import { expiryOf } from './commit-writes.ts';
import { commitTime, type DocumentWrite } from './database.ts';
import { FORMAT, type SnapshotHead } from './snapshot-document.ts';
import type { SnapshotReader } from './snapshot-reader.ts';
import type { Tenant } from './tenant.ts';

/**
 * Who names whom as parent among the snapshots without a session, which have no pointer that would tell. An id that is named has a document
 * for that alone, its mark: whoever names the id writes the mark, and the first save of the id goes by it. So of saves that would close a
 * circle together, the last finds that a mark has changed. Snapshots without a parent need none of this.
 */
export class LoneParents {
  readonly #tenant: Tenant;
  readonly #reader: SnapshotReader;

  constructor(tenant: Tenant, reader: SnapshotReader) {
    this.#tenant = tenant;
    this.#reader = reader;
  }

  /**
   * The writes that belong to the first save of a snapshot. They fail where somebody names the snapshot in the meantime, or saves the one at
   * which its ancestors end.
   *
   * @throws `FAILED_PRECONDITION` when the snapshot would become its own ancestor.
   */
  async place(head: SnapshotHead): Promise<DocumentWrite[]> {
    const { snapshotId, parentId } = head.meta;
    if (parentId === undefined) return [];
    if (parentId === snapshotId) refuseCycle(snapshotId, parentId);
    const { database } = this.#tenant;
    const own = await database.get(this.#tenant.parentRef(snapshotId), ['v']);
    // Nobody names it: it is nobody's ancestor.
    if (!own.exists) return [this.#change(own, head), ...this.renew(head)];
    const end = await this.#endOfPath(snapshotId, parentId);
    const guards = end ? [own, end] : [own];
    const isGuarded = end?.ref.isEqual(this.#tenant.parentRef(parentId));
    return [...guards.map((mark) => this.#change(mark, head)), ...(isGuarded ? [] : this.renew(head))];
  }

  /** The write of the parent's mark, which must not expire before a snapshot that names the parent. */
  renew(head: SnapshotHead): DocumentWrite[] {
    const { parentId } = head.meta;
    if (parentId === undefined) return [];
    return [{ kind: 'set', ref: this.#tenant.parentRef(parentId), data: this.#data(head) }];
  }

  /** @returns The mark of the ancestor that is not there; `undefined` when the path ends with one that has no parent. */
  async #endOfPath(snapshotId: string, parentId: string): Promise<DocumentSnapshot | undefined> {
    const seen = new Set<string>();
    for (let id = parentId; !seen.has(id);) {
      if (id === snapshotId) refuseCycle(snapshotId, parentId);
      seen.add(id);
      const [mark, document] = await this.#tenant.database.getAll([
        this.#tenant.parentRef(id),
        this.#tenant.snapshotRef(id),
      ]);
      const meta = this.#metaOf(id, document!);
      if (!meta) return mark;
      if (meta.parentId === undefined) return undefined;
      id = meta.parentId;
    }
    return undefined;
  }

  /** Of a snapshot that is there and has no session. */
  #metaOf(id: string, document: DocumentSnapshot): SnapshotMetadata | undefined {
    const snapshot = this.#reader.read(id, document);
    return snapshot?.sessionId === undefined ? snapshot?.meta : undefined;
  }

  /** Writes a mark if it is still as it was read. */
  #change(mark: DocumentSnapshot, head: SnapshotHead): DocumentWrite {
    const { ref, updateTime } = mark;
    const data = this.#data(head);
    return updateTime ? { kind: 'update', ref, data, at: updateTime } : { kind: 'create', ref, data };
  }

  #data(head: SnapshotHead): DocumentData {
    return { v: FORMAT, t: commitTime(), ...expiryOf(this.#tenant, head) };
  }
}
