/** A window and its summaries change what is sent, and nothing of what is stored. */
import type { Part } from 'genkit';
import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import { clearToolOutputs, contextWindow, lastTurns, summarize, type ContextWindow } from 'genkitx-agents/context';
import { expect, test } from 'vitest';
import { scale } from '../support/scale.ts';
import { scriptedModel } from '../support/scripted-model.ts';

const TURNS = scale(40, 300);

const OWN = new Set(['snapshotId', 'parentId', 'createdAt', 'updatedAt', 'usage', 'summaryUsage', 'contextReport']);

/** All snapshots of a session, oldest first, without ids, times, usage and the reports of windows. */
async function exported(store: InMemorySessionStore, sessionId: string) {
  const snapshots: object[] = [];
  let snapshot = await store.getSnapshot({ sessionId });
  while (snapshot) {
    snapshots.unshift(Object.fromEntries(Object.entries(snapshot).filter(([name]) => !OWN.has(name))));
    const { parentId } = snapshot;
    snapshot = parentId === undefined ? undefined : await store.getSnapshot({ snapshotId: parentId });
  }
  return snapshots;
}

/** The session after all turns, some with tools, some that fail; and how often it was summarized. */
async function talk(window?: (summarizer: () => Promise<string>) => ContextWindow) {
  let summaries = 0;
  const context = window?.(async () => `Summary ${++summaries}. ${'much text '.repeat(50)}`);
  const ai = genkit();
  const look = ai.defineTool({ name: 'look', description: 'Looks it up.' }, async () => ({ rows: 'row '.repeat(100) }));
  let turn = 0;
  const model = scriptedModel(ai, {
    otherwise: ({ request }): string | Part[] => {
      const isAnswered = request.messages.at(-1)!.role === 'tool';
      if (turn % 11 === 10) throw new Error('down');
      if (turn % 3 > 0 || isAnswered) return `answer ${turn}`;
      return ['a', 'b'].map((ref) => ({ toolRequest: { name: 'look', ref: `${turn}${ref}`, input: { turn } } }));
    },
  });
  const store = new InMemorySessionStore();
  const agent = defineAgent(ai, {
    name: 'talker',
    model: model.name,
    tools: [look],
    store,
    ...(context && { context }),
  });
  for (turn = 0; turn < TURNS; turn++) {
    const sent = agent.chat({ sessionId: 's' }).send(`question ${turn}`);
    await (turn % 11 === 10 ? expect(sent).rejects.toThrow() : sent);
    await context?.settled();
  }
  return { snapshots: await exported(store, 's'), summaries };
}

test(`same log: ${TURNS} turns with a summary after each are stored as they are without a window`, async () => {
  const summarized = await talk((summarizer) =>
    contextWindow({
      maxTokens: 2_000,
      history: [clearToolOutputs({ keepTurns: 1 }), summarize({ everyTurns: 1, summarizer }), lastTurns(2)],
    }),
  );
  const plain = await talk();
  expect(summarized.summaries).toBeGreaterThan(TURNS * 0.8);
  expect(plain.snapshots.length).toBeGreaterThanOrEqual(TURNS * 0.9 - 1);
  expect(summarized.snapshots).toEqual(plain.snapshots);
  expect(JSON.stringify(summarized.snapshots).length).toBe(JSON.stringify(plain.snapshots).length);
});
