import type { MessageData } from 'genkit/beta';
import { jsonEqual } from '../../json/value.ts';
import { sessionOf, type SessionSnapshot, type SnapshotMetadata } from '../../snapshot/snapshot.ts';
import type { SessionStoreOptions, SnapshotStore } from '../../store/contract.ts';
import { contentOf, eventOfMessage, type EventRecord, type SessionEvent } from './session-event.ts';

/** Whose a session is. */
export interface SessionOwner {
  /** The app, any id; its sessions share the `app:` keys. */
  readonly appName: string;
  /** The user of that app, any id; their sessions share the `user:` keys. */
  readonly userId: string;
}

/**
 * What a snapshot says of itself as a part of an event log, in its field `sessionLog`. All of it may be missing: of an agent's turn the
 * events are what it added to the messages.
 */
export interface SnapshotLog {
  readonly owner?: SessionOwner;
  /** The event that was appended with this snapshot. */
  readonly event?: EventRecord;
  /** Who speaks in the messages that are not the user's; unless told their role. */
  readonly author?: string;
  /** How many messages it has, how many of its parent's it begins with, and how many at its end are new. */
  readonly messages?: { readonly count: number; readonly kept: number; readonly added: number };
}

/** The snapshot's part in the log. */
export function logOf(snapshot: SnapshotMetadata | SessionSnapshot): SnapshotLog {
  return (snapshot as { sessionLog?: SnapshotLog }).sessionLog ?? {};
}

/** The agent that keeps the snapshot to itself, in the field that says so; nothing when it is everybody's. */
export function keeperOf(snapshot: SnapshotMetadata | SessionSnapshot): { ownedBy?: string } {
  const { ownedBy } = snapshot as { ownedBy?: string };
  return ownedBy === undefined ? {} : { ownedBy };
}

/** Genkit's own runs in the background say nothing of their lease, which is this, in ms. */
const GENKIT_LEASE_MS = 60_000;

/**
 * Whether the snapshot is of a turn in the background that may be under way still: its last heartbeat is not older than the lease that its
 * run names. A run that names none is under way until it is settled.
 */
export function mayBeRunning(snapshot: SessionSnapshot): boolean {
  const { status, heartbeatAt } = snapshot;
  if (status !== 'pending' || heartbeatAt === undefined) return false;
  const { backgroundRun: run } = snapshot as { backgroundRun?: { leaseMs?: number } };
  const leaseMs = run ? (run.leaseMs ?? Infinity) : GENKIT_LEASE_MS;
  return Date.now() - timeOf(heartbeatAt) <= leaseMs;
}

/**
 * What a snapshot is to say of its messages, whose parent's they begin with; `undefined` when they do not, or are not the very same objects:
 * which ones are new is found by comparing them then.
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

/** Answers the snapshot's messages. */
export type ReadMessages = (snapshot: SnapshotMetadata) => Promise<readonly MessageData[]>;

/**
 * The events of a line of snapshots, the last one first. Events are in the order of the snapshots, those of one snapshot in the order of its
 * messages; clocks play no part.
 *
 * Messages are read as rarely as possible: those of a snapshot are there already when a later one began with them.
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

/** The parent's messages, as far as they have to be known: read where the child does not say which of its own they are. */
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

/** How many of the messages came after those of `before`. An agent may have dropped or summed up earlier ones; the last ones then are there still. */
function newMessages(before: readonly MessageData[], messages: readonly MessageData[]): number {
  let most = commonLength(before, messages);
  if (most === before.length) return messages.length - most;
  let end = most;
  const latest = before.toReversed();
  for (let at = messages.length; at > 0; at--) {
    const common = commonLength(latest, messages.slice(0, at).toReversed());
    if (common > most) [most, end] = [common, at];
  }
  return messages.length - end;
}

/** How many messages are the same from the beginning. */
function commonLength(one: readonly MessageData[], other: readonly MessageData[]): number {
  let length = 0;
  while (length < one.length && length < other.length && jsonEqual(one[length], other[length])) length++;
  return length;
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

/** What was said before the first snapshot that is left: the messages are all that is known of it. */
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

/** In ms since 1970; 0 for what other writers left and is no time. */
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

/** A snapshot and its ancestors in its session, each read when it is asked for. */
export async function* lineOf(
  store: SnapshotStore,
  last: SnapshotMetadata,
  options: SessionStoreOptions,
): AsyncGenerator<SnapshotMetadata> {
  const seen = new Set<string>();
  let next: SnapshotMetadata | undefined = last;
  while (next && sessionOf(next) === sessionOf(last) && !seen.has(next.snapshotId)) {
    yield next;
    seen.add(next.snapshotId);
    const { parentId }: SnapshotMetadata = next;
    next = parentId === undefined ? undefined : await store.getSnapshotMetadata({ ...options, snapshotId: parentId });
  }
}

/** As {@link lineOf}, but all of the session is read at once: for those who will want all of it. */
export async function* wholeLineOf(
  store: SnapshotStore,
  last: SnapshotMetadata,
  options: SessionStoreOptions & { sessionId: string },
): AsyncGenerator<SnapshotMetadata> {
  const listed = await listAllSnapshots(store, options);
  const all = new Map(listed.map((snapshot) => [snapshot.snapshotId, snapshot]));
  let next: SnapshotMetadata | undefined = last;
  while (next) {
    yield next;
    all.delete(next.snapshotId);
    next = next.parentId === undefined ? undefined : all.get(next.parentId);
  }
}

/** The metadata of all snapshots of a session, in the order in which they were first saved. */
export async function listAllSnapshots(
  store: Pick<SnapshotStore, 'listSnapshots'>,
  options: SessionStoreOptions & { sessionId: string },
): Promise<SnapshotMetadata[]> {
  const all: SnapshotMetadata[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listSnapshots({ ...options, limit: 1000, ...(cursor !== undefined && { cursor }) });
    all.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}
