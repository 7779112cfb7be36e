/** The app with users who sign in by a key, as the Cloud Run sample makes it, on a store of the test's. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  FileSessionStore,
  genkit,
  type RecordStore,
  type SessionStoreOptions,
  type SnapshotStore,
} from 'genkitx-agents';
import { readUsers } from '../../../samples/cloud-run/users.ts';
import { defineAgents } from '../../../samples/support/agent/define-agents.ts';
import { FileOrderBook } from '../../../samples/support/agent/file-order-book.ts';
import type { ReportState } from '../../../samples/support/agent/report-agent.ts';
import type { SupportState } from '../../../samples/support/agent/state.ts';
import type { SupportModel } from '../../../samples/support/models/choose-model.ts';
import { OpenRequests } from '../../../samples/support/server/leave-in-time.ts';
import { supportApp } from '../../../samples/support/server/support-app.ts';
import { emptyMemory } from './empty-memory.ts';
import type { Setting } from './page-setting.ts';

export const KEYS = { 'ana@example.com': 'the-key-of-ana-is-long', 'ben@example.com': 'the-key-of-ben-is-long' };

/** Gives each user sessions of their own. */
const snapshotPathPrefix = (options?: SessionStoreOptions) => (options?.context?.auth?.['uid'] as string) ?? '';

export interface UsersServer {
  url: string;
  store: SnapshotStore<SupportState> & RecordStore;
}

/** @param shared The store of all users. Default: files, for each user their own. */
export async function serveUsers(
  setting: Setting,
  model: SupportModel,
  shared?: UsersServer['store'],
): Promise<UsersServer> {
  const folder = await setting.folder();
  const ai = genkit({ plugins: model.plugins });
  const store = shared ?? new FileSessionStore<SupportState>(join(folder, 'sessions'), { snapshotPathPrefix });
  const reports = new FileSessionStore<ReportState>(join(folder, 'reports'), { snapshotPathPrefix });
  const book = await FileOrderBook.open(folder);
  const agents = defineAgents(ai, { book, model, memory: emptyMemory(ai), store, reports, stepMs: 0 });
  const pairs = Object.entries(KEYS).map((pair) => pair.join('='));
  const { app, events } = supportApp({
    agents,
    store,
    model,
    context: readUsers(pairs.join(',')).context,
    signIn: { kind: 'key' },
    pageFolder: fileURLToPath(new URL('../../../dist/support-page', import.meta.url)),
    requests: new OpenRequests(),
    stop: new AbortController().signal,
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  setting.after(async () => {
    events.endAll();
    server.close().closeAllConnections();
    await store.close();
    await reports.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, store };
}
