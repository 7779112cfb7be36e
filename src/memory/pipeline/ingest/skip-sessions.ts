import type { SnapshotStore } from '../../../store/contract.ts';
import { listAllSnapshots, sessionsOldestFirst } from '../../../store/list/items-of.ts';
import type { ScopeTarget } from '../../scopes.ts';
import { commitPlan } from '../commit/commit-plan.ts';
import { sourceNoteKey, sourceNoteOperation } from '../guard/learning-state.ts';
import { NOTES, type Pipeline } from '../pipeline.ts';
import { learnInputs } from './plan-jobs.ts';
import {
  hashInRange,
  parseSourceNote,
  rangePart,
  unreadRanges,
  withRange,
  type ReadRange,
  type SourceNote,
} from './ranges.ts';
import { readSession } from './read-session.ts';

/** The most sessions whose notes are changed at once. */
const MOST_AT_ONCE = 50;

/** All messages that a session has. */
interface SessionRanges {
  readonly sessionId: string;
  readonly ranges: readonly ReadRange[];
}

/** All messages that the sessions of a scope have now. */
export async function rangesOfScope(work: ScopeTarget, stores: Iterable<SnapshotStore>): Promise<SessionRanges[]> {
  const { id, options } = work;
  if (id.scope === 'session') return rangesOfSession(work, stores, id.sessionId);
  const owner = id.scope === 'user' ? { ownerId: id.userId } : {};
  const found: SessionRanges[] = [];
  for (const store of stores)
    for await (const { sessionId } of sessionsOldestFirst(store, { ...options, ...owner }))
      found.push(await rangesIn(store, work, sessionId));
  return found;
}

/** As {@link rangesOfScope}, for one session. Nothing, if the scope has no such session. */
export async function rangesOfSession(
  work: ScopeTarget,
  stores: Iterable<SnapshotStore>,
  sessionId: string,
): Promise<SessionRanges[]> {
  const found: SessionRanges[] = [];
  for (const store of stores)
    if (await readSession(store, work.scope, sessionId)) found.push(await rangesIn(store, work, sessionId));
  return found;
}

/** The messages of all branches, because a user may continue any of them. */
async function rangesIn(store: SnapshotStore, { options }: ScopeTarget, sessionId: string): Promise<SessionRanges> {
  const snapshots = await listAllSnapshots(store, { ...options, sessionId });
  const parents = new Set(snapshots.map(({ parentId }) => parentId));
  const source = { id: sessionId, at: '' };
  const ranges: ReadRange[] = [];
  for (const { snapshotId } of snapshots.filter((one) => !parents.has(one.snapshotId))) {
    const messages = (await store.getSnapshot({ ...options, snapshotId }))?.state?.messages ?? [];
    // The last message has a range of its own: it may wait for an answer, which changes its hash.
    for (const end of [messages.length - 1, messages.length])
      for (const { range } of learnInputs('learn', source, messages, { version: 1, ranges, seen: [] }, end))
        ranges.push(range);
  }
  return { sessionId, ranges };
}

/** Marks messages as read, so that they are not learned later. */
export async function markAsRead(
  pipeline: Pipeline,
  work: ScopeTarget,
  sessions: readonly SessionRanges[],
  change = (note: SourceNote) => note,
): Promise<void> {
  const { id, options } = work;
  for (let i = 0; i < sessions.length; i += MOST_AT_ONCE) {
    const some = sessions.slice(i, i + MOST_AT_ONCE);
    const keys = some.map(({ sessionId }) => sourceNoteKey(sessionId));
    await commitPlan(pipeline, work, async () => {
      const { revision, notes } = await pipeline.store.notes(id, NOTES.pipeline, { ...options, keys });
      const steps = some.flatMap(({ sessionId, ranges }, n) => {
        const note = parseSourceNote(notes.find(({ key }) => key === keys[n])?.value);
        const next = ranges.reduce(withUnread, change(note));
        return next === note ? [] : [[sourceNoteOperation(sessionId, next)]];
      });
      return { revision, steps };
    });
  }
}

/** Adds the part of a range that the note does not have. */
function withUnread(note: SourceNote, range: ReadRange): SourceNote {
  const unread = unreadRanges(range, (at) => hashInRange(range, at), note.ranges);
  return unread.reduce((next, part) => withRange(next, rangePart(range, part)), note);
}

/** The note of a source whose memories are forgotten. */
export function withoutLearned(note: SourceNote): SourceNote {
  return { ...note, ranges: note.ranges.map((range) => ({ ...range, isLearned: false })) };
}
