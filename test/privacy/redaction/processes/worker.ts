/** The script of a process whose agents put planted values into everything that a store keeps. Its parent kills it. */
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamManager } from 'genkit/beta';
import type { Report, WorkerSpec } from './protocol.ts';

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

const { z } = await import('genkit');
const { genkit } = await import('genkit/beta');
const { defineAgent, defineCustomAgent, FileSessionStore, recoverRuns } = await import('genkitx-agents');
const { contextWindow, lastTurns, summarize } = await import('genkitx-agents/context');
const { redacting, redactingStreams } = await import('genkitx-agents/privacy');
const { agentHandler } = await import('genkitx-agents/server');
const { scriptedModel } = await import('../../../support/scripted-model.ts');
const { planted, SECRET } = await import('../plants.ts');

const tell = (report: Report) => process.send!(report);
const privacy = { rules: [planted()], secret: SECRET };
const { medium, values } = spec;
const { inner, streams } = 'folder' in medium ? onFiles(medium.folder) : await onFirestore(medium.project);
// oxlint-disable-next-line typescript/no-explicit-any -- It fits an agent of any state.
const store = redacting<any>(inner, privacy);

let next = spec.from * 7;
const plant = (): string => values[next++ % values.length]!;
const plantNumber = (): number => 770_000_000_000 + (next++ % values.length);

function onFiles(folder: string): { inner: InstanceType<typeof FileSessionStore>; streams: StreamManager } {
  mkdirSync(join(folder, 'streams'), { recursive: true });
  const manager = {
    open: async (id: string) => {
      const add = async (text: unknown) =>
        appendFileSync(join(folder, 'streams', id.replaceAll('/', '-')), String(text));
      return { write: add, done: add, error: add };
    },
    subscribe: async () => ({ unsubscribe: () => {} }),
  };
  return { inner: new FileSessionStore(join(folder, 'store')), streams: manager as StreamManager };
}

async function onFirestore(projectId: string) {
  const { Firestore } = await import('@google-cloud/firestore');
  const { FirestoreSessionStore } = await import('genkitx-agents/google-cloud');
  const { FirestoreStreamManager } = await import('@genkit-ai/firebase/beta');
  const db = new Firestore({ projectId });
  return {
    inner: new FirestoreSessionStore({ db }),
    streams: new FirestoreStreamManager({ db, collection: 'streams' }),
  };
}

const ai = genkit({});
const wait = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5 + (next % 20)));

ai.defineTool({ name: 'find', description: 'Finds.', inputSchema: z.any() }, async () => ({
  text: plant(),
  json: JSON.stringify({ [plant()]: [plant(), plantNumber()], nested: JSON.stringify([plant()]) }),
  [plant()]: plantNumber(),
}));
ai.defineTool({ name: 'pay', description: 'Pays.', inputSchema: z.any() }, async (input, { interrupt, resumed }) => {
  if (!resumed) interrupt({ why: plant() });
  tell({ kind: 'seen', by: 'approval', text: JSON.stringify(input) });
  return `paid ${plant()}`;
});

