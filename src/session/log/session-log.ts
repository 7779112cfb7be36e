import type { MessageData } from 'genkit/beta';
import { countEqual } from '../../json/count-same.ts';
import { sessionOf, type SessionSnapshot, type SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { SessionOwner } from '../owner.ts';
import { contentOf, eventOfMessage, type EventRecord, type SessionEvent } from './session-event.ts';

/**
 * The snapshot's part of an event log, stored in its field `sessionLog`. All members are optional. Without an `event`, the snapshot's
 * events are the messages that its turn added.
 */
export interface SnapshotLog {
  readonly owner?: SessionOwner;
  /** The event that was appended with this snapshot. */
  readonly event?: EventRecord;
  /** The author of messages that are not the user's. Default: their role. */
  readonly author?: string;
  /** `count` messages in all: the first `kept` are the parent's, the last `added` are new. */
  readonly messages?: { readonly count: number; readonly kept: number; readonly added: number };
}

export function logOf(snapshot: SnapshotMetadata | SessionSnapshot): SnapshotLog {
  return (snapshot as { sessionLog?: SnapshotLog }).sessionLog ?? {};
}

/** The name of the agent that hides the snapshot from others; empty when it is not hidden. */
export function ownedByOf(snapshot: SnapshotMetadata | SessionSnapshot): { ownedBy?: string } {
  const { ownedBy } = snapshot as { ownedBy?: string };
  return ownedBy === undefined ? {} : { ownedBy };
}

/**
 * The message counts to store, if the snapshot's messages begin with the parent's (the same objects). Otherwise `undefined`; readers then
 * find the new messages by comparison.
 */
export function addedTo(
  before: readonly MessageData[],
  messages: readonly MessageData[],
): SnapshotLog['messages'] | undefined {
  const isAppended = before.length <= messages.length && before.every((message, i) => message === messages[i]);
  return isAppended
    ? { count: messages.length, kept: before.length, added: messages.length - before.length }
    : undefined;
}

/** Returns the snapshot's messages. */
export type ReadMessages = (snapshot: SnapshotMetadata) => Promise<readonly MessageData[]>;

/**
 * The events of a snapshot and its ancestors, the last one first. They are ordered by snapshot, and within a snapshot by message; clocks are
 * not used.
 *
 * Messages are read as rarely as possible: a later snapshot that begins with a snapshot's messages already provides them.
 *
 * @param line From the last snapshot to the first.
 */
export async function* eventsBackwards(
  line: AsyncIterable<SnapshotMetadata>,
  read: ReadMessages,
): AsyncGenerator<SessionEvent> {
  let known: readonly MessageData[] | undefined;
  for await (const [snapshot, parent] of withNext(line)) {
    const messages = known ?? (await read(snapshot));
    const before = parent && (await messagesBefore(snapshot, parent, messages, read));
    const added = logOf(snapshot).messages?.added ?? (before ? newMessages(before, messages) : messages.length);
    const old = messages.length - added;
    yield* eventsOf(snapshot, messages.slice(old)).toReversed();
    if (!parent) yield* lostEvents(snapshot, messages.slice(0, old)).toReversed();
    known = before;
  }
}

/** The parent's messages. Read only if the child has no counts of its new messages. */
async function messagesBefore(
  snapshot: SnapshotMetadata,
  parent: SnapshotMetadata,
  messages: readonly MessageData[],
  read: ReadMessages,
): Promise<readonly MessageData[] | undefined> {
  const own = logOf(snapshot).messages;
  if (!own) return read(parent);
  const count = logOf(parent).messages?.count;
  return count !== undefined && count <= own.kept ? messages.slice(0, count) : undefined;
}

/** The number of messages added after `before`. An agent may have dropped or summarized earlier ones; the last ones then still match. */
function newMessages(before: readonly MessageData[], messages: readonly MessageData[]): number {
  let most = countEqual(before, messages);
  if (most === before.length) return messages.length - most;
  let end = most;
  const latest = before.toReversed();
  for (let at = messages.length; at > 0; at--) {
    const common = countEqual(latest, messages.slice(0, at).toReversed());
    if (common > most) [most, end] = [common, at];
  }
  return messages.length - end;
}

function eventsOf(snapshot: SnapshotMetadata, added: readonly MessageData[]): SessionEvent[] {
  const { event, author } = logOf(snapshot);
  if (event) return [added[0] ? { ...event, content: contentOf(added[0]) } : { ...event }];
  return added.map((message, i) =>
    eventOfMessage(message, {
      id: `${snapshot.snapshotId}/${i}`,
      invocationId: snapshot.snapshotId,
      author: message.role === 'user' ? 'user' : (author ?? message.role),
      timestamp: timeOf(snapshot.createdAt),
    }),
  );
}

/** Events whose snapshots were pruned: only their messages remain. */
function lostEvents(snapshot: SnapshotMetadata, messages: readonly MessageData[]): SessionEvent[] {
  const invocationId = snapshot.parentId ?? snapshot.snapshotId;
  return messages.map((message, i) =>
    eventOfMessage(message, {
      id: `${invocationId}/before/${i}`,
      invocationId,
      author: message.role,
      timestamp: timeOf(snapshot.createdAt),
    }),
  );
}

/** In ms since 1970; 0 for an invalid date in foreign data. */
export function timeOf(date: string): number {
  return Date.parse(date) || 0;
}

async function* withNext<T>(items: AsyncIterable<T>): AsyncGenerator<[item: T, next: T | undefined]> {
  let item: T | undefined;
  for await (const next of items) {
    if (item !== undefined) yield [item, next];
    item = next;
  }
  if (item !== undefined) yield [item, undefined];
}

/** Reads an ancestor, when the line has come to it. */
export type ReadAncestor = (snapshotId: string) => Promise<SnapshotMetadata | undefined> | SnapshotMetadata | undefined;

/** A snapshot and its ancestors in its session. */
export async function* lineOf(last: SnapshotMetadata, read: ReadAncestor): AsyncGenerator<SnapshotMetadata> {
  const seen = new Set<string>();
  let next: SnapshotMetadata | undefined = last;
  while (next && sessionOf(next) === sessionOf(last) && !seen.has(next.snapshotId)) {
    yield next;
    seen.add(next.snapshotId);
    const { parentId }: SnapshotMetadata = next;
    next = parentId === undefined ? undefined : await read(parentId);
  }
}
