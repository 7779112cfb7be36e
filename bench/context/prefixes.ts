/** The length of the common beginning of two consecutive requests, which providers cache. */
import { clearToolOutputs, contextWindow, lastTurns, summarize, tokenBudget } from 'genkitx-agents/context';
import { single } from '../measure.ts';
import type { Report } from '../report.ts';
import { scriptedTurns } from './conversation.ts';
import { genkitTalker, SUMMARIZER, type Talker } from './genkit-talker.ts';
import { Ledger, type Line } from './ledger.ts';

const TURNS = 50;
/** The most tokens of a request, for all contenders with a limit. */
const BUDGET = 12_000;
/** The goal: bytes that may differ, in %. */
const MOST_NEW = 10;

const HISTORIES = {
  'lastTurns(20)': () => [lastTurns(20)],
  'tokenBudget(8,000)': () => [tokenBudget(8_000)],
  'clearToolOutputs and lastTurns(20)': () => [clearToolOutputs({ keepTurns: 10 }), lastTurns(20)],
  'a full window of 12,000 tokens': () => [],
  'summarize and lastTurns(10)': () => [summarize({ model: SUMMARIZER }), lastTurns(10)],
};

interface Sent {
  readonly body: Buffer;
  /** Whether a summary was made since the previous request. */
  readonly isCompacted: boolean;
}

/** Records the requests. */
class RequestLedger extends Ledger {
  readonly requests: Sent[] = [];
  #isCompacted = false;

  override agentSent(lines: readonly Line[]): number {
    this.requests.push({ body: Buffer.from(JSON.stringify(lines)), isCompacted: this.#isCompacted });
    this.#isCompacted = false;
    return super.agentSent(lines);
  }

  override summarizerSent(lines: readonly Line[]): number {
    this.#isCompacted = true;
    return super.summarizerSent(lines);
  }
}

export async function benchPrefixes(report: Report): Promise<void> {
  const { adkTalker, langChainTalker } = await import('../extra/context-peers.ts');
  report.start('prefixes of requests', Object.keys(HISTORIES).length + 2);
  const measure = async (open: (ledger: Ledger) => Talker | Promise<Talker>, settled?: () => Promise<void>) => {
    const shares = sharesOf(await play(open, settled));
    report.progress(1);
    return shares;
  };
  const peers = {
    trimMessages: await measure((ledger) => langChainTalker(ledger, BUDGET)),
    ADK: await measure((ledger) => adkTalker(ledger, { tokenThreshold: BUDGET, eventRetentionSize: 24 })),
  };
  for (const [name, history] of Object.entries(HISTORIES)) {
    const context = contextWindow({ maxTokens: BUDGET, history: history() });
    const ours = await measure(
      (ledger) => genkitTalker({ ledger, context }),
      () => context.settled(),
    );
    const peer = name === 'summarize and lastTurns(10)' ? 'ADK' : 'trimMessages';
    const figure = (what: string, of: keyof Shares) => ({
      name: `${name}, ${what}`,
      unit: '%' as const,
      ours: single(ours[of]),
      theirs: single(peers[peer][of]),
      peer,
    });
    const goal = { atMost: MOST_NEW };
    report.add(
      { ...figure('of the request before, not repeated', 'lost'), goal },
      { ...figure('of a request, not as in the one before, save where a cut falls', 'addedWithoutCuts'), goal },
      figure('of a request, not as in the one before', 'added'),
    );
  }
}

async function play(
  open: (ledger: Ledger) => Talker | Promise<Talker>,
  settled?: () => Promise<void>,
): Promise<readonly Sent[]> {
  const ledger = new RequestLedger();
  const talker = await open(ledger);
  for (const turn of scriptedTurns(TURNS)) {
    ledger.beginTurn();
    await talker.send(turn);
    await settled?.();
  }
  return ledger.requests;
}

/** The mean share of bytes after the common beginning of two consecutive requests, in %. */
interface Shares {
  /** Share of the earlier request: cached, but not used again. */
  readonly lost: number;
  /** Share of the later request: not cached, including the new messages. */
  readonly added: number;
  /** The same, only for requests that continue the previous one. */
  readonly addedWithoutCuts: number;
}

/** Leaves out a request after a compaction, because its beginning is new. */
function sharesOf(requests: readonly Sent[]): Shares {
  const lost: number[] = [];
  const added: number[] = [];
  const addedWithoutCuts: number[] = [];
  for (const [i, { body, isCompacted }] of requests.entries()) {
    if (i === 0 || isCompacted) continue;
    const before = requests[i - 1]!.body;
    let same = 0;
    while (same < body.length && body[same] === before[same]) same++;
    lost.push(1 - same / before.length);
    added.push(1 - same / body.length);
    // Without the end of the array.
    if (same >= before.length - 1) addedWithoutCuts.push(added.at(-1)!);
  }
  return { lost: percent(lost), added: percent(added), addedWithoutCuts: percent(addedWithoutCuts) };
}

function percent(shares: readonly number[]): number {
  return (shares.reduce((a, b) => a + b, 0) / shares.length) * 100;
}
