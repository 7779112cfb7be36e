import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { sessionFencesSuite } from '../../../session/session-fences-suite.ts';
import { openDatabase } from '../support/database.ts';

const db = openDatabase();

let tapes = 0;
sessionFencesSuite('FirestoreSessionStore', { short: 2, long: 100 }, async (use, options) => {
  const collection = `tape-${++tapes}`;
  const [a, b] = [1, 2].map(() => new FirestoreSessionStore({ ...options, db, collection }));
  await use(a!, b!);
  await Promise.all([a!.close(), b!.close()]);
});
