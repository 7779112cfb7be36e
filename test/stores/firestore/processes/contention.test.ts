import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { childScript } from '../../../support/child-script.ts';
import { isTorture, scale } from '../../../support/scale.ts';
import { newProject, openDatabase } from '../support/database.ts';
import type { WriterAnswer, WriterTask } from './writer.ts';

const WRITER = await childScript(new URL('writer.ts', import.meta.url));
const PROCESSES = isTorture ? 8 : 4;

const writers: ChildProcess[] = [];
beforeAll(() => {
  for (let i = 0; i < PROCESSES; i++) writers.push(fork(WRITER));
});
afterAll(async () => {
  for (const writer of writers) {
    const ended = once(writer, 'exit');
    writer.disconnect();
    await ended;
  }
});

/** Runs this many writers at once. Returns the acknowledged ids of each. */
async function write(
  project: string,
  kind: WriterTask['kind'],
  turns: number,
  count = PROCESSES,
): Promise<(readonly string[])[]> {
  const answers = writers.slice(0, count).map(async (writer, i) => {
    const answered = Promise.race([once(writer, 'message'), once(writer, 'exit')]);
    writer.send({ project, kind, name: `writer ${i}, turn`, turns } satisfies WriterTask);
    return ((await answered) as [WriterAnswer])[0];
  });
  // Waits for all before it fails, so that no writer still runs when the next test begins.
  const ended = await Promise.all(answers);
  expect(ended.map((answer) => answer.failure)).toEqual(ended.map(() => undefined));
  return ended.map((answer) => answer.acknowledged);
}

describe(`${PROCESSES} processes on one session`, () => {
  const turns = scale(5, 100);

  it(`one session: ${PROCESSES} x ${turns} turns that expect the leaf they read are all in one chain, none lost`, async () => {
    const project = newProject();
    const acknowledged = (await write(project, 'line', turns)).flat();
    const db = openDatabase(project);
    const store = new FirestoreSessionStore({ db });
    const line: string[] = [];
    for (let id = (await store.getSnapshot({ sessionId: 'contended' }))?.snapshotId; id !== undefined;) {
      line.unshift(id);
      const found = await store.getSnapshot({ snapshotId: id });
      // Each turn read all turns before it.
      expect(found?.state?.messages).toHaveLength(PROCESSES * turns - line.length + 1);
      id = found?.parentId;
    }
    expect(line).toHaveLength(PROCESSES * turns);
    expect(line.toSorted()).toEqual(acknowledged.toSorted());
  });

  it(`contention: ${PROCESSES} x ${turns} sibling saves make as many leaves`, async () => {
    const project = newProject();
    const db = openDatabase(project);
    const store = new FirestoreSessionStore({ db });
    await store.saveSnapshot('root', () => ({
      sessionId: 'contended',
      createdAt: new Date().toISOString(),
      status: 'completed',
    }));
    const acknowledged = (await write(project, 'siblings', turns)).flat();
    const { items } = await store.listSessions();
    expect(items).toMatchObject([{ leafCount: PROCESSES * turns, snapshotCount: PROCESSES * turns + 1 }]);
    const page = await store.listSnapshots({ sessionId: 'contended', limit: 1000 });
    expect(
      page.items
        .map((item) => item.snapshotId)
        .slice(1)
        .toSorted(),
    ).toEqual(acknowledged.toSorted());
  });

  it(`atomic update: ${PROCESSES} x ${turns} increments give ${PROCESSES * turns}`, async () => {
    const project = newProject();
    await write(project, 'increments', turns);
    const db = openDatabase(project);
    const found = await new FirestoreSessionStore<{ n: number }>({ db }).getSnapshot({ snapshotId: 'counter' });
    expect(found?.state?.custom?.n).toBe(PROCESSES * turns);
  });
});

describe('4 processes on the records of one user and one app', () => {
  const turns = scale(5, 200);

  it(`atomic update: 4 x ${turns} increments from as many sessions give ${4 * turns}, and the key of each process stays`, async () => {
    const project = newProject();
    const acknowledged = await write(project, 'records', turns, 4);
    const db = openDatabase(project);
    const store = new FirestoreSessionStore({ db });
    const scopes = [
      { scope: 'user', appName: 'shop', userId: 'ada' },
      { scope: 'app', appName: 'shop' },
    ] as const;
    const own = acknowledged.map((ids, i) => [`writer ${i}, turn`, ids.at(-1)]);
    const expected = { ...Object.fromEntries(own), n: 4 * turns };
    expect(await store.readScopes({ scopes })).toEqual([expected, expected]);
    const { items } = await store.listSessions({ limit: 1000 });
    expect(items.map(({ sessionId }) => sessionId).toSorted()).toEqual(acknowledged.flat().toSorted());
  });
});
