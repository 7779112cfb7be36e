/** Checks that compaction does not change the states of the stored snapshots. */
import { createHash } from 'node:crypto';
import { InMemorySessionStore } from 'genkitx-agents';
import { contextWindow, lastTurns, type HistoryStrategy } from 'genkitx-agents/context';
import { single } from '../measure.ts';
import type { Report } from '../report.ts';
import { scriptedTurns } from './conversation.ts';
import { genkitTalker } from './genkit-talker.ts';
import { Ledger } from './ledger.ts';
import { WINDOWS } from './long-talker.ts';

const MOST_REPORT_BYTES = 1_024;

export async function benchStored(report: Report, turns: number): Promise<void> {
  report.start('what is stored', 2);
  const compacted = await play(WINDOWS['summarize and lastTurns'](), turns);
  report.progress(1);
  const without = await play([lastTurns(10)], turns);
  const peer = 'without compaction';
  report.add(
    {
      name: `bytes of the states of all snapshots over ${turns} turns`,
      unit: 'bytes',
      ours: single(compacted.stateBytes),
      theirs: single(without.stateBytes),
      peer,
      goal: { isEqual: true },
    },
    {
      name: 'states of snapshots that are not byte for byte the same',
      unit: 'snapshots',
      ours: single(compacted.hashes.filter((hash, i) => hash !== without.hashes[i]).length),
      goal: { atMost: 0 },
    },
    {
      name: 'largest context report that is kept with a snapshot',
      unit: 'bytes',
      ours: single(compacted.reportBytes),
      theirs: single(without.reportBytes),
      peer,
      goal: { atMost: MOST_REPORT_BYTES },
    },
    { name: `session records beside ${turns} snapshots`, unit: 'bytes', ours: single(compacted.recordBytes) },
  );
}

async function play(history: HistoryStrategy[], turns: number) {
  const sessionId = 'stored';
  const store = new InMemorySessionStore();
  const context = contextWindow({ maxTokens: 8_000, history });
  const ledger = new Ledger();
  const talker = genkitTalker({ ledger, store, context, from: { sessionId } });
  const hashes: string[] = [];
  let stateBytes = 0;
  let reportBytes = 0;
  for (const turn of scriptedTurns(turns)) {
    ledger.beginTurn();
    await talker.send(turn);
    await context.settled();
    const snapshot = (await store.getSnapshot({ sessionId }))!;
    const state = JSON.stringify(snapshot.state);
    hashes.push(createHash('sha256').update(state).digest('hex'));
    stateBytes += Buffer.byteLength(state);
    const { contextReport } = snapshot as { contextReport?: unknown };
    reportBytes = Math.max(reportBytes, Buffer.byteLength(JSON.stringify(contextReport)));
  }
  const records = await store.readRecords({ sessionId });
  return { hashes, stateBytes, reportBytes, recordBytes: Buffer.byteLength(JSON.stringify(records)) };
}
