import { assertId } from '../../snapshot/ids.ts';
import type { SessionTree, SnapshotNode } from '../../snapshot/session-tree.ts';
import { checkOptions, isAny } from '../check-options.ts';
import type { SessionDetails, SessionSummary, UsageSum } from '../contract.ts';

/**
 * Returns the summary of a session for `listSessions`; `undefined` if the session has no snapshot.
 *
 * @param details Facts about the session that the store keeps in addition to the tree.
 */
export function summarize(
  sessionId: string,
  tree: SessionTree<SnapshotNode>,
  details: SessionDetails & { readonly usage?: UsageSum } = {},
): SessionSummary | undefined {
  const [first] = tree.nodes();
  const leaf = tree.latestLeaf();
  const last = tree.lastWritten();
  if (!first || !leaf || !last) return undefined;
  return {
    sessionId,
    leafId: leaf.snapshotId,
    leafCount: tree.leafCount,
    snapshotCount: tree.size,
    createdAt: first.createdAt,
    updatedAt: last.updatedAt ?? last.createdAt,
    ...(leaf.status !== undefined && { status: leaf.status }),
    ...details,
  };
}

const DETAILS = ['ownerId', 'agent', 'title'] as const;

/** Returns the details in a summary, in the form that a save accepts. */
export function detailsOf(summary: SessionDetails): SessionDetails {
  return Object.fromEntries(DETAILS.flatMap((name) => (summary[name] === undefined ? [] : [[name, summary[name]]])));
}

/**
 * Returns the details of a save without `undefined` members; `undefined` if there are none.
 *
 * @throws `INVALID_ARGUMENT` for an unknown member, and for a value that is not an id.
 */
export function checkDetails(details: SessionDetails | undefined): SessionDetails | undefined {
  checkOptions('session', details, { ownerId: isAny, agent: isAny, title: isAny });
  const checked = detailsOf(details ?? {});
  for (const name of DETAILS) if (checked[name] !== undefined) assertId(checked[name], name);
  return Object.keys(checked).length === 0 ? undefined : checked;
}

/**
 * Returns the details of a session after a save. The save's details replace the earlier ones, except the owner, which only the first save
 * sets.
 *
 * @param before The earlier details; `undefined` if there were none.
 */
export function mergeDetails(
  before: SessionDetails | undefined,
  saved: SessionDetails | undefined,
): SessionDetails | undefined {
  if (!saved) return before;
  const { ownerId: _, ...rest } = saved;
  return before || Object.keys(rest).length > 0 ? { ...before, ...rest } : undefined;
}

/** The usage of model calls in a snapshot's metadata. It is not checked: a caller may have saved any value. */
export interface SnapshotUsage {
  /** The usage of the turn's model calls. */
  readonly usage?: unknown;
  /** The usage of all summaries of the session so far. */
  readonly summaryUsage?: unknown;
}

/** Returns the usage of a session from the metadata of its snapshots; `undefined` if no snapshot has usage. */
export function usageOfSession(snapshots: readonly SnapshotUsage[]): UsageSum | undefined {
  const turns = sumUsage(snapshots.map(({ usage }) => usage));
  return sumUsage([turns, largestUsage(snapshots.map(({ summaryUsage }) => summaryUsage))]);
}

export function usageOf(meta: object): SnapshotUsage {
  const { usage, summaryUsage } = meta as SnapshotUsage;
  return { usage, summaryUsage };
}

/**
 * Returns the sum of each numeric member; `undefined` if there is none. Omits `custom`, because only the model knows how to add its
 * members.
 */
export function sumUsage(usages: readonly unknown[]): UsageSum | undefined {
  return combineUsage(usages, (a, b) => a + b);
}

/** Returns the maximum of each numeric member. For running totals, whose largest value is the latest. */
export function largestUsage(usages: readonly unknown[]): UsageSum | undefined {
  return combineUsage(usages, Math.max);
}

function combineUsage(usages: readonly unknown[], combine: (a: number, b: number) => number): UsageSum | undefined {
  const combined = new Map<string, number>();
  for (const usage of usages) {
    if (typeof usage !== 'object' || usage === null) continue;
    for (const [name, value] of Object.entries(usage)) {
      if (Number.isFinite(value)) combined.set(name, combine(combined.get(name) ?? 0, value));
    }
  }
  return combined.size > 0 ? Object.fromEntries(combined) : undefined;
}
