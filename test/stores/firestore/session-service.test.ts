import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { sessionServiceSuite } from '../../session/session-service-suite.ts';
import { newProject, openDatabase } from './support/database.ts';

sessionServiceSuite('FirestoreSessionStore', async () => {
  const project = newProject();
  const dbs = [openDatabase(project), openDatabase(project)];
  const [a, b] = dbs.map((db) => new FirestoreSessionStore({ db }));
  const close = async (): Promise<void> => {
    await Promise.all([a!.close(), b!.close()]);
    await Promise.all(dbs.map((db) => db.terminate()));
  };
  return { a: a!, b: b!, close };
});
