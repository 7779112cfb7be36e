import type { Firestore } from '@google-cloud/firestore';
import type { SessionSnapshotInput } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newProject, openDatabase } from '../support/database.ts';

type Custom = { n: number };

/** The next commit of a client is made, its answer is lost, `meanwhile` runs, and the client repeats the commit, as it does automatically. */
function loseAnswer(db: Firestore, meanwhile: () => Promise<unknown>): void {
  const client = db as unknown as { request: (name: string, ...rest: unknown[]) => Promise<unknown> };
  const request = client.request.bind(db);
  client.request = async (name, ...rest) => {
    if (name !== 'commit') return request(name, ...rest);
    client.request = request;
    await request(name, ...rest);
    await meanwhile();
    return request(name, ...rest);
  };
}

describe.each([{ sessionId: 'chat' }, { sessionId: undefined }])('a save of %o whose answer is lost', (of) => {
  let dbs: Firestore[];
  let mine: FirestoreSessionStore<Custom>;
  let other: FirestoreSessionStore<Custom>;

  beforeEach(() => {
    const project = newProject();
    dbs = [openDatabase(project), openDatabase(project)];
    [mine, other] = dbs.map((db) => new FirestoreSessionStore<Custom>({ db })) as [typeof mine, typeof other];
  });
  afterEach(async () => void (await Promise.all(dbs.map((db) => db.terminate()))));

  const first = (): SessionSnapshotInput<Custom> => ({
    ...of,
    createdAt: '2026-01-01T00:00:00.000Z',
    status: 'pending',
  });
  const increment = (current?: SessionSnapshotInput<Custom>): SessionSnapshotInput<Custom> => ({
    ...(current ?? first()),
    state: { custom: { n: (current?.state?.custom?.n ?? 0) + 1 } },
  });

  it.each([1, 5])('is made once, also when %i other writers come before it is sent again', async (others) => {
    await other.saveSnapshot('counter', increment);
    // A store that knows the snapshot rewrites it with the first commit.
    await mine.getSnapshot({ snapshotId: 'counter' });
    loseAnswer(dbs[0]!, async () => {
      for (let i = 0; i < others; i++) await other.saveSnapshot('counter', increment);
    });
    expect(await mine.saveSnapshot('counter', increment)).toBe('counter');
    expect((await other.getSnapshot({ snapshotId: 'counter' }))?.state?.custom).toEqual({ n: 2 + others });
  });

  it('is acknowledged when it was the first and another save made the snapshot terminal meanwhile', async () => {
    loseAnswer(dbs[0]!, () => other.saveSnapshot('run', (current) => ({ ...current!, status: 'aborted' })));
    expect(await mine.saveSnapshot('run', () => first())).toBe('run');
    expect((await mine.getSnapshot({ snapshotId: 'run' }))?.status).toBe('aborted');
  });
});
