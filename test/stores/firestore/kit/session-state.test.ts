import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { readableOf, sessionStateSuite } from '../../../session/session-state-suite.ts';
import { allDocuments } from '../support/at-rest.ts';
import { newProject, openDatabase } from '../support/database.ts';

sessionStateSuite('FirestoreSessionStore', async (options) => {
  const project = newProject();
  const dbs = [openDatabase(project), openDatabase(project)];
  const [a, b] = dbs.map((db) => new FirestoreSessionStore({ ...options, db }));
  const raw = async (): Promise<string> => {
    const documents = await allDocuments(dbs[1]!);
    const fields = documents.flatMap((document) => [document.ref.path, ...Object.values(document.data()).map(textOf)]);
    return [...fields, await readableOf(b!)].join('\n');
  };
  const close = async (): Promise<void> => {
    await Promise.all([a!.close(), b!.close()]);
  };
  return { a: a!, b: b!, raw, close };
});

function textOf(field: unknown): string {
  return field instanceof Uint8Array ? Buffer.from(field).toString('latin1') : JSON.stringify(field);
}
