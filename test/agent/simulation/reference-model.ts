import type { SessionSnapshot } from 'genkit/beta';
import { runOf } from '../../../src/agent/run-lease.ts';
import { isTerminal } from '../../../src/snapshot/status.ts';
import type { Commit } from './backend.ts';

/**
 * The expected sessions, computed from the writes that reached the medium, by the rules of stores and runs alone.
 * Notes each write that breaks one.
 */
export class ReferenceModel {
  readonly faults: string[] = [];
  /** By id, in the order in which they were first saved. */
  readonly snapshots = new Map<string, SessionSnapshot>();
  /** Runs that were silent, or stopped, when another turn became the leaf. Their late snapshots are on another branch. */
  readonly passedOver = new Set<string>();
  /** The owner of a snapshot's turn, by snapshot and generation. */
  readonly #owners = new Map<string, string>();

  constructor(commits: readonly Commit[]) {
    for (const { after } of commits) this.#apply(after);
  }

  /** Those of a session, in order. */
  of(sessionId: string): SessionSnapshot[] {
    return [...this.snapshots.values()].filter((snapshot) => snapshot.sessionId === sessionId);
  }

  /** Among the snapshots without a child, the one that was first saved last. */
  leafOf(sessionId: string): SessionSnapshot | undefined {
    const all = this.of(sessionId);
    return all.findLast(({ snapshotId }) => !all.some(({ parentId }) => parentId === snapshotId));
  }

  /** From the root to the snapshot. */
  pathTo(snapshot: SessionSnapshot | undefined): SessionSnapshot[] {
    const path: SessionSnapshot[] = [];
    for (let at = snapshot; at && !path.includes(at); at = this.snapshots.get(at.parentId ?? '')) path.unshift(at);
    return path;
  }

  #apply(after: SessionSnapshot): void {
    const before = this.snapshots.get(after.snapshotId);
    this.#check(before, after);
    const leaf = before ? undefined : this.leafOf(after.sessionId!);
    const run = runOf(leaf);
    if (leaf?.status !== 'completed' && run && run.id !== runOf(after)?.id) this.passedOver.add(run.id);
    this.snapshots.set(after.snapshotId, { ...after, ...(before && { parentId: before.parentId }) });
  }

  #check(before: SessionSnapshot | undefined, after: SessionSnapshot): void {
    const { snapshotId, parentId, status } = after;
    const deny = (what: string) => this.faults.push(`snapshot ${snapshotId} ${what}`);
    if (parentId === snapshotId) deny('is its own parent');
    if (parentId !== undefined && this.snapshots.get(parentId)?.sessionId !== after.sessionId) {
      deny(`continues ${parentId}, which is not there`);
    }
    if (before && isTerminal(before.status)) {
      if (before.status !== 'aborted' || status !== 'aborted') deny(`was ${before.status} and is written as ${status}`);
    }
    this.#checkRun(before, after, deny);
  }

  #checkRun(before: SessionSnapshot | undefined, after: SessionSnapshot, deny: (what: string) => void): void {
    const run = runOf(after);
    if (!run || run.owner === '') return;
    const former = runOf(before);
    if (former && former.generation > run.generation)
      deny(`of generation ${former.generation} is written by ${run.generation}`);
    const right = `${after.snapshotId} ${run.generation}`;
    const owner = this.#owners.get(right) ?? run.owner;
    if (owner !== run.owner) deny(`has two owners in generation ${run.generation}`);
    this.#owners.set(right, owner);
  }
}
