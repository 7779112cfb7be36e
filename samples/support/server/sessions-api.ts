// Express 5 hands what an async handler throws to the error handler.
// oxlint-disable oxc/no-async-endpoint-handlers
import { Router, type Request } from 'express';
import { GenkitError } from 'genkit';
import type { SnapshotMetadata, SnapshotStore } from 'genkitx-agents';
import type { SupportState } from '../agent/state.ts';
import type { SessionList, SnapshotList } from './api-types.ts';
import { NO_PREVIEW, Previews } from './previews.ts';

/**
 * What a page of conversations needs besides the agent: lists, straight from the store. Ids are query parameters: whoever makes an address
 * from a path takes `.` and `..` out of it, and both are good names for a session.
 */
export function sessionsApi(store: SnapshotStore<SupportState>): Router {
  const router = Router();
  const previews = new Previews(store);

  router.get('/sessions', async (request, response) => {
    const cursor = parameter(request, 'cursor');
    const page = await store.listSessions({ limit: 50, ...(cursor !== undefined && { cursor }) });
    const leaves = await previews.of(page.items.map(({ leafId }) => leafId));
    const items = page.items.map((session) => ({ ...session, title: leaves.get(session.leafId)?.title ?? '' }));
    response.json({ ...page, items } satisfies SessionList);
  });

  router.get('/snapshots', async (request, response) => {
    const snapshots = await allSnapshots(store, mustGetSessionId(request));
    const found = await previews.of(snapshots.map(({ snapshotId }) => snapshotId).toReversed());
    // Not the whole of each: the error of a turn that failed is for the log.
    const items = snapshots.map(({ snapshotId, parentId, createdAt, status }) => {
      return { snapshotId, parentId, createdAt, status, preview: found.get(snapshotId) ?? NO_PREVIEW };
    });
    response.json({ items } satisfies SnapshotList);
  });

  router.delete('/sessions', async (request, response) => {
    response.json(await store.deleteSession({ sessionId: mustGetSessionId(request) }));
  });

  return router;
}

async function allSnapshots(store: SnapshotStore<SupportState>, sessionId: string): Promise<SnapshotMetadata[]> {
  const all: SnapshotMetadata[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listSnapshots({ sessionId, limit: 500, cursor });
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

function parameter({ query }: Request, name: string): string | undefined {
  const value = query[name];
  if (value === undefined || typeof value === 'string') return value;
  throw wrong(`${name} is there more than once.`);
}

function wrong(message: string): GenkitError {
  return new GenkitError({ status: 'INVALID_ARGUMENT', message });
}
