/** The command line on Firestore. */
import { FileSessionStore } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { beforeAll, expect, it } from 'vitest';
import { buildPackage, runBuilt } from '../../../cli/support/built-cli.ts';
import { jsonLinesOf, runCli } from '../../../cli/support/run-cli.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { newProject, openDatabase } from '../support/database.ts';

beforeAll(buildPackage);

it('the command line lists, copies, checks and removes in a collection of a project, by tenant', async () => {
  const project = newProject();
  const db = openDatabase(project);
  const store = new FirestoreSessionStore({ db, collection: 'chats', snapshotPathPrefix: () => 'team' });
  const createdAt = new Date().toISOString();
  for (const id of ['s1', 's2', 's3']) {
    const state = { custom: { id } };
    await store.saveSnapshot(`${id}-1`, () => ({ sessionId: id, createdAt, status: 'completed', state }));
    await store.saveSnapshot(`${id}-2`, () => ({
      sessionId: id,
      parentId: `${id}-1`,
      createdAt,
      status: 'completed',
      state,
    }));
  }
  const folder = temporaryFolder();
  const url = `firestore:${project}/chats`;
  const cli = (...argv: string[]) => runCli(argv, { folder });
  const listed = await cli('sessions', 'list', '-s', url, '-t', 'team', '--json');
  expect(jsonLinesOf(listed.out).map(({ sessionId }) => sessionId)).toEqual(['s3', 's2', 's1']);
  expect(await cli('sessions', 'list', '-s', url)).toMatchObject({ code: 0, out: 'No sessions.\n' });
  expect(await cli('sessions', 'copy', '--from', url, '--to', 'file:copy', '-t', 'team')).toMatchObject({ code: 0 });
  const copied = await cli('sessions', 'list', '-s', 'file:copy', '-t', 'team', '--json');
  expect(copied.out).toBe(listed.out);
  await db.doc('chats-pointers/team/pointers/s2').delete();
  const doctor = await cli('doctor', '-s', url, '-t', 'team');
  expect(doctor.code).toBe(1);
  expect(doctor.out).toContain('damaged: tenant team, session s2, at chats-pointers/team/pointers/s2');
  expect(await cli('sessions', 'delete', 's1', '-y', '-s', url, '-t', 'team')).toMatchObject({ code: 0 });
  expect(await store.getSnapshot({ sessionId: 's1' })).toBeUndefined();
  await store.close();
});

it('the built command shows, lists, checks and copies a project in its own process', async () => {
  const project = newProject();
  const db = openDatabase(project);
  const store = new FirestoreSessionStore({ db, collection: 'chats' });
  const createdAt = new Date().toISOString();
  const messages = [{ role: 'user' as const, content: [{ text: 'Where is A-17?' }] }];
  const turn = { createdAt, status: 'completed' as const, state: { messages, custom: { orderId: 'A-17' } } };
  const leaves = ['a2', 'a3'];
  await store.saveSnapshot('a1', () => ({ ...turn, sessionId: 'a' }), {
    session: { agent: 'support', ownerId: 'ada' },
  });
  for (const id of leaves) await store.saveSnapshot(id, () => ({ ...turn, sessionId: 'a', parentId: 'a1' }));
  const heartbeatAt = '2026-01-01T00:00:00.000Z';
  const backgroundRun = { id: 'b1', agent: 'report', owner: 'worker-1', generation: 1, leaseMs: 60_000 };
  const run = { sessionId: 'b', createdAt, status: 'pending' as const, heartbeatAt, backgroundRun };
  await store.saveSnapshot('b1', () => run);

  const folder = temporaryFolder();
  const url = `firestore:${project}/chats`;
  const cli = (...args: string[]) => runBuilt(args, folder);
  const [listed, shown, doctor, copied] = await Promise.all([
    cli('sessions', 'list', '--json', '-s', url),
    cli('sessions', 'show', 'a', '-s', url),
    cli('doctor', '--json', '-s', url),
    cli('sessions', 'copy', '--from', url, '--to', 'file:copy'),
  ]);
  expect(listed).toMatchObject({ code: 0, err: '' });
  expect(jsonLinesOf(listed.out)).toMatchObject([
    { sessionId: 'b', leafId: 'b1', status: 'pending' },
    { sessionId: 'a', leafId: 'a3', leafCount: 2, snapshotCount: 3, agent: 'support', ownerId: 'ada' },
  ]);
  expect(shown).toMatchObject({ code: 0, err: '' });
  expect(shown.out).toMatch(
    /^session a · snapshot a3 · parent a1 · completed .*\n\nuser:\n {2}Where is A-17\?\n\nstate\n {2}orderId: "A-17"\n/,
  );
  expect(doctor.code).toBe(1);
  expect(doctor.err).toContain('Found: 1 expired.');
  expect(jsonLinesOf(doctor.out)).toMatchObject([
    { kind: 'expired', sessionId: 'b', snapshotId: 'b1', isRepaired: false },
  ]);
  expect(copied.code, copied.err).toBe(0);
  const copy = new FileSessionStore(`${folder}/copy`);
  for (const sessionId of ['a', 'b']) {
    const { items } = await store.listSnapshots({ sessionId });
    expect((await copy.listSnapshots({ sessionId })).items).toEqual(items);
  }
  expect(await copy.getSnapshot({ snapshotId: 'a2' })).toEqual(await store.getSnapshot({ snapshotId: 'a2' }));
  await Promise.all([copy.close(), store.close()]);
});
