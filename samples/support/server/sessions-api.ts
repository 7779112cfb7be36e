// Express 5 hands what an async handler throws to the error handler.
// oxlint-disable oxc/no-async-endpoint-handlers
import { json, Router, type Request } from 'express';
import type { ActionContext } from 'genkit';
import { reserveSnapshotId, type SnapshotMetadata, type SnapshotStore } from 'genkitx-agents';
import { NOTHING_KNOWN, type SupportState } from '../agent/state.ts';
import type { BegunSession, SessionList, SnapshotList, SnapshotNode } from './api-types.ts';
import { contextOf, parameter, wrong } from './callers.ts';
import { NO_PREVIEW, Previews } from './previews.ts';

/**
 * What a page of conversations needs besides the agent: lists, straight from the store. Ids are query parameters: `.` and `..` are good
 * names for a session, and a browser takes them out of a path.
 */
export function sessionsApi(store: SnapshotStore<SupportState>): Router {
  const router = Router();
  const previews = new Previews(store);

  router.get('/sessions', async (request, response) => {
    const context = contextOf(response);
    const cursor = parameter(request, 'cursor');
    const page = await store.listSessions({ limit: 50, context, ...(cursor !== undefined && { cursor }) });
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
    response.json({ snapshotId: await begin(store, sessionId, contextOf(response)) } satisfies BegunSession);
  });

  router.patch('/sessions', json(), async (request, response) => {
    const { title } = (request.body ?? {}) as { title?: unknown };
    if (typeof title !== 'string' || title.trim() === '') throw wrong('title is missing: give it in the body.');
    const context = contextOf(response);
    const leaf = await store.getSnapshotMetadata({ sessionId: mustGetSessionId(request), context });
    if (!leaf) throw wrong('There is no such conversation.');
    await store.saveSnapshot(leaf.snapshotId, (same) => same ?? null, { context, session: { title: title.trim() } });
    response.json({});
  });

  router.delete('/sessions', async (request, response) => {
    response.json(await store.deleteSession({ sessionId: mustGetSessionId(request), context: contextOf(response) }));
  });

  router.get('/snapshots', async (request, response) => {
    const context = contextOf(response);
    const snapshots = await allSnapshots(store, mustGetSessionId(request), context);
    const found = await previews.of(snapshots.map(({ snapshotId }) => snapshotId).toReversed(), context);
    // Not the whole of each: the error of a turn that failed is for the log.
    const items = snapshots.map(({ snapshotId, parentId, createdAt, status, ...more }) => {
      // What the turn's model calls used; the type of a snapshot is Genkit's, and does not know it.
      const { usage } = more as Pick<SnapshotNode, 'usage'>;
      const preview = found.get(snapshotId) ?? NO_PREVIEW;
      return { snapshotId, parentId, createdAt, status, preview, ...(usage && { usage }) };
    });
    response.json({ items } satisfies SnapshotList);
  });

  return router;
}

/**
 * Gives a conversation a first snapshot, in which nothing was said: then its first message too has a snapshot that another branch can begin
 * at. A conversation that is there already is left as it is.
 */
async function begin(store: SnapshotStore<SupportState>, sessionId: string, context: ActionContext): Promise<string> {
  const { items } = await store.listSnapshots({ sessionId, limit: 1, context });
  if (items[0]) return items[0].snapshotId;
  const now = new Date().toISOString();
  const state = { sessionId, messages: [], artifacts: [], custom: NOTHING_KNOWN };
  const first = { sessionId, createdAt: now, updatedAt: now, status: 'completed' as const, state };
  const snapshotId = reserveSnapshotId();
  const ownerId = (context.auth as { uid?: string } | undefined)?.uid;
  const session = store.capabilities.details ? { ownerId } : undefined;
  await store.saveSnapshot(snapshotId, () => first, { context, expectedLeafId: null, session });
  return snapshotId;
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
