import type { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, beforeAll } from 'vitest';
import { sessionFencesSuite } from '../../session/session-fences-suite.ts';
import { openDatabase } from './support/database.ts';

let db: Firestore;
beforeAll(() => void (db = openDatabase()));
afterAll(() => db.terminate());

let tapes = 0;
sessionFencesSuite('FirestoreSessionStore', { short: 2, long: 100 }, async (use, options) => {
  const collection = `tape-${++tapes}`;
  const [a, b] = [1, 2].map(() => new FirestoreSessionStore({ ...options, db, collection }));
  await use(a!, b!);
  await Promise.all([a!.close(), b!.close()]);
});
