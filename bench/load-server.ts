/**
 * A server with one agent, in a process of its own: ours or Genkit's, over one of the stores. Its model streams 50 chunks and answers 20 ms
 * later. Started by `load.ts` only.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expressHandler } from '@genkit-ai/express';
import { FirestoreSessionStore as GenkitFirestoreStore } from '@genkit-ai/google-cloud/beta';
import { Firestore } from '@google-cloud/firestore';
import express from 'express';
import { FileSessionStore as GenkitFileStore, genkit, InMemorySessionStore as GenkitInMemoryStore } from 'genkit/beta';
import { defineAgent, FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { FirestoreSessionStore } from 'genkitx-agents/google-cloud';
import { agentRouter } from 'genkitx-agents/server';
import { answerRequests } from './answer-requests.ts';
import { heapInUse } from './measure.ts';

/** The kind of a server. */
export interface LoadServerSpec {
  who: 'ours' | 'genkit';
  store: 'memory' | 'file' | 'firestore';
  /** The folder of the file store. */
  folder: string;
  /** The project of the Firestore store. */
  projectId: string;
}

/** The requests of the parent: the port, the processor time since the process began in ms, the bytes of memory in use. */
export type LoadServerRequest = 'port' | 'processor' | 'memory';

const CHUNKS = Array.from({ length: 50 }, (_, i) => `word ${i} of the reply, `);
const THINKING_MS = 20;

const spec = JSON.parse(process.argv[2]!) as LoadServerSpec;
const ai = genkit({});
ai.defineModel({ name: 'fixed', apiVersion: 'v2' }, async (_, { sendChunk }) => {
  for (const text of CHUNKS) sendChunk({ index: 0, content: [{ text }] });
  await sleep(THINKING_MS);
  return { message: { role: 'model', content: [{ text: CHUNKS.join('') }] }, finishReason: 'stop' };
});
const config = { name: 'agent', model: 'fixed', system: 'Help customers understand their order status.' };

function ourStore() {
  switch (spec.store) {
    case 'memory':
      return new InMemorySessionStore();
    case 'file':
      return new FileSessionStore(spec.folder);
    case 'firestore':
      return new FirestoreSessionStore({ db: new Firestore({ projectId: spec.projectId }) });
  }
}

function genkitsStore() {
  switch (spec.store) {
    case 'memory':
      return new GenkitInMemoryStore();
    case 'file':
      return new GenkitFileStore(spec.folder);
    case 'firestore':
      return new GenkitFirestoreStore({ db: new Firestore({ projectId: spec.projectId }) });
  }
}

const app = express();
if (spec.who === 'ours') {
  app.use(agentRouter([defineAgent(ai, { ...config, store: ourStore() })], { anonymous: true }));
} else {
  app.use(express.json());
  app.post('/agent', expressHandler(ai.defineAgent({ ...config, store: genkitsStore() })));
}
const server = createServer(app as Parameters<typeof createServer>[1]).listen(0, '127.0.0.1');
await new Promise((resolve) => server.once('listening', resolve));

answerRequests((request: LoadServerRequest) => {
  switch (request) {
    case 'port':
      return (server.address() as AddressInfo).port;
    case 'processor': {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    }
    case 'memory':
      return heapInUse();
  }
});
