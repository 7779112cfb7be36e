/** What a turn costs, counted: times are for `npm run bench`. */
import { createHook } from 'node:async_hooks';
import { genkit, type MessageData } from 'genkit/beta';
import { defineAgent, InMemorySessionStore } from 'genkitx-agents';
import { expect, test } from 'vitest';
import { user } from '../support/helpers.ts';

const TURNS = 10;

/** How many promises and timers are made, on average, while `turn` is taken some times. */
async function countOf(turn: () => Promise<unknown>): Promise<{ promises: number; timers: number }> {
  // Creates the objects that all turns share.
  for (let i = 0; i < TURNS; i++) await turn();
  const made = { promises: 0, timers: 0 };
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'PROMISE') made.promises++;
      if (type === 'Timeout') made.timers++;
    },
  });
  hook.enable();
  try {
    for (let i = 0; i < TURNS; i++) await turn();
  } finally {
    hook.disable();
  }
  return { promises: made.promises / TURNS, timers: made.timers / TURNS };
}

test('over a bare generate, a turn with the in-memory store takes no timer and at most 135 promises', async () => {
  const ai = genkit({ model: 'brief' });
  const system = 'Be short.';
  const message: MessageData = { role: 'model', content: [{ text: 'ok' }] };
  ai.defineModel({ name: 'brief', apiVersion: 'v2' }, async () => ({ message, finishReason: 'stop' }));
  const chat = defineAgent(ai, { name: 'brief', system, store: new InMemorySessionStore() }).chat();
  const messages = [user('a'), message, user('b')];
  const bare = await countOf(() => ai.generate({ system, messages }));
  const ours = await countOf(() => chat.send('a'));
  expect(ours.timers).toBe(0);
  expect(bare.promises).toBeGreaterThan(0);
  expect(ours.promises - bare.promises).toBeLessThanOrEqual(135);
});
