import { randomUUID } from 'node:crypto';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { sessionServiceSuite } from '../../../session/session-service-suite.ts';
import { newProject, openDatabase } from '../support/database.ts';

const project = newProject();
const dbs = [openDatabase(project), openDatabase(project)];

sessionServiceSuite('FirestoreSessionStore', async () => {
  const collection = `service-${randomUUID()}`;
  const [a, b] = dbs.map((db) => new FirestoreSessionStore({ db, collection }));
  return { a: a!, b: b!, close: async () => void (await Promise.all([a!.close(), b!.close()])) };
});
