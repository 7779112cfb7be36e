import type { SnapshotStore } from '../../../store/contract.ts';
import { listAllSnapshots, sessionsOldestFirst } from '../../../store/list/items-of.ts';
import type { BackfillOptions } from '../../backfill.ts';
import { targetOf, type ScopeTarget } from '../../scopes.ts';
import { commitPlan } from '../records/commit-plan.ts';
import { sourceNoteKey, sourceNoteOperation } from '../records/learning-state.ts';
import { NOTES, type Pipeline } from '../pipeline.ts';
import { learnInputs } from './plan-jobs.ts';
import { parseSourceNote, UNREAD, unreadParts, withRange, type ReadRange, type SourceNote } from '../records/ranges.ts';
import { readSession } from './read-session.ts';

/** The most sessions whose notes are changed at once. */
const MOST_AT_ONCE = 50;

/** All messages by session. Several store objects may contain the same session, because agents may share a store. */
type SessionRanges = ReadonlyMap<string, readonly ReadRange[]>;

/** The sessions of a store with agents of a manager. */
export interface MemorySessions extends Pick<BackfillOptions, 'store' | 'scopeOf'> {
  /** The names of these agents. Other agents may share the store. */
  readonly agents: ReadonlySet<string | undefined>;
}

/** The stores of all agents with the memory, and the sessions of those agents that learn. */
interface SessionPlaces {
  readonly stores: ReadonlySet<SnapshotStore>;
  readonly sessions: ReadonlySet<MemorySessions>;
}

/**
 * Returns the ranges of all messages in the sessions of a scope.
 *
 * @param options.sessionId Reads only this session. Default: all.
 * @param options.onError Called with the error of a session or a store that can't be read; the others are still read. Default: the error is
 *   thrown.
 */
export async function rangesOf(
  target: ScopeTarget,
  { stores, sessions }: SessionPlaces,
  { sessionId: only, onError }: { sessionId?: string; onError?: (error: unknown) => void } = {},
): Promise<SessionRanges> {
  const { id } = target;
  const found = new Map<string, readonly ReadRange[]>();
  const add = (sessionId: string, ranges: readonly ReadRange[]) =>
    found.set(sessionId, [...(found.get(sessionId) ?? []), ...ranges]);
  const one = only ?? (id.scope === 'session' ? id.sessionId : undefined);
  // Only for an app the sessions depend on the agents: they are those from which an agent learns into the app's scope.
  const isOfAnyAgent = one !== undefined || id.scope === 'user';
  for (const place of isOfAnyAgent ? Array.from(stores, (store) => ({ store })) : sessions) {
    try {
      for await (const sessionId of sessionIdsAt(place, target, one))
        await rangesIn(place.store, target, sessionId).then((ranges) => add(sessionId, ranges), onError);
    } catch (error) {
      if (!onError) throw error;
      onError(error);
    }
  }
  return found;
}

/**
 * The sessions of a store that belong to a scope: the sessions of a user, the session itself, or the sessions that agents learn into an app
 * scope.
 */
async function* sessionIdsAt(
  { store, scopeOf }: Pick<MemorySessions, 'store'> & Partial<MemorySessions>,
  { scope, id, key, options }: ScopeTarget,
  only: string | undefined,
): AsyncGenerator<string> {
  if (only !== undefined) {
    if (await readSession(store, scope, only)) yield only;
    return;
  }
  const owned = id.scope === 'user' ? { ...options, ownerId: id.userId } : options;
  for await (const session of sessionsOldestFirst(store, owned)) {
    const into = scopeOf?.(session, options.context);
    if (!scopeOf || (into && targetOf(into).key === key)) yield session.sessionId;
  }
}

/** Returns the messages of all branches, because a user may continue any branch. */
async function rangesIn(store: SnapshotStore, { options }: ScopeTarget, sessionId: string): Promise<ReadRange[]> {
  const snapshots = await listAllSnapshots(store, { ...options, sessionId });
  const parents = new Set(snapshots.map(({ parentId }) => parentId));
  const source = { id: sessionId, at: '' };
  const ranges: ReadRange[] = [];
  for (const { snapshotId } of snapshots.filter((one) => !parents.has(one.snapshotId))) {
    const messages = (await store.getSnapshot({ ...options, snapshotId }))?.state?.messages ?? [];
    // The last message has its own range, because an awaited tool output would change its hash.
    for (const end of [messages.length - 1, messages.length])
      for (const { range } of learnInputs('learn', source, messages, { ...UNREAD, ranges }, end)) ranges.push(range);
  }
  return ranges;
}

/** Marks messages as read, so that nothing is learned from them later. */
export async function markAsRead(
  pipeline: Pipeline,
  target: ScopeTarget,
  sessions: SessionRanges,
  change = (note: SourceNote) => note,
): Promise<void> {
  const { id, options } = target;
  const all = [...sessions];
  for (let i = 0; i < all.length; i += MOST_AT_ONCE) {
    const some = all.slice(i, i + MOST_AT_ONCE);
    const keys = some.map(([sessionId]) => sourceNoteKey(sessionId));
    await commitPlan(pipeline, target, async () => {
      const { revision, notes } = await pipeline.store.notes(id, NOTES.pipeline, { ...options, keys });
      const steps = some.flatMap(([sessionId, ranges], n) => {
        const note = parseSourceNote(notes.find(({ key }) => key === keys[n])?.value);
        const next = ranges.reduce(withUnread, change(note));
        return next === note ? [] : [[sourceNoteOperation(sessionId, next)]];
      });
      return { revision, steps };
    });
  }
}

/** Adds the part of a range that is missing in the note. */
function withUnread(note: SourceNote, range: ReadRange): SourceNote {
  return unreadParts(range, note.ranges).reduce(withRange, note);
}

/** Returns the note of a source whose memories are forgotten. */
export function withoutLearned(note: SourceNote): SourceNote {
  return { ...note, ranges: note.ranges.map((range) => ({ ...range, isLearned: false })) };
}
