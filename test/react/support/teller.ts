/** An agent for the tests of pages: it tells a story word by word, uses tools, and asks before it deletes something. */
import type { RequestListener } from 'node:http';
import express, { type RequestHandler } from 'express';
import { InMemoryStreamManager } from 'genkit/beta';
import { defineAgent, genkit, InMemorySessionStore, z, type SnapshotStore } from 'genkitx-agents';
import { cuttingProxy, type CuttingProxy } from '../../server/support/cutting-proxy.ts';
import { gate, type Gate } from '../../server/support/agents.ts';
import { agentRouter } from 'genkitx-agents/server';
import { listen } from '../../server/support/http.ts';

export const WORDS = ['Once ', 'upon ', 'a ', 'time.'];
export const STORY = WORDS.join('');

export interface TellerOptions {
  /** Default: true. */
  keepsStreams?: boolean;
  /** Default: `keep`. */
  onAbort?: 'keep' | 'discard';
  /** Default: that of `defineAgent`. */
  onConflict?: 'reject';
  /** A folder of pages to serve beside it. */
  pages?: string;
}

export interface Teller {
  /** Where the agent is: through a proxy that can cut connections. */
  url: string;
  proxy: CuttingProxy;
  /** The next stream breaks after this number of chunks. */
  cutAfterChunks: (count: number) => void;
  store: SnapshotStore;
  /** The requests of the model calls, and the runs of the tool `remove`. */
  asked: string[];
  removed: string[];
  /** The reply of `wait` has begun, and `mayEnd` lets it end. */
  waits: Gate;
  mayEnd: Gate;
  stop: () => Promise<void>;
}

/** Replies with the story; `wait`, also as a tool's output, pauses after two words, `weather` calls a tool, `delete` one that needs approval, `crash` fails once. */
export async function serveTeller({
  keepsStreams = true,
  onAbort = 'keep',
  onConflict,
  pages,
}: TellerOptions = {}): Promise<Teller> {
  const ai = genkit({});
  const store = new InMemorySessionStore();
  const gates = { waits: gate(), mayEnd: gate() };
  const asked: string[] = [];
  const removed: string[] = [];
  let hasCrashed = false;
  ai.defineModel({ name: 'teller', apiVersion: 'v2' }, async ({ messages }, { sendChunk, abortSignal }) => {
    const part = messages.at(-1)?.content[0];
    const output = part?.toolResponse?.output;
    const text = part?.text ?? (output === 'wait' ? output : `tool: ${JSON.stringify(output)}`);
    asked.push(text);
    if (text === 'crash' && !hasCrashed) {
      hasCrashed = true;
      throw new Error('The model is down.');
    }
    const call = { weather: ['weather', { city: 'Oslo' }], delete: ['remove', { id: 7 }] }[text];
    if (call) {
      const toolRequest = { name: call[0] as string, ref: 'call-1', input: call[1] };
      return { message: { role: 'model', content: [{ toolRequest }] }, finishReason: 'stop' };
    }
    const words = text.startsWith('tool: ') ? [text] : WORDS;
    let said = '';
    for (const [index, word] of words.entries()) {
      if (text === 'wait' && index === 2) {
        gates.waits.open();
        await Promise.race([gates.mayEnd.opened, new Promise((end) => abortSignal?.addEventListener('abort', end))]);
      }
      abortSignal?.throwIfAborted();
      sendChunk({ content: [{ text: word }] });
      said += word;
      await new Promise(setImmediate);
    }
    return { message: { role: 'model', content: [{ text: said }] }, finishReason: 'stop' };
  });
  const weather = ai.defineTool(
    { name: 'weather', description: 'The weather.', inputSchema: z.object({ city: z.string() }) },
    async ({ city }) => `rain in ${city}`,
  );
  const remove = ai.defineTool(
    { name: 'remove', description: 'Deletes.', inputSchema: z.object({ id: z.number() }) },
    async ({ id }, { interrupt, resumed }) => {
      if (!resumed) interrupt({ what: `number ${id}` });
      removed.push(String(id));
      return 'removed';
    },
  );
  const agent = defineAgent(ai, {
    name: 'teller',
    model: 'teller',
    tools: [weather, remove],
    store,
    onAbort,
    onConflict,
  });
  const app = express();
  let chunksLeft = Infinity;
  app.use(
    '/api',
    cutting(() => chunksLeft--),
  );
  const streamManager = keepsStreams ? new InMemoryStreamManager() : undefined;
  app.use('/api', agentRouter([agent], { anonymous: true, streamManager }));
  if (pages) app.use(express.static(pages));
  const server = await listen(app as RequestListener);
  const proxy = await cuttingProxy(`${server.url}/api`);
  const cutAfterChunks = (count: number) => {
    chunksLeft = count;
  };
  const stop = async () => {
    gates.mayEnd.open();
    await proxy.stop();
    await server.stop();
    await store.close();
  };
  return Object.assign(gates, { url: `${proxy.url}/teller`, proxy, cutAfterChunks, store, asked, removed, stop });
}

/** Closes the connection of a stream after the given number of chunks; later connections stay open. */
function cutting(takeOne: () => number): RequestHandler {
  return (_request, response, next) => {
    const write = response.write.bind(response) as (chunk: unknown, ...more: unknown[]) => boolean;
    response.write = (chunk: unknown, ...more: unknown[]) => {
      if (response.getHeader('content-type')?.toString().startsWith('text/event-stream') && takeOne() === 0) {
        response.flushHeaders();
        response.socket?.end();
      }
      return write(chunk, ...more);
    };
    next();
  };
}
