import type { SnapshotStore } from '../../../store/contract.ts';
import { listAllSnapshots, sessionsOldestFirst } from '../../../store/list/items-of.ts';
import { memoryScopeKey } from '../../../store/memory/scope.ts';
import { targetOf, type ScopeTarget } from '../../scopes.ts';
import { commitPlan } from '../commit/commit-plan.ts';
import { readLearningState, sourceNoteOperation } from '../guard/learning-state.ts';
import type { MemorySessions } from '../jobs/process-jobs.ts';
import type { Pipeline } from '../pipeline.ts';
import { learnInputs } from './plan-jobs.ts';
import { withRange, type SourceNote } from './ranges.ts';
import { readSession } from './read-session.ts';

/** Marks the messages that the sessions of a scope have now as read, so that they are not learned later. */
export async function skipSessions(
  pipeline: Pipeline,
  work: ScopeTarget,
  all: Iterable<MemorySessions>,
): Promise<void> {
  const { id, options } = work;
  const owner = id.scope === 'user' ? { ownerId: id.userId } : {};
  for (const { store, scopeOf } of all) {
    for await (const session of sessionsOldestFirst(store, { ...options, ...owner })) {
      const scope = scopeOf(session, options.context);
      if (scope && memoryScopeKey(targetOf(scope).id) === memoryScopeKey(id))
        await skipBranches(pipeline, work, store, session.sessionId);
    }
  }
}

/** As {@link skipSessions}, for one session whose memories are forgotten. Does nothing if the scope has no such session. */
export async function skipSession(
  pipeline: Pipeline,
  work: ScopeTarget,
  stores: Iterable<SnapshotStore>,
  sessionId: string,
): Promise<void> {
  for (const store of stores)
    if (await readSession(store, work.scope, sessionId))
      await skipBranches(pipeline, work, store, sessionId, withoutLearned);
}

/** The note of a source whose memories are forgotten. */
function withoutLearned(note: SourceNote): SourceNote {
  return { ...note, ranges: note.ranges.map((range) => ({ ...range, isLearned: false })) };
}

/** Marks the messages of all branches, because a user may continue any of them. */
async function skipBranches(
  pipeline: Pipeline,
  work: ScopeTarget,
  sessions: SnapshotStore,
  sessionId: string,
  change = (note: SourceNote) => note,
): Promise<void> {
  const { options } = work;
  const snapshots = await listAllSnapshots(sessions, { ...options, sessionId });
  const parents = new Set(snapshots.map(({ parentId }) => parentId));
  const source = { id: sessionId, at: new Date(pipeline.now()).toISOString() };
  for (const { snapshotId } of snapshots.filter((one) => !parents.has(one.snapshotId))) {
    const messages = (await sessions.getSnapshot({ ...options, snapshotId }))?.state?.messages ?? [];
    await commitPlan(pipeline, work, async () => {
      const { revision, note } = await readLearningState(pipeline, work, sessionId);
      let next = change(note);
      // The last message has a range of its own: it may wait for an answer, which changes its hash.
      for (const end of [messages.length - 1, messages.length])
        for (const { range } of learnInputs('learn', source, messages, next, end)) next = withRange(next, range);
      return { revision, steps: next === note ? [] : [[sourceNoteOperation(sessionId, next)]] };
    });
  }
}
