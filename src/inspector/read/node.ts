import { logOf } from '../../session/log/session-log.ts';
import { runOf } from '../../agent/run-lease.ts';
import { isLeaseOver, leaseOf, runStateOf } from '../../snapshot/lease.ts';
import { sessionOf, type SnapshotMetadata } from '../../snapshot/snapshot.ts';
import { usageOf } from '../../store/list/session-summary.ts';
import type { ContextReport, RunFacts, TreeNode, UsageSum } from '../api.ts';
import { storedError } from '../http/answers.ts';

/** Enough of an error's first line to recognize the error. */
const MOST_ERROR_CHARACTERS = 300;

/** A snapshot as a node of the tree. */
export function nodeOf(snapshot: SnapshotMetadata): TreeNode {
  const { snapshotId, parentId, createdAt, updatedAt, finishReason, error } = snapshot;
  const sessionId = sessionOf(snapshot);
  const status = isLeaseOver(snapshot) ? 'expired' : snapshot.status;
  const messages = logOf(snapshot).messages;
  const report = reportOf(snapshot);
  const tokens = tokensOf(usageOf(snapshot).usage);
  const run = runFacts(snapshot);
  return {
    snapshotId,
    ...(sessionId !== undefined && { sessionId }),
    ...(parentId !== undefined && { parentId }),
    createdAt,
    ...(updatedAt !== undefined && { updatedAt }),
    ...(status !== undefined && { status }),
    ...(finishReason !== undefined && { finishReason }),
    ...(error && { error: firstLine(storedError(error).message) }),
    ...(report?.model !== undefined && { model: report.model }),
    ...(tokens !== undefined && { tokens }),
    ...(messages && { messages: { count: messages.count, added: messages.added } }),
    ...(report && { hasReport: true }),
    ...(run && { run }),
  };
}

/** The context report of the turn. */
export function reportOf(snapshot: SnapshotMetadata): ContextReport | undefined {
  return (snapshot as { contextReport?: ContextReport }).contextReport;
}

/** Input and output tokens together. */
export function tokensOf(usage: unknown): number | undefined {
  const { inputTokens, outputTokens } = (usage ?? {}) as UsageSum;
  return inputTokens === undefined && outputTokens === undefined ? undefined : (inputTokens ?? 0) + (outputTokens ?? 0);
}

/** The facts of the snapshot's background run; `undefined` for a turn in the foreground. */
export function runFacts(snapshot: SnapshotMetadata): RunFacts | undefined {
  const run = runOf(snapshot);
  const { heartbeatAt, snapshotId } = snapshot;
  if (!run && heartbeatAt === undefined) return undefined;
  const state = runStateOf(snapshot);
  const leaseMs = leaseOf(snapshot);
  const hasOwner = state !== 'released';
  return {
    id: run?.id ?? snapshotId,
    ...(state && { state }),
    ...(run && { agent: run.agent, generation: run.generation }),
    ...(run && hasOwner && { owner: run.owner }),
    ...(heartbeatAt !== undefined && hasOwner && { heartbeatAt }),
    ...(Number.isFinite(leaseMs) && { leaseMs }),
  };
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!.slice(0, MOST_ERROR_CHARACTERS);
}
