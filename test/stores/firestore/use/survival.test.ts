import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { describe, test } from 'vitest';
import { expectSurvival, talkAndDie } from '../../../context/processes/survival.ts';
import { isTorture, scale, seed } from '../../../support/scale.ts';
import { newProject, openDatabase } from '../support/database.ts';

const turns = scale(40, 600);

describe(`survival: ${turns} turns with a model that refuses more than 8,000 tokens (seed ${seed})`, () => {
  // In `npm test` the same runs over files: what differs is the store, which has tests of its own.
  test.runIf(isTorture)('on Firestore, in processes that are killed', async () => {
    const project = newProject();
    const lives = await talkAndDie({ project }, turns);
    const db = openDatabase(project);
    await expectSurvival(new FirestoreSessionStore({ db }), lives);
  });
});
