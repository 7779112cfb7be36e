/** The script of a process that runs an agent over a file store; its parent says what it does, and kills it. */
import type { Order, Report, WorkerSpec } from './protocol.ts';

const spec = JSON.parse(process.argv[2]!) as WorkerSpec;

const RealDate = Date;
// Before anything reads the time.
globalThis.Date = class extends RealDate {
  constructor(time: number | string = RealDate.now() + spec.ahead) {
    super(time);
  }
  static override now(): number {
    return RealDate.now() + spec.ahead;
  }
} as DateConstructor;

const { genkit } = await import('genkit/beta');
const { defineAgent, FileSessionStore, recoverRuns } = await import('genkitx-agents');
const { scriptedModel } = await import('../../support/scripted-model.ts');

const tell = (report: Report) => process.send!(report);

const ai = genkit({});
let random = 1;
let answer: (text: string) => void = () => {};

/** A short delay, so that runs can be killed in their middle. */
function aMoment(): Promise<string> {
  random = (random * 48_271) % 2_147_483_647;
  return new Promise((resolve) => setTimeout(resolve, random % 20, 'ok'));
}

const model = scriptedModel(ai, {
  otherwise: ({ abortSignal }) => {
    abortSignal.addEventListener('abort', () => tell({ kind: 'stopped' }), { once: true });
    if (!spec.waits) return aMoment();
    return new Promise((resolve) => {
      answer = resolve;
      tell({ kind: 'asked' });
    });
  },
});
const store = new FileSessionStore(spec.folder);
const save = store.saveSnapshot.bind(store);
store.saveSnapshot = async (...args) => {
  const saved = await save(...args);
  if (saved === null) tell({ kind: 'refused' });
  return saved;
};
const background = { heartbeatIntervalMs: spec.heartbeatIntervalMs, leaseMs: 60_000 };
const agent = defineAgent(ai, { name: 'worker', model: model.name, store, background });

async function detach(sessionId: string): Promise<void> {
  const stream = agent.streamBidi({ sessionId });
  for (const text of ['one', 'two']) stream.send({ message: { role: 'user', content: [{ text }] } });
  stream.send({ message: { role: 'user', content: [{ text: 'three' }] }, detach: true });
  stream.close();
  const { snapshotId, finishReason } = await stream.output;
  if (finishReason === 'detached') tell({ kind: 'detached', sessionId, snapshotId: snapshotId! });
}

process.on('message', (order: Order) => {
  void (async () => {
    if (order.do === 'answer') answer('late');
    if (order.do === 'recover') tell({ kind: 'recovered', runs: (await recoverRuns(ai)).runs });
    if (order.do === 'detach') {
      random = order.seed;
      for (let run = 0; run < order.runs; run++) await detach(`job-${order.seed}-${run}`);
    }
  })();
});
tell({ kind: 'ready' });
