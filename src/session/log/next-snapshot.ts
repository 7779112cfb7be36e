import { GenkitError } from 'genkit';
import type { SessionSnapshotInput } from 'genkit/beta';
import { addressTo, quote, SessionConflictError } from '../../errors.ts';
import { assertId } from '../../snapshot/ids.ts';
import { runStateOf } from '../../snapshot/lease.ts';
import { toMessage, type SessionEvent } from './session-event.ts';
import type { SessionOwner } from '../owner.ts';
import { ownedByOf, type SnapshotLog } from './session-log.ts';
import type { SessionEnd } from './session-reader.ts';
import type { StateDraft } from '../state/state-draft.ts';
import type { SessionContent, SessionQuery } from './stored-session.ts';
import { isWaiting, waitsAfter, waitsOf, type Waits } from '../tool-requests.ts';

/** @throws `INVALID_ARGUMENT` */
export function checkOwner({ appName, userId }: SessionOwner): SessionOwner {
  assertId(appName, 'appName');
  assertId(userId, 'userId');
  return { appName, userId };
}

/** The snapshot after `end`, with an event; without an event the first snapshot of a session. */
export function snapshotOf(
  query: SessionQuery,
  next: {
    snapshotId: string;
    createdAt: string;
    draft: StateDraft;
    end: SessionEnd | undefined;
    event: SessionEvent | undefined;
  },
): SessionSnapshotInput {
  const { snapshotId, createdAt, draft, end, event } = next;
  const { sessionId, appName, userId } = query;
  const base = end?.base;
  const before = base?.state?.messages ?? [];
  const message = event && toMessage(event);
  const messages = message ? [...before, message] : before;
  const { content: _content, ...record } = event ?? {};
  const sessionLog: SnapshotLog = {
    owner: { appName, userId },
    messages: { count: messages.length, kept: before.length, added: messages.length - before.length },
    ...(event && { event: record as SessionEvent }),
  };
  const { custom: _custom, ...state } = base?.state ?? { artifacts: [] };
  const custom = draft.plain === undefined ? {} : { custom: draft.plain };
  const input: SessionSnapshotInput & { sessionLog: SnapshotLog } & Waits = {
    snapshotId,
    sessionId,
    ...(base && { parentId: base.snapshotId }),
    createdAt,
    updatedAt: createdAt,
    status: 'completed',
    // A session hidden by an agent stays hidden in all later snapshots.
    ...(end && ownedByOf(base ?? end.leaf)),
    state: { ...state, sessionId, messages, ...custom },
    sessionLog,
    // A tool request that waits still waits after an event without content.
    ...(!message && isWaiting(before.at(-1)) && base?.finishReason && { finishReason: base.finishReason }),
    ...waitsAfter({ snapshotId: base?.snapshotId, messages: before, ...waitsOf(base) }, snapshotId, messages),
  };
  return input;
}

/** @throws `ABORTED` when the session has changed since, or a turn is running. */
export function assertCurrent(sessionId: string, content: SessionContent, { leaf, base }: SessionEnd): void {
  if (runStateOf(leaf) === 'running') {
    throw aborted(`A turn of session ${quote(sessionId)} is running in the background. Wait for it, or abort it.`);
  }
  const [expected, actual] =
    leaf.snapshotId === content.leafId ? [content.baseId, base?.snapshotId] : [content.leafId, leaf.snapshotId];
  if (expected !== actual) {
    throw new SessionConflictError({ sessionId, expectedLeafId: expected ?? null, actualLeafId: actual ?? null });
  }
}

function aborted(message: string): GenkitError {
  return addressTo('caller', new GenkitError({ status: 'ABORTED', message }));
}
