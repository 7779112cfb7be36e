/** The sample's server in the test's own process, for models of the test's own. */
import { join } from 'node:path';
import { FileSessionStore, genkit, type RecordStore, type SnapshotStore } from 'genkitx-agents';
import { genkitPluginV2, model } from 'genkit/plugin';
import { defineAgents } from '../../../samples/support/agent/define-agents.ts';
import { FileOrderBook } from '../../../samples/support/agent/file-order-book.ts';
import type { ReportState } from '../../../samples/support/agent/report-agent.ts';
import type { SupportState } from '../../../samples/support/agent/state.ts';
import type { SupportModel } from '../../../samples/support/models/choose-model.ts';
import { startServer, type RunningServer } from '../../../samples/support/server/start-server.ts';
import { emptyMemory } from './empty-memory.ts';

export interface ServeOptions {
  /** Default: any free one. */
  port?: number;
  graceMs?: number;
  /** How long one step of a report takes, in ms. Default: 0. */
  stepMs?: number;
  /** Default: files in the folder. */
  store?: SnapshotStore<SupportState> & RecordStore;
}

/** @param folder What `DATA_DIR` would name. */
export async function serve(
  folder: string,
  answering: SupportModel,
  options: ServeOptions = {},
): Promise<RunningServer> {
  const { graceMs, port = 0, stepMs = 0 } = options;
  const ai = genkit({ plugins: answering.plugins });
  const store = options.store ?? new FileSessionStore<SupportState>(join(folder, 'sessions'));
  const reports = new FileSessionStore<ReportState>(join(folder, 'reports'));
  const book = await FileOrderBook.open(folder);
  const agents = defineAgents(ai, { book, model: answering, memory: emptyMemory(ai), store, reports, stepMs });
  const server = await startServer({
    ai,
    agents,
    store,
    model: answering,
    customer: 'ana@example.com',
    host: '127.0.0.1',
    port,
    graceMs,
  });
  return {
    ...server,
    stop: async () => {
      await server.stop();
      await store.close();
      await reports.close();
    },
  };
}

/** A model that answers what `reply` makes of the last message; what that throws is its failure. */
export function modelOf(reply: (text: string) => string): SupportModel {
  return slowModel(async (text) => [reply(text)]);
}

/** What a model says, piece by piece; it says each when it is asked for the next. */
type Pieces = Iterable<string> | AsyncIterable<string>;

function slowModel(reply: (text: string) => Promise<Pieces> | AsyncIterable<string>): SupportModel {
  const made = model(
    { name: 'test/made', supports: { multiturn: true, tools: true } },
    async ({ messages }, { sendChunk, abortSignal }) => {
      let text = '';
      for await (const piece of await reply(messages.at(-1)?.content[0]?.text ?? '')) {
        abortSignal?.throwIfAborted();
        text += piece;
        sendChunk({ role: 'model', content: [{ text: piece }] });
      }
      return { message: { role: 'model', content: [{ text }] }, finishReason: 'stop' };
    },
  );
  const plugins = [genkitPluginV2({ name: 'test', init: () => [made] })];
  return { kind: 'ollama', name: 'test/made', label: 'a made-up model', plugins, use: [] };
}

/** A model that says "Once upon a time", and the rest when it is let. */
export interface WaitingModel {
  model: SupportModel;
  goOn: () => void;
}

export function waitingModel(): WaitingModel {
  let goOn = () => {};
  const model = slowModel(async function* () {
    const isLet = new Promise<void>((resolve) => (goOn = resolve));
    yield 'Once upon a time';
    await isLet;
    yield ' there was an end.';
  });
  return { model, goOn: () => goOn() };
}

/** A model that answers "Fine." and breaks when it is told to. */
export function brittleModel(): SupportModel {
  return modelOf((text) => {
    if (text === 'Break') throw new Error('secret-host:8080 refused');
    return 'Fine.';
  });
}
