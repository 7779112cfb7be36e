/** The sample's server in the test's own process, for models of the test's own. */
import { genkit, InMemorySessionStore } from 'genkitx-agents';
import { genkitPluginV2, model } from 'genkit/plugin';
import { FileOrderBook } from '../../samples/support/agent/file-order-book.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { defineSupportAgent } from '../../samples/support/agent/support-agent.ts';
import type { SupportModel } from '../../samples/support/models/choose-model.ts';
import { startServer, type RunningServer } from '../../samples/support/server/start-server.ts';

/** @param folder What `DATA_DIR` would name. */
export async function serve(folder: string, answering: SupportModel, graceMs?: number): Promise<RunningServer> {
  const ai = genkit({ plugins: answering.plugins });
  const store = new InMemorySessionStore<SupportState>();
  const agent = defineSupportAgent(ai, { book: await FileOrderBook.open(folder), model: answering, store });
  const { kind, label } = answering;
  return startServer({ agent, store, hello: { model: { kind, label } }, host: '127.0.0.1', port: 0, graceMs });
}

/** A model that answers "Fine." and breaks when it is told to. */
export function brittleModel(): SupportModel {
  const brittle = model({ name: 'test/brittle', supports: { multiturn: true, tools: true } }, async ({ messages }) => {
    if (messages.at(-1)?.content[0]?.text === 'Break') throw new Error('secret-host:8080 refused');
    return { message: { role: 'model', content: [{ text: 'Fine.' }] }, finishReason: 'stop' };
  });
  const plugins = [genkitPluginV2({ name: 'test', init: () => [brittle] })];
  return { kind: 'ollama', name: 'test/brittle', label: 'a brittle model', plugins, use: [] };
}
