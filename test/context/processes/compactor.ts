/** The script of a process that summarizes a session in a file store when its parent says so. */
import { SessionCompactions } from '../../../src/context/compaction/session-compactions.ts';
import { summarize } from '../../../src/context/compaction/summarize.ts';
import { FileSessionStore } from '../../../stores/file/file-session-store.ts';
import { MESSAGES, SESSION, type CompactorOrder, type CompactorReport } from './compactor-protocol.ts';

const tell = (report: CompactorReport) => process.send!(report);

let aheadMs = 0;
let answer = (_text: string): void => {};
const summarizer = () =>
  new Promise<string>((resolve) => {
    answer = resolve;
    tell({ kind: 'asked' });
  });
const compactions = new SessionCompactions({
  sessionId: SESSION.sessionId,
  records: new FileSessionStore(process.argv[2]!),
  context: undefined,
  plan: summarize({ everyTurns: 1, summarizer }).compaction.plan,
  countTokens: () => 1,
  countText: (text) => text.length,
  now: () => Date.now() + aheadMs,
});
const compact = async (): Promise<void> => {
  await compactions.compact({ messages: MESSAGES, snapshotId: SESSION.snapshotId, summarizer });
  tell({ kind: 'done', coveredTo: compactions.inUse(compactions.logOf(MESSAGES))?.to ?? 0 });
};
process.on('message', (order: CompactorOrder) => {
  if (order.kind === 'answer') answer(order.text);
  else {
    aheadMs = order.aheadMs;
    void compact();
  }
});
process.on('disconnect', () => process.exit());
tell({ kind: 'ready' });
