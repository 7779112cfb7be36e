/** What a window costs, counted: messages that it looks into, bytes that a provider's cache can't use again. */
import type { GenerateRequest } from 'genkit';
import {
  clearToolOutputs,
  contextWindow,
  lastTurns,
  summarize,
  tokenBudget,
  type ContextReport,
  type ContextWindow,
  type HistoryStrategy,
} from 'genkitx-agents/context';
import { describe, expect, test } from 'vitest';
import { scriptedTurns } from '../../bench/context/conversation.ts';
import { genkitTalker } from '../../bench/context/genkit-talker.ts';
import { longTalker } from '../../bench/context/long-talker.ts';
import { meter } from '../../src/session/log/message-log.ts';

describe('a session of 1,000 turns, when one turn is added', () => {
  const summarizer = async () => 'They talked.';
  test.each<[string, HistoryStrategy[]]>([
    ['lastTurns', [lastTurns(10)]],
    ['tokenBudget', [tokenBudget(4_000)]],
    ['clearToolOutputs', [clearToolOutputs({ keepTurns: 3 }), lastTurns(20)]],
    ['summarize', [summarize({ everyTurns: 5, summarizer }), lastTurns(10), tokenBudget(4_000)]],
    ['no strategy', []],
  ])('%s looks into at most three times the messages of its window', async (_, history) => {
    const reports: ContextReport[] = [];
    const requests: GenerateRequest[] = [];
    const context = contextWindow({ maxTokens: 8_000, history, onReport: (report) => reports.push(report) });
    const talker = await longTalker({ turns: 1_000, added: 3 }, context, (request) => requests.push(request));
    await talker.send();
    await talker.send();
    const before = meter.messages;
    await talker.send();
    const looked = meter.messages - before;
    expect(looked).toBeGreaterThan(0);
    expect(looked).toBeLessThanOrEqual(3 * requests.at(-1)!.messages.length);
    expect(reports.at(-1)!.messages).toBeGreaterThan(2_400);
  });
});

describe('over 50 turns the requests begin like the ones before', () => {
  /** For each request the part of its bytes, from the front, with which the next request begins as well. */
  async function prefixes(context: ContextWindow): Promise<number[]> {
    const bodies: Buffer[] = [];
    const onRequest = ({ messages, tools }: GenerateRequest) =>
      bodies.push(Buffer.from(JSON.stringify({ tools, messages })));
    const talker = genkitTalker({ context, onRequest });
    for (const turn of scriptedTurns(50)) await talker.send(turn);
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
