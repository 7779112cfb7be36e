// Express 5 passes errors of an async handler to the error handler.
// oxlint-disable oxc/no-async-endpoint-handlers
import { json, Router, type Request } from 'express';
import type { ActionContext } from 'genkit';
import { SessionService, type SnapshotMetadata, type SnapshotStore } from 'genkitx-agents';
import { NOTHING_KNOWN, type SupportState } from '../agent/state.ts';
import type { SupportAgent } from '../agent/support-agent.ts';
import type { BegunSession, SessionList, SnapshotList, SnapshotNode } from './api-types.ts';
import { contextOf, parameter, wrong } from './callers.ts';
import { NO_PREVIEW, Previews } from './previews.ts';

/**
 * The routes for a page of conversations besides the agent: lists of the caller's own conversations, directly from the store. Ids are query
 * parameters: `.` and `..` are valid session ids, and a browser removes them from a path.
 */
export function sessionsApi(support: SupportAgent, store: SnapshotStore<SupportState>): Router {
  const router = Router();
  const previews = new Previews(store);

  /** The latest snapshot of a conversation. Read with the agent, because the store does not check the owner. */
  const leafOf = async (sessionId: string, context: ActionContext): Promise<SnapshotMetadata | undefined> => {
    const leaf = await store.getSnapshotMetadata({ sessionId, context });
    if (!leaf) return undefined;
    return support.getSnapshot({ snapshotId: leaf.snapshotId }, { context, metadataOnly: true });
  };

  router.get('/sessions', async (request, response) => {
    const context = contextOf(response);
    const cursor = parameter(request, 'cursor');
    const own = { ownerId: userOf(context), context };
    const page = await store.listSessions({ ...own, limit: 50, ...(cursor !== undefined && { cursor }) });
    const leaves = await previews.of(
      page.items.map(({ leafId }) => leafId),
      context,
    );
    const items = page.items.map((session) => {
      const { title, isWaiting } = leaves.get(session.leafId) ?? NO_PREVIEW;
      return { ...session, title: session.title ?? title, isWaiting };
    });
    response.json({ ...page, items } satisfies SessionList);
  });

  router.post('/sessions', json(), async (request, response) => {
    const { sessionId } = (request.body ?? {}) as { sessionId?: unknown };
    if (typeof sessionId !== 'string') throw wrong('sessionId is missing: name the new conversation in the body.');
    const context = contextOf(response);
    // The first snapshot has no messages, so that a branch can also begin before the first message.
    if (!(await leafOf(sessionId, context))) {
      const owner = { appName: 'support', userId: userOf(context) };
      await new SessionService(store).createSession({ ...owner, sessionId, state: { ...NOTHING_KNOWN }, context });
    }
    const { items } = await store.listSnapshots({ sessionId, limit: 1, context });
    response.json({ snapshotId: items[0]!.snapshotId } satisfies BegunSession);
  });

  router.patch('/sessions', json(), async (request, response) => {
    const { title } = (request.body ?? {}) as { title?: unknown };
    if (typeof title !== 'string' || title.trim() === '') throw wrong('title is missing: give it in the body.');
    const context = contextOf(response);
    const leaf = await leafOf(mustGetSessionId(request), context);
    if (!leaf) throw wrong('There is no such conversation.');
    await store.saveSnapshot(leaf.snapshotId, (same) => same ?? null, { context, session: { title: title.trim() } });
    response.json({});
  });

  router.delete('/sessions', async (request, response) => {
    const sessionId = mustGetSessionId(request);
    const context = contextOf(response);
    const isThere = await leafOf(sessionId, context);
    response.json(isThere ? await store.deleteSession({ sessionId, context }) : { snapshots: 0, shards: 0 });
  });

  router.get('/snapshots', async (request, response) => {
    const context = contextOf(response);
    const sessionId = mustGetSessionId(request);
    const isThere = await leafOf(sessionId, context);
    const snapshots = isThere ? await allSnapshots(store, sessionId, context) : [];
    const found = await previews.of(snapshots.map(({ snapshotId }) => snapshotId).toReversed(), context);
    // Only some members: the error of a failed turn is for the log.
    const items = snapshots.map(({ snapshotId, parentId, createdAt, status, ...more }) => {
      // Not in the type of a snapshot, which is Genkit's.
      const { usage } = more as Pick<SnapshotNode, 'usage'>;
      const preview = found.get(snapshotId) ?? NO_PREVIEW;
      return { snapshotId, parentId, createdAt, status, preview, ...(usage && { usage }) };
    });
    response.json({ items } satisfies SnapshotList);
  });

  return router;
}

/** The user id of the caller. Every context of the server's context provider has one. */
function userOf({ auth }: ActionContext): string {
  return (auth as { uid: string }).uid;
}

async function allSnapshots(
  store: SnapshotStore<SupportState>,
  sessionId: string,
  context: ActionContext,
): Promise<SnapshotMetadata[]> {
  const all: SnapshotMetadata[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listSnapshots({ sessionId, limit: 500, cursor, context });
    all.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor);
  return all;
}

function mustGetSessionId(request: Request): string {
  const sessionId = parameter(request, 'sessionId');
  if (sessionId === undefined) throw wrong('sessionId is missing: name the conversation with ?sessionId=...');
  return sessionId;
}
