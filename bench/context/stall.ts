/** The behaviour of a turn whose summarizer stalls. */
import { setTimeout as sleep } from 'node:timers/promises';
import { contextWindow, summarize } from 'genkitx-agents/context';
import type { Report } from '../report.ts';
import { scriptedTurns } from './conversation.ts';
import { genkitTalker, SUMMARIZER, type Talker } from './genkit-talker.ts';
import { Ledger } from './ledger.ts';

const STALL_MS = 10_000;

interface Stalling {
  readonly talker: Talker;
  readonly settled?: () => Promise<void>;
}

export async function benchStall(report: Report): Promise<void> {
  const { adkTalker } = await import('../extra/context-peers.ts');
  report.start('a summarizer that stalls', 2);
  const ours = eventsOf(async (onSummary) => {
    const context = contextWindow({ history: [summarize({ model: SUMMARIZER, everyTurns: 2 })] });
    return { talker: genkitTalker({ context, onSummary }), settled: () => context.settled() };
  });
  const adk = eventsOf(async (onSummary) => {
    const ledger = new Ledger();
    ledger.beginTurn();
    return { talker: await adkTalker(ledger, { tokenThreshold: 1_000, eventRetentionSize: 2, onSummary }) };
  });
  const verdicts = await Promise.all([ours, adk]);
  report.addChecks({
    name: `a turn whose summarizer stalls for ${STALL_MS / 1000} s is answered before the summary is there`,
    ours: verdicts[0],
    theirs: verdicts[1],
    peer: 'ADK',
  });
}

/** Plays turns until a summary was made. If a turn was answered only after a summary that began in it or earlier, returns the order of events. */
async function eventsOf(open: (onSummary: () => Promise<void>) => Promise<Stalling>): Promise<string | undefined> {
  const events: string[] = [];
  let isOver = false;
  const { talker, settled } = await open(async () => {
    if (isOver) return;
    events.push('the summarizer begins');
    await sleep(STALL_MS);
    events.push('the summary is there');
    isOver = true;
  });
  for (const turn of scriptedTurns(6)) {
    events.push('a question');
    await talker.send(turn);
    events.push('an answer');
  }
  await settled?.();
  const begun = events.indexOf('the summarizer begins');
  const there = events.indexOf('the summary is there');
  if (begun < 0 || there < 0) return 'no summary was made';
  const questions = events.slice(0, there).filter((event) => event === 'a question').length;
  const answers = events.slice(0, there).filter((event) => event === 'an answer').length;
  return questions === answers ? undefined : events.slice(Math.max(0, begun - 1), there + 2).join(', ');
}
