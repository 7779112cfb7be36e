/** The support agent remembers its customers: with the offline model, in this process. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { genkit, InMemorySessionStore } from 'genkitx-agents';
import { InMemoryMemoryStore } from 'genkitx-agents/memory';
import { afterEach, expect, test, vi } from 'vitest';
import { customerMemory } from '../../samples/support/agent/customer-memory.ts';
import { defineAgents } from '../../samples/support/agent/define-agents.ts';
import { FileOrderBook } from '../../samples/support/agent/file-order-book.ts';
import type { ReportState } from '../../samples/support/agent/report-agent.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { offlineModel } from '../../samples/support/models/choose-model.ts';

let folder: string | undefined;

afterEach(async () => {
  if (folder) await rm(folder, { recursive: true, force: true });
});

test('remembers a customer, says what and why, and forgets on request, in the same conversation too', async () => {
  folder = await mkdtemp(join(tmpdir(), 'support-memory-'));
  const model = offlineModel(0);
  const ai = genkit({ plugins: model.plugins });
  const store = new InMemoryMemoryStore();
  const memory = customerMemory(ai, { store, model, redact: async (text) => text });
  const { support } = defineAgents(ai, {
    book: await FileOrderBook.open(folder),
    model,
    memory,
    store: new InMemorySessionStore<SupportState>(),
    reports: new InMemorySessionStore<ReportState>(),
    stepMs: 0,
  });
  const ana = { context: { auth: { uid: 'ana', email: 'ana@example.com' } } };
  const ben = { context: { auth: { uid: 'ben', email: 'ben@example.com' } } };
  const recall = async (who = ana) => (await support.chat({}, who).send('What do you remember about me?')).text;

  const chat = support.chat({}, ana);
  expect((await chat.send('Remember that I prefer express delivery.')).text).toBe('It will be remembered.');
  await chat.send('I always pay by card. Where is order 1042?');
  await vi.waitFor(async () => expect((await recall()).match(/^- .*$/gm)).toHaveLength(2));
  const told = await recall();
  expect(told).toMatch(
    /- The customer says: "I prefer express delivery\." You asked me to remember it on \d{4}-\d\d-\d\d\./,
  );
  expect(told).toMatch(/- The customer says: "I always pay by card\." You said so in a conversation on /);
  expect(await recall(ben)).toBe('I remember nothing of you.');

  expect((await chat.send('Forget me')).text).toContain('I have forgotten all');
  await chat.send('Where is order 1042?');
  await memory.settled();
  expect(await recall()).toBe('I remember nothing of you.');
  const { items } = await store.listScopes();
  for (const scope of items) expect((await store.query(scope, { filter: { includeInvalid: true } })).items).toEqual([]);
  await memory.close();
});
