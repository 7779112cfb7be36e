/**
 * The contract in the simplest code: one tenant's snapshots in a list, which is searched from end to end. It shares no code with the
 * stores, so that the two agree only if both are right.
 */
import assert from 'node:assert/strict';
import type {
  PrunePolicy,
  SessionDetails,
  SessionSnapshot,
  SessionSnapshotInput,
  SessionSummary,
  SnapshotMetadata,
  SnapshotMutator,
  UsageSum,
} from '../../../src/store/contract.ts';

/** The snapshot's id, `null` if the mutator skipped, or the allowed statuses of the refusal. */
export type SaveOutcome = { id: string | null } | { refused: string[] };

interface Row {
  snapshot: SessionSnapshot;
  session: string | undefined;
}

export class ReferenceModel {
  /** In the order of the first saves. */
  #rows: Row[] = [];
  /** The time of each session's last write; the last written session at the end. */
  #lastWrites: { session: string; at: string }[] = [];
  readonly #details = new Map<string, SessionDetails>();

  get(id: string): SessionSnapshot | undefined {
    return structuredClone(this.#row(id)?.snapshot);
  }

  /** The leaf that was first saved last. */
  leaf(session: string): SessionSnapshot | undefined {
    return structuredClone(this.#leaves(session).at(-1)?.snapshot);
  }

  save(
    id: string,
    mutator: SnapshotMutator,
    expectedLeafId?: string | null,
    details: SessionDetails = {},
  ): SaveOutcome {
    const row = this.#row(id);
    const answer = mutator(structuredClone(row?.snapshot));
    if (answer === null) return { id: null };
    const session = row ? row.session : sessionIn(answer);
    const refused = [];
    if (row && sessionIn(answer) !== undefined && sessionIn(answer) !== session) refused.push('FAILED_PRECONDITION');
    if (row && isFinal(row.snapshot) && answer.status !== row.snapshot.status) refused.push('FAILED_PRECONDITION');
    if (row && this.#changesAnchor(row, answer)) refused.push('FAILED_PRECONDITION');
    if (!row && session !== undefined && this.#isAncestor(id, answer.parentId, session))
      refused.push('FAILED_PRECONDITION');
    if (expectedLeafId !== undefined && expectedLeafId !== this.#leafId(session)) refused.push('ABORTED');
    if (refused.length > 0) return { refused };
    if (session !== undefined) {
      const known = this.#rowsOf(session).length > 0 ? this.#details.get(session) : undefined;
      this.#details.set(session, { ...known, ...details, ...(known && { ownerId: known.ownerId }) });
    }
    this.#write(id, session, row, answer);
    return { id };
  }

  list(session: string): SnapshotMetadata[] {
    return this.#rowsOf(session).map(({ snapshot: { state: _state, ...metadata } }) => structuredClone(metadata));
  }

  /** The sessions, last written first. */
  sessions(): SessionSummary[] {
    const existing = this.#lastWrites.filter(({ session }) => this.#rowsOf(session).length > 0);
    return existing.toReversed().map(({ session, at }) => this.#summary(session, at));
  }

  /** Returns the number of removed snapshots. */
  deleteSession(session: string): number {
    const before = this.#rows.length;
    this.#rows = this.#rows.filter((row) => row.session !== session);
    return before - this.#rows.length;
  }

  prune(policy: PrunePolicy, now: number, dryRun: boolean): { sessions: number; snapshots: number } {
    const doomed = new Set<Row>();
    let sessions = 0;
    for (const { sessionId } of this.sessions()) {
      const rows = this.#rowsOf(sessionId);
      const isWhole = policy.idleMs !== undefined && rows.every((row) => isIdle(row, now - policy.idleMs!));
      if (isWhole) sessions++;
      for (const row of isWhole ? rows : this.#pruned(sessionId, policy, now)) doomed.add(row);
    }
    if (!dryRun) this.#rows = this.#rows.filter((row) => !doomed.has(row));
    return { sessions, snapshots: doomed.size };
  }

  clone(): ReferenceModel {
    const copy = new ReferenceModel();
    copy.#rows = structuredClone(this.#rows);
    copy.#lastWrites = structuredClone(this.#lastWrites);
    for (const [session, details] of this.#details) copy.#details.set(session, details);
    return copy;
  }

  #row(id: string | undefined): Row | undefined {
    return this.#rows.find((row) => row.snapshot.snapshotId === id);
  }

  #rowsOf(session: string | undefined): Row[] {
    return this.#rows.filter((row) => session !== undefined && row.session === session);
  }

  #children(row: Row): Row[] {
    return this.#rowsOf(row.session).filter((other) => other.snapshot.parentId === row.snapshot.snapshotId);
  }

  #leaves(session: string | undefined): Row[] {
    return this.#rowsOf(session).filter((row) => this.#children(row).length === 0);
  }

  #leafId(session: string | undefined): string | null {
    return this.#leaves(session).at(-1)?.snapshot.snapshotId ?? null;
  }

  /** Whether a rewrite would change the state of a completed snapshot that has children. */
  #changesAnchor(row: Row, answer: SessionSnapshotInput): boolean {
    if (row.snapshot.status !== 'completed' || row.session === undefined) return false;
    return this.#children(row).length > 0 && !isSame(row.snapshot.state, answer.state);
  }

  /** Whether `id` would be among the ancestors of a snapshot with this parent. */
  #isAncestor(id: string, parentId: string | undefined, session: string | undefined): boolean {
    if (parentId === undefined || parentId === id) return parentId === id;
    const parent = this.#rows.find((row) => row.session === session && row.snapshot.snapshotId === parentId);
    return this.#isAncestor(id, parent?.snapshot.parentId, session);
  }

  #write(id: string, session: string | undefined, row: Row | undefined, answer: SessionSnapshotInput): void {
    const snapshot: SessionSnapshot = { ...structuredClone(answer), snapshotId: id };
    if (row) {
      snapshot.createdAt = row.snapshot.createdAt;
      delete snapshot.parentId;
      if (row.snapshot.parentId !== undefined) snapshot.parentId = row.snapshot.parentId;
      const isUnsaid = row.snapshot.sessionId !== undefined || sessionIn(snapshot) === undefined;
      if (session !== undefined && isUnsaid) snapshot.sessionId = session;
      row.snapshot = snapshot;
    } else {
      this.#rows.push({ snapshot, session });
    }
    if (session === undefined) return;
    this.#lastWrites = this.#lastWrites.filter((other) => other.session !== session);
    this.#lastWrites.push({ session, at: snapshot.updatedAt ?? snapshot.createdAt });
  }

