/** The command line on Firestore. */
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { expect, it } from 'vitest';
import { jsonLinesOf, runCli } from '../../cli/support/run-cli.ts';
import { temporaryFolder } from '../file/support/folders.ts';
import { newProject, openDatabase } from './support/database.ts';

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
  await db.terminate();
});
