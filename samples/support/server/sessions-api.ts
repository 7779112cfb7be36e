// Express 5 hands what an async handler throws to the error handler.
// oxlint-disable oxc/no-async-endpoint-handlers
import { Router } from 'express';
import type { SnapshotStore, SnapshotMetadata } from 'genkitx-agents';
import type { SupportState } from '../agent/state.ts';
import type { SessionList, SnapshotList } from './api-types.ts';
import { Previews } from './previews.ts';

/** What a page of conversations needs besides the agent: lists, straight from the store. */
export function sessionsApi(store: SnapshotStore<SupportState>): Router {
  const router = Router();
  const previews = new Previews(store);

  router.get('/sessions', async (request, response) => {
    const { cursor } = request.query;
    const page = await store.listSessions({ limit: 50, ...(typeof cursor === 'string' && { cursor }) });
    const items = page.items.map(async (session) => ({ ...session, title: (await previews.of(session.leafId)).title }));
    response.json({ ...page, items: await Promise.all(items) } satisfies SessionList);
  });

  router.get('/sessions/:sessionId/snapshots', async (request, response) => {
    const items: SnapshotList['items'] = [];
    for await (const snapshot of allSnapshots(store, request.params.sessionId)) {
      // Not the whole of it: the error of a turn that failed is for the log.
      const { snapshotId, parentId, createdAt, status } = snapshot;
      items.push({ snapshotId, parentId, createdAt, status, preview: await previews.of(snapshotId) });
    }
    response.json({ items } satisfies SnapshotList);
  });

  router.delete('/sessions/:sessionId', async (request, response) => {
    response.json(await store.deleteSession({ sessionId: request.params.sessionId }));
  });

  return router;
}

async function* allSnapshots(store: SnapshotStore<SupportState>, sessionId: string): AsyncGenerator<SnapshotMetadata> {
  let cursor: string | undefined;
  do {
    const page = await store.listSnapshots({ sessionId, limit: 500, cursor });
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor);
}