  #summary(sessionId: string, updatedAt: string): SessionSummary {
    const rows = this.#rowsOf(sessionId);
    const leaf = this.#leaves(sessionId).at(-1)!.snapshot;
    const usage: UsageSum = {};
    const summaries: UsageSum = {};
    for (const { snapshot } of rows) {
      const { usage: ofTurn, summaryUsage } = snapshot as { usage?: object; summaryUsage?: object };
      for (const [name, value] of numbersOf(ofTurn)) usage[name] = (usage[name] ?? 0) + value;
      for (const [name, value] of numbersOf(summaryUsage)) summaries[name] = Math.max(summaries[name] ?? 0, value);
    }
    for (const [name, value] of numbersOf(summaries)) usage[name] = (usage[name] ?? 0) + value;
    const details = Object.entries(this.#details.get(sessionId) ?? {}).filter(([, value]) => value !== undefined);
    return {
      sessionId,
      leafId: leaf.snapshotId,
      leafCount: this.#leaves(sessionId).length,
      snapshotCount: rows.length,
      createdAt: rows[0]!.snapshot.createdAt,
      updatedAt,
      ...(leaf.status !== undefined && { status: leaf.status }),
      ...Object.fromEntries(details),
      ...(Object.keys(usage).length > 0 && { usage }),
    };
  }

  #pruned(session: string, policy: PrunePolicy, now: number): Set<Row> {
    const leaves = this.#leaves(session);
    const near = new Set(leaves.flatMap((leaf) => this.#path(leaf).slice(0, policy.maxChainLength)));
    const isOld = (row: Row): boolean =>
      policy.maxAgeMs !== undefined &&
      Date.parse(row.snapshot.createdAt) < now - policy.maxAgeMs &&
      !leaves.includes(row);
    const doomed = new Set(
      this.#rowsOf(session).filter((row) => row.snapshot.status !== 'pending' && (!near.has(row) || isOld(row))),
    );
    for (const leaf of leaves) for (const row of this.#continuation(leaf)) doomed.delete(row);
    // A remaining snapshot that is not a leaf must not become a leaf.
    for (let orphaned: Row | undefined; (orphaned = this.#wouldBeLeaf(session, doomed));) {
      doomed.delete(this.#children(orphaned).at(-1)!);
    }
    return doomed;
  }

  /**
   * For a leaf that is not completed: the leaf, the nearest completed ancestor (from which the session continues), and the snapshots
   * between.
   */
  #continuation(leaf: Row): Row[] {
    if (leaf.snapshot.status === undefined || leaf.snapshot.status === 'completed') return [];
    const path = this.#path(leaf);
    const completed = path.findIndex((row) => row.snapshot.status === 'completed');
    return completed === -1 ? path : path.slice(0, completed + 1);
  }

  #wouldBeLeaf(session: string, doomed: Set<Row>): Row | undefined {
    return this.#rowsOf(session).find((row) => {
      const children = this.#children(row);
      return !doomed.has(row) && children.length > 0 && children.every((child) => doomed.has(child));
    });
  }

  /** The row, its parent, and so on. */
  #path(row: Row): Row[] {
    const parent = this.#rowsOf(row.session).find((other) => other.snapshot.snapshotId === row.snapshot.parentId);
    return parent ? [row, ...this.#path(parent)] : [row];
  }
}

function sessionIn(snapshot: SessionSnapshotInput): string | undefined {
  return snapshot.sessionId ?? snapshot.state?.sessionId;
}

function isFinal(snapshot: SessionSnapshot): boolean {
  return ['completed', 'failed', 'aborted'].includes(snapshot.status ?? '');
}

function isIdle({ snapshot }: Row, before: number): boolean {
  return snapshot.status !== 'pending' && Date.parse(snapshot.updatedAt ?? snapshot.createdAt) < before;
}

/** Whether two states are equal; members that are `undefined` do not count. */
function isSame(one: unknown, other: unknown): boolean {
  try {
    assert.deepStrictEqual(JSON.parse(JSON.stringify(one ?? null)), JSON.parse(JSON.stringify(other ?? null)));
    return true;
  } catch {
    return false;
  }
}

function numbersOf(usage: object | undefined): [string, number][] {
  return Object.entries(usage ?? {}).filter(([, value]) => typeof value === 'number');
}
