/** What a window costs, counted: messages that it looks into, bytes that a provider's cache can't use again. */
import type { MessageData } from 'genkit';
import { defineAgent, genkit, InMemorySessionStore } from 'genkitx-agents';
import {
  clearToolOutputs,
  contextWindow,
  lastTurns,
  summarize,
  tokenBudget,
  type ContextWindow,
  type HistoryStrategy,
} from 'genkitx-agents/context';
import { describe, expect, test } from 'vitest';
import { meter } from '../../src/session/log/message-log.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { model, user } from '../agent/helpers.ts';
import { contextReportOf } from './support.ts';

const sentences = (from: number, bytes: number) =>
  `sentence ${from} of the talk. `.repeat(Math.ceil(bytes / 24)).slice(0, bytes);

/** Turns like those of the standard workload: 300 bytes asked, 1,200 answered, a tool on every fifth. */
function turn(i: number): MessageData[] {
  const ref = `call-${i}`;
  const tool: MessageData[] = [
    { role: 'model', content: [{ toolRequest: { name: 'look', ref, input: { query: sentences(i, 380) } } }] },
    { role: 'tool', content: [{ toolResponse: { name: 'look', ref, output: { rows: rows(i) } } }] },
  ];
  return [user(sentences(i, 300)), ...(i % 5 === 4 ? tool : []), model(sentences(i, 1_200))];
}

const rows = (i: number) => Array.from({ length: 20 }, (_, n) => ({ id: `${i}-${n}`, note: sentences(n, 90) }));

function setUp(context: ContextWindow, sessionId: string, turns: number) {
  const ai = genkit();
  let i = turns;
  let hasAsked = false;
  const scripted = scriptedModel(ai, {
    otherwise: () => {
      const reply = turn(i);
      if (reply.length === 4 && !hasAsked) {
        hasAsked = true;
        return reply[1]!.content;
      }
      hasAsked = false;
      i++;
      return reply.at(-1)!.content;
    },
  });
  const look = ai.defineTool({ name: 'look', description: 'Looks things up. '.repeat(20) }, async () => ({
    rows: rows(i),
  }));
  const store = new InMemorySessionStore();
  const agent = defineAgent(ai, {
    name: 'talker',
    model: scripted.name,
    system: sentences(0, 2_000),
    tools: [look],
    store,
    context,
  });
  const begin = async () => {
    const messages = Array.from({ length: turns }, (_, n) => turn(n)).flat();
    const createdAt = new Date(0).toISOString();
    if (turns === 0) return agent.chat({ sessionId });
    await store.saveSnapshot('start', () => ({
      sessionId,
      createdAt,
      status: 'completed',
      state: { sessionId, messages },
    }));
    return agent.chat({ snapshotId: 'start' });
  };
  return { begin, scripted, store };
}

describe('a session of 1,000 turns, when one turn is added', () => {
  const summarizer = async () => 'They talked.';
  test.each<[string, HistoryStrategy[]]>([
    ['lastTurns', [lastTurns(10)]],
    ['tokenBudget', [tokenBudget(4_000)]],
    ['clearToolOutputs', [clearToolOutputs({ keepTurns: 3 }), lastTurns(20)]],
    ['summarize', [summarize({ everyTurns: 5, summarizer }), lastTurns(10), tokenBudget(4_000)]],
    ['no strategy', []],
  ])('%s looks into at most three times the messages of its window', async (_, history) => {
    const { begin, scripted, store } = setUp(contextWindow({ maxTokens: 8_000, history }), 's', 1_000);
    const chat = await begin();
    await chat.send('warm up');
    await chat.send('warm up again');
    const before = meter.messages;
    await chat.send('one more');
    const looked = meter.messages - before;
    const sent = scripted.requests.at(-1)!.messages.length;
    expect(looked).toBeGreaterThan(0);
    expect(looked).toBeLessThanOrEqual(3 * sent);
    expect((await contextReportOf(store, chat.snapshotId!))!.messages).toBeGreaterThan(2_400);
  });
});

describe('over 50 turns the requests begin like the ones before', () => {
  /** For each request the part of its bytes, from the front, with which the next request begins as well. */
  async function prefixes(context: ContextWindow): Promise<number[]> {
    const { begin, scripted } = setUp(context, 's', 0);
    const chat = await begin();
    for (let i = 0; i < 50; i++) await chat.send(sentences(i, 300));
    const bodies = scripted.requests.map(({ messages, tools }) => Buffer.from(JSON.stringify({ tools, messages })));
    return bodies.slice(1).map((body, i) => {
      const last = bodies[i]!;
      let same = 0;
      while (same < body.length && body[same] === last[same]) same++;
      return same / last.length;
    });
  }

  test.each<[string, HistoryStrategy[]]>([
    ['lastTurns(20)', [lastTurns(20)]],
    ['tokenBudget(8_000)', [tokenBudget(8_000)]],
    ['clearToolOutputs and lastTurns(20)', [clearToolOutputs({ keepTurns: 10 }), lastTurns(20)]],
    ['a full window', []],
  ])('%s', async (_, history) => {
    const shares = await prefixes(contextWindow({ maxTokens: 12_000, history }));
    const mean = shares.reduce((a, b) => a + b, 0) / shares.length;
    expect(mean).toBeGreaterThanOrEqual(0.9);
  });
});
