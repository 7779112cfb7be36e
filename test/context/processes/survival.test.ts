/** A long conversation with a model that accepts little, over stores of one machine; Firestore's is with its own tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { afterEach, describe, test, vi } from 'vitest';
import { seed } from '../../support/scale.ts';
import { expectSurvival, savedIn, talkAndDie, TURNS, TURNS_OF_A_PROCESS, type Lives } from './survival.ts';
import { openTalker, type TalkEvent } from './talker.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe(`survival: ${TURNS} turns with a model that refuses more than 8,000 tokens (seed ${seed})`, () => {
  test('over files, in processes that are killed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agents-survival-'));
    try {
      const lives = await talkAndDie({ folder });
      await expectSurvival(new FileSessionStore(folder), lives);
    } finally {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    }
  });

  test('in memory, with agents that know nothing of each other', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const store = new InMemorySessionStore();
    const lives: Lives = [];
    while (savedIn(lives) < TURNS) {
      const life: TalkEvent[] = [];
      lives.push(life);
      const takeTurn = openTalker({
        store,
        seed: seed * 1_000 + lives.length,
        note: (event) => life.push(event),
        pass: (ms) => vi.setSystemTime(Date.now() + ms),
      });
      for (let i = 0; i < TURNS_OF_A_PROCESS; i++) await takeTurn();
    }
    await expectSurvival(store, lives);
  });
});
