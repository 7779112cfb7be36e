/** Where the server asks who is there, the page does. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FileSessionStore, genkit } from 'genkitx-agents';
import { expect, it } from 'vitest';
import { readUsers } from '../../samples/cloud-run/users.ts';
import { defineAgents } from '../../samples/support/agent/define-agents.ts';
import { FileOrderBook } from '../../samples/support/agent/file-order-book.ts';
import type { ReportState } from '../../samples/support/agent/report-agent.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { OpenRequests } from '../../samples/support/server/leave-in-time.ts';
import { supportApp } from '../../samples/support/server/support-app.ts';
import { describePage, type Setting } from './page-setting.ts';
import { modelOf } from './sample-in-process.ts';

const KEYS = { 'ana@example.com': 'the-key-of-ana-is-long', 'ben@example.com': 'the-key-of-ben-is-long' };

/** The app as the Cloud Run sample makes it, on files. */
async function serveUsers(setting: Setting): Promise<string> {
  const folder = await setting.folder();
  const model = modelOf(() => 'Fine.');
  const ai = genkit({ plugins: model.plugins });
  const snapshotPathPrefix = (options?: { context?: { auth?: { uid?: string } } }) => options?.context?.auth?.uid ?? '';
  const store = new FileSessionStore<SupportState>(join(folder, 'sessions'), { snapshotPathPrefix });
  const reports = new FileSessionStore<ReportState>(join(folder, 'reports'), { snapshotPathPrefix });
  const agents = defineAgents(ai, { book: await FileOrderBook.open(folder), model, store, reports, stepMs: 0 });
  const users = readUsers(
    Object.entries(KEYS)
      .map((pair) => pair.join('='))
      .join(','),
  );
  const { app, events } = supportApp({
    agents,
    store,
    model,
    context: users.context,
    signIn: { kind: 'key' },
    pageFolder: fileURLToPath(new URL('../../dist/support-page', import.meta.url)),
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
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describePage('a page that asks for a key', (setting) => {
  it('lets in a user with a key, shows them their own conversations, and remembers them when it is loaded again', async () => {
    const url = await serveUsers(setting);
    const chat = await setting.open({ url });
    const { page } = chat;
    chat.serverIsAway = true;
    await page.getByLabel('Your key').fill('an-unknown-key');
    await chat.button('Sign in').click();
    await page.getByText('The server does not know this key.').waitFor();
    await chat.takePicture('sign-in');
    chat.serverIsAway = false;
    await page.getByLabel('Your key').fill(KEYS['ana@example.com']);
    await chat.button('Sign in').click();
    await page.getByText('ana@example.com').waitFor();
    await chat.say('Hello', 'Fine.');
    await page.reload();
    await chat.expectAsked(['Hello']);
    await page.locator('.session').getByText('Hello').waitFor();

    const ben = await setting.open({ url });
    await ben.page.getByLabel('Your key').fill(KEYS['ben@example.com']);
    await ben.button('Sign in').click();
    await ben.page.getByText('ben@example.com').waitFor();
    await ben.page.getByText('Your conversations will be listed here.').waitFor();
    expect([...chat.complaints, ...ben.complaints]).toEqual([]);
  });
});
