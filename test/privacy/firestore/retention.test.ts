import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { describe } from 'vitest';
import { openDatabase } from '../../stores/firestore/support/database.ts';
import { appliesRetention } from '../retention/retention-suite.ts';

describe('retention on Firestore', () => {
  appliesRetention((options) => new FirestoreSessionStore({ db: openDatabase(), ...options }));
});
