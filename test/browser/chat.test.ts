import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { remoteAgent } from 'genkitx-agents/client';
import { chromium, type Browser } from 'playwright-core';
import { build } from 'vite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SessionList } from '../../samples/support/server/api-types.ts';
import { ChatPage } from './chat-page.ts';
import { findBrowser, NO_BROWSER } from './find-browser.ts';
import { brittleModel, serve } from './sample-in-process.ts';
import { startSample, type Sample } from './sample-process.ts';
import { OTHER_WAY, SCRIPT } from './script.ts';

const PAGE = fileURLToPath(new URL('../../dist/support-page/index.html', import.meta.url));
const PAGE_CONFIG = fileURLToPath(new URL('../../samples/support/page/vite.config.ts', import.meta.url));
const SESSION = 'browser-session';

const executablePath = findBrowser();
if (!executablePath) console.warn(`The browser tests are skipped. ${NO_BROWSER}`);

describe.skipIf(!executablePath)('the chat page', () => {
  let browser: Browser;
  let folder: string;
  let server: Sample;

  beforeAll(async () => {
    // `npm test` builds the page before; this is for running this file alone.
    if (!existsSync(PAGE)) await build({ configFile: PAGE_CONFIG, logLevel: 'warn' });
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  });

  afterAll(() => browser?.close());

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'support-sample-'));
    server = await startSample({ DATA_DIR: folder });
  });

  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    await server.end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  it('keeps a conversation of 20 turns through a kill, a restart, a branch and a reload', async () => {
    const api = remoteAgent({ url: `${server.url}/api/support` }).chat({ sessionId: SESSION });
    for (const [said, answered] of SCRIPT.slice(0, 12)) expect((await api.send(said)).text).toContain(answered);

    const chat = await ChatPage.open(browser, server.url, `#/${SESSION}`);
    await chat.expectAsked(SCRIPT.slice(0, 12).map(([said]) => said));
    for (const [said, answered] of SCRIPT.slice(12, 15)) await chat.say(said, answered);

    chat.serverIsAway = true;
    await server.end('SIGKILL');
    await chat.page.getByText('The server is not answering').waitFor();
    server = await startSample({ DATA_DIR: folder, PORT: String(server.port) });
    await chat.page.getByText('The server is not answering').waitFor({ state: 'detached' });
    chat.serverIsAway = false;
    for (const [said, answered] of SCRIPT.slice(15)) await chat.say(said, answered);
    await chat.expectAsked(SCRIPT.map(([said]) => said));

    await chat.goBackTo(17);
    await chat.page.getByText('Your next message starts a new branch').waitFor();
    for (const [said, answered] of OTHER_WAY) await chat.say(said, answered);
    const otherWay = [...SCRIPT.slice(0, 17), ...OTHER_WAY].map(([said]) => said);
    await chat.expectAsked(otherWay);
    expect(await chat.tree()).toEqual({ boxes: 22, lines: 21, onPath: 19 });
    await takePicture(chat, 'branches');

    await chat.page.reload();
    await chat.expectAsked(otherWay);
    expect(await chat.tree()).toEqual({ boxes: 22, lines: 21, onPath: 19 });
    await chat.selectInTree('Bye');
    await chat.expectAsked(SCRIPT.map(([said]) => said));
    expect(await chat.tree()).toEqual({ boxes: 22, lines: 21, onPath: 20 });

    const { items } = (await (await fetch(`${server.url}/api/sessions`)).json()) as SessionList;
    expect(items).toMatchObject([{ sessionId: SESSION, snapshotCount: 22, leafCount: 2 }]);
    expect(chat.complaints).toEqual([]);
  });

  it('shows the tools, the state and the receipt of a refund, and what was known before it', async () => {
    const chat = await ChatPage.open(browser, server.url);
    await chat.say('I am Ana Silva, what are my orders?', '3 orders');
    await chat.say('Where is order 1042?', 'shipped');
    await chat.say('Then refund order 1035, it is late', '€46.00');
    const { page } = chat;
    expect(await page.locator('.tool summary code').allTextContents()).toEqual([
      'listOrders("Ana Silva")',
      'findOrder("1042")',
      'findOrder("1035")',
      'requestRefund("1035", "it is late")',
    ]);
    await page.locator('.tool').last().locator('summary').click();
    await page.getByText('"refundId": "R-1035"').waitFor();
    await page.locator('.state .row', { hasText: 'refunds' }).getByText('1035: 46.00').waitFor();
    await page.getByText('receipt-R-1035.txt').click();
    await page.getByText('Reason     it is late').waitFor();
    await chat.say('Thanks', 'welcome');

    await chat.goBackTo(2);
    await page.locator('.state .row', { hasText: 'orderId' }).getByText('1042').waitFor();
    expect(await page.getByText('receipt-R-1035.txt').count()).toBe(0);

    await chat.say('What is your refund policy?', 'final sale');
    // The conversation went back, the world did not.
    await chat.say('And 1035?', 'It was refunded: R-1035.');
    await chat.goBackTo(1);
    await chat.say('Where is 1031?', 'Enamel kettle');
    await chat.say('Refund it, the lid is chipped', '€39.90');
    expect(await chat.tree()).toEqual({ boxes: 8, lines: 7, onPath: 3 });
    expect(chat.complaints).toEqual([]);
    await page.locator('.tool').last().locator('summary').click();
    await page.getByRole('log').evaluate((log) => log.scrollTo({ top: log.scrollHeight }));
    await takePicture(chat, 'chat');
    await takePicture(chat, 'dark', { colorScheme: 'dark' });
    await takePicture(chat, 'narrow', { width: 390, height: 780 });
  });

  it('can be used with the keyboard alone', async () => {
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    // The field has the focus when the page opens.
    await page.locator('#message:focus').waitFor();
    await page.keyboard.type('Where is order 1042?');
    await page.keyboard.press('Enter');
    await chat.settled('Where is order 1042?');
    await chat.say('And 1035?', 'delayed');

    await page.getByRole('button', { name: 'Go back to turn 1' }).press('Enter');
    await chat.expectTurns(1);
    await page.getByRole('button', { name: 'Turn 2: And 1035?' }).press('Enter');
    await chat.expectTurns(2);
    await page.getByLabel('Your message').focus();
    await page.keyboard.press('Shift+Tab');
    expect(await page.evaluate(() => document.activeElement?.tagName)).not.toBe('BODY');
  });

  it('lists the conversations, opens them, and deletes them with all their branches', async () => {
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    await chat.say('Where is order 1042?', 'shipped');
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByText('How can we help?').waitFor();
    await chat.say('What is your refund policy?', 'final sale');

    await page.getByRole('button', { name: /^Where is order 1042/ }).click();
    await chat.expectAsked(['Where is order 1042?']);
    // Without a place in the address the page opens where it was left.
    await page.goto('about:blank');
    await page.goto(server.url);
    await chat.expectAsked(['Where is order 1042?']);

    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Delete “Where is order 1042?”' }).click();
    await page.getByText('How can we help?').waitFor();
    expect(await page.locator('.session').count()).toBe(1);
    await page.goBack();
    await page.getByText('There is no such conversation any more.').waitFor();
  });

  it('opens at a new conversation when the address makes no sense', async () => {
    const chat = await ChatPage.open(browser, server.url, '#/%');
    await chat.page.getByText('How can we help?').waitFor();
    await chat.say('Where is order 1042?', 'shipped');
    expect(chat.complaints).toEqual([]);
  });

  it('lists older conversations when asked to, and opens one with an odd name', async () => {
    const api = remoteAgent({ url: `${server.url}/api/support` });
    for (const sessionId of ['..', ...Array.from({ length: 50 }, (_, number) => `s${number}`)]) {
      await api.chat({ sessionId }).send('Hello');
    }
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    const listed = (count: number) =>
      page.waitForFunction((wanted) => document.querySelectorAll('.session').length === wanted, count);
    await listed(50);
    await page.getByRole('button', { name: 'Older conversations' }).click();
    await listed(51);
    expect(await page.getByRole('button', { name: 'Older conversations' }).count()).toBe(0);

    await page.locator('.session .open').last().click();
    await chat.expectAsked(['Hello']);
    expect(new URL(page.url()).hash).toMatch(/^#\/\.\.\//);
    page.once('dialog', (dialog) => void dialog.accept());
    await page.locator('.session .remove').last().click();
    await listed(50);
    expect(chat.complaints).toEqual([]);
  });

  it('stops a reply, and gives the message back', async () => {
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    // A reply that never comes.
    await page.route('**/api/support', () => {});
    await page.getByLabel('Your message').fill('Where is order 1042?');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('alert').getByText('You stopped the reply.').waitFor();
    await page.unroute('**/api/support');
    expect(await page.getByLabel('Your message').inputValue()).toBe('Where is order 1042?');
    await page.getByRole('button', { name: 'Send' }).click();
    await chat.expectAsked(['Where is order 1042?']);
  });

  it('says in a sentence what went wrong, and gives the message back', async () => {
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    const failed = { finishReason: 'failed', error: { status: 'UNAVAILABLE', message: 'The model is overloaded' } };
    const body = `data: ${JSON.stringify({ result: failed })}\n\n`;
    await page.route('**/api/support', (route) => route.fulfill({ contentType: 'text/event-stream', body }), {
      times: 1,
    });
    await page.getByLabel('Your message').fill('Where is order 1042?');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('The model is overloaded.').waitFor();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await page.getByLabel('Your message').inputValue()).toBe('Where is order 1042?');
  });

  it('shows a turn that failed, and goes on from the one before', async () => {
    const brittle = await serve(folder, brittleModel());
    const chat = await ChatPage.open(browser, brittle.url);
    const { page } = chat;
    await page.getByText('a brittle model').waitFor();
    await chat.say('Hello', 'Fine.');
    await page.getByLabel('Your message').fill('Break');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('Something went wrong inside the agent.').waitFor();
    await page.getByRole('button', { name: 'Turn 2: Break' }).click();
    await chat.expectAsked(['Hello', 'Break']);
    await page.getByRole('alert').getByText('Your next message goes on from the turn before.').waitFor();
    await page.getByLabel('Your message').fill('Go on');
    await page.keyboard.press('Enter');
    await chat.settled('Go on');
    await chat.expectAsked(['Hello', 'Go on']);
    await page.context().close();
    await brittle.stop();
  });

  it('leaves a reply alone that is not wanted any more when one goes back', async () => {
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    await chat.say('Where is order 1042?', 'shipped');
    await chat.say('And 1035?', 'delayed');
    await page.route('**/api/support', () => {});
    await page.getByLabel('Your message').fill('Refund it');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Stop' }).waitFor();
    await page.goBack();
    await chat.expectAsked(['Where is order 1042?']);
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.unroute('**/api/support');
    await chat.say('And 1031?', 'Enamel kettle');
    await chat.expectAsked(['Where is order 1042?', 'And 1031?']);
  });

  it('keeps what is being typed while the server is away', async () => {
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    await page.getByText('connected', { exact: true }).waitFor();
    await page.getByLabel('Your message').fill('Where is order 1042?');
    await server.end('SIGTERM');
    await page.getByText('The server is not answering').waitFor();
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
    server = await startSample({ DATA_DIR: folder, PORT: String(server.port) });
    await page.getByRole('button', { name: 'Send' }).click();
    await chat.expectAsked(['Where is order 1042?']);
  });

  it('shows one part at a time on a narrow screen', async () => {
    const chat = await ChatPage.open(browser, server.url);
    const { page } = chat;
    await page.setViewportSize({ width: 390, height: 780 });
    await page.getByLabel('Your message').fill('Where is order 1042?');
    await page.keyboard.press('Enter');
    await chat.expectAsked(['Where is order 1042?']);
    await page.getByRole('button', { name: 'Branches' }).click();
    await page.getByRole('button', { name: 'Turn 1: Where is order 1042?' }).click();
    // Choosing a turn shows it.
    await page.getByRole('article', { name: 'Turn 1' }).waitFor();
    await page.getByRole('button', { name: 'Conversations' }).click();
    await page.getByRole('button', { name: 'New conversation' }).waitFor();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow).toBe(0);
  });
});

interface Look {
  colorScheme?: 'dark' | 'light';
  width?: number;
  height?: number;
}

/** For people: `SCREENSHOT_DIR` names the folder. */
async function takePicture(chat: ChatPage, name: string, look: Look = {}): Promise<void> {
  const folder = process.env.SCREENSHOT_DIR;
  if (!folder) return;
  const { colorScheme = 'light', width = 1360, height = 860 } = look;
  await chat.page.emulateMedia({ colorScheme });
  await chat.page.setViewportSize({ width, height });
  await chat.page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
}