let controller: AbortController | undefined;
const scripted = scriptedModel(ai, {
  otherwise: async ({ request, sendChunk }) => {
    const { role, content } = request.messages.at(-1)!;
    const text = content[0]?.text ?? '';
    if (text.startsWith('detached')) tell({ kind: 'seen', by: 'detached', text });
    await (spec.holds && text.startsWith('detached') ? new Promise(() => {}) : wait());
    if (text.startsWith('fail')) throw new Error(`The model said ${plant()}`);
    if (text.startsWith('abort')) controller?.abort(new Error(plant()));
    if (text.startsWith('find')) {
      return [
        { text: plant() },
        { toolRequest: { name: 'find', ref: '1', input: { who: plant(), n: plantNumber() } } },
      ];
    }
    if (text.startsWith('pay'))
      return [{ toolRequest: { name: 'pay', ref: '2', input: { to: plant(), n: plantNumber() } } }];
    const answer = `${role} got it: ${plant()}. `;
    for (const piece of answer.match(/.{1,5}/g)!) sendChunk({ content: [{ text: piece }] });
    return answer;
  },
});
const history = [summarize({ everyTurns: 2, summarizer: async () => `Summary of ${plant()}` }), lastTurns(3)];
const background = { heartbeatIntervalMs: 200, leaseMs: 60_000 };
const shared = { store, background, onAbort: 'keep' as const, model: scripted.name, tools: ['find', 'pay'] };
const shop = defineAgent(ai, { ...shared, name: 'shop', context: contextWindow({ history }) });
const keeper = defineCustomAgent(
  ai,
  {
    name: 'keeper',
    store,
    background,
    appName: 'shop',
    userId: () => 'ada',
    scopes: { user: z.any(), app: z.any() },
  },
  async (sess) => {
    await sess.run(async () => {
      sess.addMessages([{ role: 'model', content: [{ text: plant() }], metadata: { [plant()]: plantNumber() } }]);
      sess.updateCustom((custom) => ({ ...custom, [plant()]: { deep: [plant(), { n: plantNumber() }] } }));
      sess.session.addArtifacts([{ name: plant(), parts: [{ text: plant() }], metadata: { by: plant() } }]);
      sess.session.state.set('user:address', plant());
      sess.session.state.set('app:hotline', { n: plantNumber() });
      await wait();
      if (next % 5 === 0) throw Object.assign(new Error(plant()), { detail: { [plant()]: 1 } });
    });
    return {};
  },
);
const handler = agentHandler([shop], { anonymous: true, streamManager: redactingStreams(streams, privacy) });

async function call(agent: typeof shop, init: object, ...inputs: object[]) {
  controller = new AbortController();
  const stream = agent.streamBidi(init, { abortSignal: controller.signal });
  for (const input of inputs) stream.send(input);
  stream.close();
  return stream.output;
}

const says = (text: string) => ({ message: { role: 'user' as const, content: [{ text: `${text} ${plant()}` }] } });

/** Which of eight turns continues in the background. */
const DETACHED = 4;

async function takeTurn(turn: number): Promise<void> {
  const init = { sessionId: `chat ${turn % 4}` };
  switch (turn % 8) {
    case 0:
      await call(shop, init, says('find'));
      return;
    case 1:
      await call(shop, init, says('fail'));
      return;
    case 2:
      await call(shop, init, says('abort'));
      return;
    case 3: {
      const { message } = await call(shop, init, says('pay'));
      const restart = message?.content.filter((part) => part.toolRequest);
      await wait();
      if (restart?.length) await call(shop, init, { resume: { restart } });
      return;
    }
    case DETACHED:
      await call(shop, { sessionId: `job ${turn}` }, says('detached'), { ...says('detached'), detach: true });
      return;
    case 5: {
      const body = JSON.stringify({ data: says('hello'), init });
      const headers = { 'content-type': 'application/json', accept: 'text/event-stream' };
      await (await handler(new Request('http://agents.test/shop', { method: 'POST', headers, body }))).text();
      return;
    }
    case 6:
      await store.writeRecord({ sessionId: 'chat 0', kind: 'note', key: 'n', value: { [plant()]: plantNumber() } });
      return;
    default:
      await call(keeper, { sessionId: 'kept' }, says('keep'));
  }
}

// It lives until it is killed, or its parent is gone.
process.on('disconnect', () => process.exit());
tell({ kind: 'ready' });
if (spec.task === 'numbers') {
  for (const value of values) {
    const createdAt = new Date().toISOString();
    const state = { messages: [{ role: 'user' as const, content: [{ text: value }] }] };
    const id = await store.saveSnapshot(undefined, () => ({ sessionId: 'one', createdAt, status: 'completed', state }));
    const text = (await store.getSnapshot({ snapshotId: id! }))?.state?.messages?.[0]?.content[0]?.text;
    tell({ kind: 'numbered', text: `${value} ${text}` });
  }
} else {
  if (spec.from > 0) tell({ kind: 'recovered', outcomes: (await recoverRuns(ai)).runs.map(({ outcome }) => outcome) });
  for (let turn = spec.from; turn < spec.to; turn++) {
    await takeTurn(turn);
    tell({ kind: 'turns', count: turn + 1 });
    if (spec.holds && turn % 8 === DETACHED) await new Promise(() => {});
  }
}
tell({ kind: 'done' });
