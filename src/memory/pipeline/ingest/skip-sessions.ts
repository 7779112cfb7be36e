import type { SnapshotStore } from '../../../store/contract.ts';
import { listAllSnapshots, sessionsOldestFirst } from '../../../store/list/items-of.ts';
import type { MemoryOperation } from '../../../store/memory/contract.ts';
import { memoryScopeKey } from '../../../store/memory/scope.ts';
import { targetOf } from '../../scopes.ts';
import { retryAborted } from '../commit/retry-aborted.ts';
import { readGate, sourceNoteKey } from '../guard/learning-state.ts';
import type { MemorySessions } from '../jobs/process-jobs.ts';
import { NOTES, type Pipeline, type ScopeWork } from '../pipeline.ts';
import { learnInputs } from './plan-jobs.ts';
import { sourceNoteValue, withRange } from './ranges.ts';

const MOST_ATTEMPTS = 20;

/** Marks the messages that the sessions of a scope have now as read, so that they are not learned later. */
export async function skipSessions(pipeline: Pipeline, work: ScopeWork, all: Iterable<MemorySessions>): Promise<void> {
  const { id, options } = work;
  const owner = id.scope === 'user' ? { ownerId: id.userId } : {};
  for (const { store, scopeOf } of all) {
    for await (const session of sessionsOldestFirst(store, { ...options, ...owner })) {
      const scope = scopeOf(session, options.context);
      if (scope && memoryScopeKey(targetOf(scope).id) === memoryScopeKey(id))
        await skipSession(pipeline, work, store, session.sessionId);
    }
  }
}

/** Marks the messages of all branches, because a user may continue any of them. */
async function skipSession(
  pipeline: Pipeline,
  work: ScopeWork,
  sessions: SnapshotStore,
  sessionId: string,
): Promise<void> {
  const { store, now } = pipeline;
  const { id, options } = work;
  const snapshots = await listAllSnapshots(sessions, { ...options, sessionId });
  const parents = new Set(snapshots.map(({ parentId }) => parentId));
  const source = { id: sessionId, at: new Date(now()).toISOString() };
  for (const { snapshotId } of snapshots.filter((one) => !parents.has(one.snapshotId))) {
    const messages = (await sessions.getSnapshot({ ...options, snapshotId }))?.state?.messages ?? [];
    await retryAborted(MOST_ATTEMPTS, async () => {
      const { revision, note } = await readGate(pipeline, work, sessionId);
      const unread = learnInputs('learn', source, messages, note);
      if (unread.length === 0) return;
      const value = sourceNoteValue(unread.reduce((read, { range }) => withRange(read, range), note));
      const operation: MemoryOperation = { op: 'note', kind: NOTES.pipeline, key: sourceNoteKey(sessionId), value };
      await store.commit(id, [operation], { ...options, expectedRevision: revision, now: now() });
    });
  }
}
