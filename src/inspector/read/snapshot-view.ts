import { jsonBytes } from '../../json/size.ts';
import { logOf } from '../../session/log/session-log.ts';
import { usageOf } from '../../store/list/session-summary.ts';
import type { SnapshotView, UsageSum } from '../api.ts';
import { storedError } from '../http/answers.ts';
import type { Params } from '../http/params.ts';
import type { ReadSnapshot, Source } from '../source.ts';
import { nodeOf, reportOf } from './node.ts';

/** One snapshot with all of its data. One request. */
export async function readSnapshotView(source: Source, params: Params): Promise<SnapshotView> {
  return viewOf(await source.mustRead(lookupOf(params)));
}

/** The snapshot that a request names. {@link Source.read} refuses a lookup with both ids or none. */
export function lookupOf(params: Params): { snapshotId?: string; sessionId?: string } {
  const [snapshotId, sessionId] = [params.text('snapshotId'), params.text('sessionId')];
  return { ...(snapshotId !== undefined && { snapshotId }), ...(sessionId !== undefined && { sessionId }) };
}

/** @param messagesFrom The position of the first message that the page does not have. */
export function viewOf(snapshot: ReadSnapshot, messagesFrom = 0): SnapshotView {
  const { state, error } = snapshot;
  return {
    node: nodeOf(snapshot),
    messages: (state?.messages ?? []).slice(messagesFrom),
    messagesFrom,
    agent: logOf(snapshot).author,
    custom: state?.custom,
    artifacts: state?.artifacts ?? [],
    error: error && storedError(error),
    contextReport: reportOf(snapshot),
    usage: usageOf(snapshot).usage as UsageSum | undefined,
    more: moreOf(snapshot),
    stateBytes: state ? jsonBytes(state) : 0,
  };
}

const SHOWN_ELSEWHERE = new Set([
  'snapshotId',
  'sessionId',
  'parentId',
  'createdAt',
  'updatedAt',
  'status',
  'state',
  'error',
  'contextReport',
  'usage',
]);

function moreOf(snapshot: ReadSnapshot): { [member: string]: unknown } {
  return Object.fromEntries(Object.entries(snapshot).filter(([name]) => !SHOWN_ELSEWHERE.has(name)));
}
