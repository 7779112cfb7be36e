import type { Firestore } from '@google-cloud/firestore';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { afterAll, describe } from 'vitest';
import { openDatabase } from '../../stores/firestore/support/database.ts';
import { appliesRetention } from '../retention/retention-suite.ts';

const databases: Firestore[] = [];
afterAll(async () => void (await Promise.all(databases.map((db) => db.terminate()))));

describe('retention on Firestore', () => {
  appliesRetention((options) => {
    const db = openDatabase();
    databases.push(db);
    return new FirestoreSessionStore({ db, ...options });
  });
});
