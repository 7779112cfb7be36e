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
  const { messages } = logOf(snapshot);
  const report = reportOf(snapshot);
  return {
    snapshotId,
    sessionId: sessionOf(snapshot),
    parentId,
    createdAt,
    updatedAt,
    status: isLeaseOver(snapshot) ? 'expired' : snapshot.status,
    finishReason,
    error: error && firstLine(storedError(error).message),
    model: report?.model,
    tokens: tokensOf(usageOf(snapshot).usage),
    messages: messages && { count: messages.count, added: messages.added },
    hasReport: report && true,
    run: runFacts(snapshot),
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
  const isReleased = state === 'released';
  const leaseMs = leaseOf(snapshot);
  return {
    id: run?.id ?? snapshotId,
    agent: run?.agent,
    owner: isReleased ? undefined : run?.owner,
    generation: run?.generation,
    heartbeatAt: isReleased ? undefined : heartbeatAt,
    leaseMs: Number.isFinite(leaseMs) ? leaseMs : undefined,
    state,
  };
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!.slice(0, MOST_ERROR_CHARACTERS);
}
