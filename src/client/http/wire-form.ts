/** Checks a value of a response. Only members that the client reads are checked: a server may send others. `null` counts as missing. */
import { isMembers } from '../../json/fault.ts';
import type { AgentOutput, SessionSnapshot, SnapshotStatus } from '../types.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isPart: Check = (value) =>
  hasForm(value, { text: isText, reasoning: isText, media: isMembers, toolRequest: isMembers });
const isMessage: Check = (value) =>
  hasForm(value, { content: isListOf(isPart) }) && (value as { content?: unknown }).content != null;
const isArtifact: Check = (value) => hasForm(value, { name: isText, parts: isListOf(isMembers) });
const isState: Check = (value) =>
  hasForm(value, { sessionId: isText, messages: isListOf(isMessage), artifacts: isListOf(isArtifact) });

/** Whether the result of a turn is the output of an agent. */
export function isOutput(value: unknown): value is AgentOutput {
  const ids = { sessionId: isText, snapshotId: isText, finishReason: isText };
  return hasForm(value, { ...ids, message: isMessage, artifacts: isListOf(isArtifact), state: isState });
}

/** Whether the result of a read is a snapshot. */
export function isSnapshot(value: unknown): value is SessionSnapshot {
  const texts = { snapshotId: isText, sessionId: isText, parentId: isText, status: isText, finishReason: isText };
  return hasForm(value, { ...texts, state: isState }) && (value as { snapshotId?: unknown }).snapshotId != null;
}

/** Whether the result of an abort has no status, or a valid one. */
export function isAborted(value: unknown): value is { status?: SnapshotStatus } {
  return hasForm(value, { status: isText });
}

function hasForm(value: unknown, members: Record<string, Check>): boolean {
  return (
    isMembers(value) && Object.entries(members).every(([name, check]) => value[name] == null || check(value[name]))
  );
}

function isListOf(isElement: Check): Check {
  return (list) => Array.isArray(list) && list.every(isElement);
}
