/** The tokens that are sent in a conversation: with our window, without a window, with ADK's compaction, with LangChain's `trimMessages`. */
import { contextWindow, lastTurns, summarize } from 'genkitx-agents/context';
import { single } from '../measure.ts';
import type { Report } from '../report.ts';
import { scriptedTurns } from './conversation.ts';
import { genkitTalker, SUMMARIZER, type Talker } from './genkit-talker.ts';
import { Ledger } from './ledger.ts';

/** The most tokens of a request, for all contenders with a limit. */
const BUDGET = 8_000;
/** The number of messages of ten turns of the workload, and of five. */
const TEN_TURNS = 24;
const FIVE_TURNS = 12;

/** Our window, as in the table of goals. */
export function summarizingWindow() {
  return contextWindow({ maxTokens: BUDGET, history: [summarize({ model: SUMMARIZER }), lastTurns(10)] });
}

export async function benchTokensSent(report: Report, turns: number): Promise<void> {
  const { adkTalker, langChainTalker } = await import('../extra/context-peers.ts');
  const context = summarizingWindow();
  const talkers = new Map<string, { ledger: Ledger; talker: Talker; settled?: () => Promise<void> }>();
  const add = async (
    name: string,
    open: (ledger: Ledger) => Talker | Promise<Talker>,
    settled?: () => Promise<void>,
  ) => {
    const ledger = new Ledger();
    talkers.set(name, { ledger, talker: await open(ledger), ...(settled && { settled }) });
  };
  const adk = (eventRetentionSize: number) => (ledger: Ledger) =>
    adkTalker(ledger, { tokenThreshold: BUDGET, eventRetentionSize });
  await add(
    'ours',
    (ledger) => genkitTalker({ ledger, context }),
    () => context.settled(),
  );
  await add('no window', (ledger) => genkitTalker({ ledger }));
  await add('ADK, keeps 10 turns', adk(TEN_TURNS));
  await add('ADK, keeps 5 turns', adk(FIVE_TURNS));
  await add('trimMessages', (ledger) => langChainTalker(ledger, BUDGET));

  report.start('tokens sent', turns);
  for (const turn of scriptedTurns(turns)) {
    for (const { ledger, talker, settled } of talkers.values()) {
      ledger.beginTurn();
      await talker.send(turn);
      // The user reads the reply meanwhile.
      await settled?.();
    }
    report.progress(1);
  }
  const ours = talkers.get('ours')!.ledger;
  for (const [peer, { ledger }] of [...talkers].slice(1)) {
    const figure = (what: string, of: (ledger: Ledger) => number) => ({
      name: `${what} over ${turns} turns`,
      unit: 'tokens' as const,
      ours: single(of(ours)),
      theirs: single(of(ledger)),
      peer,
    });
    report.add(
      figure('tokens sent', ({ total }) => total),
      ...(ledger.forSummaries > 0 ? [figure('of these to summarizers', ({ forSummaries }) => forSummaries)] : []),
      { ...figure('largest request', ({ largest }) => largest), goal: { atMost: BUDGET } },
    );
  }
  report.chart({
    file: 'tokens',
    title: 'sent since the session began',
    unit: 'tokens',
    series: [...talkers].map(([who, { ledger }]) => ({ who, values: sums(ledger.byTurn) })),
  });
}

function sums(values: readonly number[]): number[] {
  let sum = 0;
  return values.map((value) => (sum += value));
}
