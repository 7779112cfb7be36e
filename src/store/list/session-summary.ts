import { invalidArgument } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import type { SessionTree, SnapshotNode } from '../../snapshot/session-tree.ts';
import type { SessionDetails, SessionSummary, UsageSum } from '../contract.ts';

/**
 * The summary of a session for `listSessions`; `undefined` when the session has no snapshot.
 *
 * @param details Facts about the session that the store keeps beside the tree.
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

/** The details in a summary, as a save takes them. */
export function detailsOf(summary: SessionDetails): SessionDetails {
  return Object.fromEntries(DETAILS.flatMap((name) => (summary[name] === undefined ? [] : [[name, summary[name]]])));
}

/**
 * The details that a save names, without members that are `undefined`; `undefined` when it names none.
 *
 * @throws `INVALID_ARGUMENT` for an unknown member, and for a value that is no id.
 */
export function checkDetails(details: SessionDetails | undefined): SessionDetails | undefined {
  if (details === undefined) return undefined;
  if (typeof details !== 'object' || details === null) throw invalidArgument('session must be an object.');
  const checked: { -readonly [K in keyof SessionDetails]: SessionDetails[K] } = {};
  for (const [name, value] of Object.entries(details)) {
    const known = DETAILS.find((one) => one === name);
    if (!known) throw invalidArgument(`session has no member '${name}'; it has ${DETAILS.join(', ')}.`);
    if (value === undefined) continue;
    assertId(value, known);
    checked[known] = value;
  }
  return Object.keys(checked).length === 0 ? undefined : checked;
}

/**
 * The details of a session after a save: those of the save replace the earlier ones, except the owner, which only the first save sets.
 *
 * @param before The details that it had; `undefined` when it had none.
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
  /** The usage of all of the session's summaries until then. */
  readonly summaryUsage?: unknown;
}

/** The usage of a session by the metadata of its snapshots; `undefined` when none has any. */
export function usageOfSession(snapshots: readonly SnapshotUsage[]): UsageSum | undefined {
  const turns = sumUsage(snapshots.map(({ usage }) => usage));
  return sumUsage([turns, largestUsage(snapshots.map(({ summaryUsage }) => summaryUsage))]);
}

export function usageOf(meta: object): SnapshotUsage {
  const { usage, summaryUsage } = meta as SnapshotUsage;
  return { usage, summaryUsage };
}

/** The sum of each numeric member; `undefined` when there is none. Omits `custom`: only the model knows how to add its members. */
export function sumUsage(usages: readonly unknown[]): UsageSum | undefined {
  return combineUsage(usages, (a, b) => a + b);
}

/** The maximum of each numeric member. For running totals, of which the largest is the latest. */
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
