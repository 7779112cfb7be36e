import { InMemorySessionStore } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { expect, it } from 'vitest';
import type { SessionList } from '../../samples/support/server/api-types.ts';
import { describePage } from './support/page-setting.ts';
import { brittleModel } from './support/sample-in-process.ts';
import { startSample } from './support/sample-process.ts';
import { OTHER_WAY, SCRIPT, type Said } from './support/script.ts';

const SESSION = 'browser-session';

async function sayOverHttp(url: string, turns: readonly Said[]): Promise<void> {
  const chat = remoteAgent({ url: `${url}/api/support` }).chat({ sessionId: SESSION });
  for (const [said, answered] of turns) {
    let reply = await chat.send(said);
    const { interrupts } = reply;
    if (interrupts.length > 0) reply = await chat.resume({ restart: interrupts.map((one) => one.restart()) });
    expect(reply.text).toContain(answered);
  }
}

describePage('the chat page', (setting) => {
  it('keeps a conversation of 20 turns through a kill, a restart, a branch and a reload', async () => {
    const folder = await setting.folder();
    let server = await startSample({ DATA_DIR: folder });
    setting.after(() => server.end('SIGKILL'));
    await sayOverHttp(server.url, SCRIPT.slice(0, 14));
    const chat = await setting.open({ url: server.url, place: `#/${SESSION}` });
    await chat.expectAsked(SCRIPT.slice(0, 14).map(([said]) => said));
    await chat.say(...SCRIPT[14]!);

    chat.serverIsAway = true;
    await server.end('SIGKILL');
    await chat.page.getByText('The server is not answering').waitFor();
    server = await startSample({ DATA_DIR: folder, PORT: String(server.port) });
    await chat.page.getByText('The server is not answering').waitFor({ state: 'detached' });
    chat.serverIsAway = false;
    await chat.say(...SCRIPT[15]!);
    await sayOverHttp(server.url, SCRIPT.slice(16));
    await chat.expectAsked(SCRIPT.map(([said]) => said));

    await chat.goBackTo(17);
    await chat.page.getByText('Your next message starts a new branch').waitFor();
    for (const turn of OTHER_WAY) await chat.say(...turn);
    const otherWay = [...SCRIPT.slice(0, 17), ...OTHER_WAY].map(([said]) => said);
    await chat.expectAsked(otherWay);
    await chat.expectTree({ boxes: 22, lines: 21, onPath: 19 });
    await chat.takePicture('branches');

    await chat.page.reload();
    await chat.expectAsked(otherWay);
    await chat.expectTree({ boxes: 22, lines: 21, onPath: 19 });
    await chat.selectInTree('Bye');
    await chat.expectAsked(SCRIPT.map(([said]) => said));
    await chat.expectTree({ boxes: 22, lines: 21, onPath: 20 });

    const { items } = (await (await fetch(`${server.url}/api/sessions`)).json()) as SessionList;
    expect(items).toMatchObject([{ sessionId: SESSION, leafCount: 2 }]);
    expect(chat.complaints).toEqual([]);
  });

  it('shows the tools, the state and the receipt of a refund, and what was known before it', async () => {
    const { url } = await setting.serve();
    const chat = await setting.open({ url });
    await chat.say('I am Ana Silva, what are my orders?', '3 orders');
    await chat.say('Where is order 1042?', 'shipped');
    await chat.say('Then refund order 1035, it is late', '€46.00', 'approved');
    const { page } = chat;
    expect(await page.locator('.tool summary code').allTextContents()).toEqual([
      'listOrders()',
      'findOrder("1042")',
      'findOrder("1035")',
      'requestRefund("1035", "it is late")',
    ]);
    await page.locator('.tool').last().locator('summary').click();
    await page.getByText('"refundId": "R-1035"').waitFor();
    await page.locator('.state .row', { hasText: 'refunds' }).getByText('1035: 46.00').waitFor();
    await page.getByText('receipt-R-1035.txt').click();
    await page.getByText('Reason     it is late').waitFor();
    const download = page.waitForEvent('download');
    await chat.button('Download receipt-R-1035.txt').click();
    expect((await download).suggestedFilename()).toBe('receipt-R-1035.txt');
    await chat.say('Keep it brief', 'brief');
    await page.locator('.state .row', { hasText: 'user:style' }).getByText('brief').waitFor();
    await page.getByText('Raw state').click();
    await page.locator('.raw').getByText('"orderId": "1035"').first().waitFor();
    await page.getByText('Raw state').click();

    await chat.goBackTo(2);
    await page.locator('.state .row', { hasText: 'orderId' }).getByText('1042').waitFor();
    expect(await page.getByText('receipt-R-1035.txt').count()).toBe(0);

    await chat.say('What is your refund policy?', 'final sale');
    await chat.say('Answer in full again', 'in full');
    // The conversation went back, the world did not.
    await chat.say('And 1035?', 'It was refunded: R-1035.');
    await chat.goBackTo(1);
    await chat.say('Where is 1031?', 'Enamel kettle');
    await chat.ask('Refund it, the lid is chipped');
    await chat.button('Approve').waitFor();
    await chat.takePicture('chat', { width: 1360, height: 860 });
    await chat.button('Approve').click();
    await chat.turn(3).locator('.reply', { hasText: '€39.90' }).waitFor();
    await chat.settled('Refund it');
    await chat.expectTree({ boxes: 9, lines: 8, onPath: 3 });
    expect(chat.complaints).toEqual([]);
  });

  it('edits a message and regenerates a reply as branches, of the first turn too', async () => {
    const chat = await setting.open();
    const { page } = chat;
    await chat.say('Where is order 1042?', 'shipped');
    await chat.say('Thanks', 'welcome');
    await chat.turn(1).getByRole('button', { name: 'Edit message' }).click();
    await page.locator('[aria-label="Edited message"]:focus').fill('Where is order 1035?');
    await page.keyboard.press('Enter');
    await chat.settled('Where is order 1035?');
    await chat.expectAsked(['Where is order 1035?']);
    await chat.expectTree({ boxes: 3, lines: 1, onPath: 1 });

    await chat.say('Thanks', 'welcome');
    await chat.turn(2).getByRole('button', { name: 'Regenerate' }).click();
    await chat.expectTree({ boxes: 5, lines: 3, onPath: 2 });
    await chat.expectAsked(['Where is order 1035?', 'Thanks']);
    await chat.turn(1).getByText('2 branches from here').waitFor();
    // The page does not say that the user went back.
    expect(await page.getByText('You went back').count()).toBe(0);
    // An edit that is left alone gives the focus back.
    await chat.turn(2).getByRole('button', { name: 'Edit message' }).click();
    await page.keyboard.press('Escape');
    await page.locator('[aria-label="Edit message"]:focus').waitFor();
    expect(chat.complaints).toEqual([]);
  });

  it('shows the turn that an edit made, also when it is saved before the page has read where it begins', async () => {
    const chat = await setting.open();
    const { page } = chat;
    await chat.say('Where is order 1042?', 'shipped');
    await page.route('**/api/snapshots*', async (route) => {
      await page.waitForFunction(() => !Object.keys(localStorage).some((key) => key.startsWith('support.turn:')));
      await route.continue();
    });
    await chat.turn(1).getByRole('button', { name: 'Edit message' }).click();
    await page.locator('[aria-label="Edited message"]:focus').fill('Where is order 1035?');
    await page.keyboard.press('Enter');
    await chat.settled('Where is order 1035?');
    await chat.expectAsked(['Where is order 1035?']);
  });

  it('copies a reply, and says when each turn was and what it used', async () => {
    const chat = await setting.open();
    await chat.page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await chat.say('Where is order 1042?', 'shipped');
    await chat.turn(1).getByRole('button', { name: 'Copy reply' }).click();
    await chat.turn(1).getByText('Copied').waitFor();
    expect(await chat.page.evaluate(() => navigator.clipboard.readText())).toContain('**shipped**');
    expect(await chat.turn(1).locator('.tokens').textContent()).toMatch(/^\d[\d,]* tokens$/);
    const at = await chat.turn(1).locator('time').getAttribute('datetime');
    expect(Date.parse(at ?? '')).not.toBeNaN();
  });

  it('can be used with the keyboard alone', async () => {
    const chat = await setting.open();
    const { page } = chat;
    // The field has the focus when the page opens.
    await page.locator('#message:focus').waitFor();
    await page.keyboard.type('Where is order 1042?');
    await page.keyboard.press('Enter');
    await chat.settled('Where is order 1042?');
    await chat.say('And 1035?', 'delayed');

    await chat.button('Go back to turn 1').press('Enter');
    await chat.expectTurns(1);
    // The button is gone; the next thing to do is to type.
    await page.locator('#message:focus').waitFor();
    await chat.button('Turn 2: And 1035?').press('Enter');
    await chat.expectTurns(2);
    // The focus stays where the user is.
    await page.locator('.box:focus', { hasText: 'And 1035?' }).waitFor();
    await chat.field.focus();
    await page.keyboard.press('Shift+Tab');
    expect(await page.evaluate(() => document.activeElement?.tagName)).not.toBe('BODY');
  });

  it('lists the conversations, finds them, opens them, and deletes them with all their branches', async () => {
    const { url } = await setting.serve();
    const chat = await setting.open({ url });
    const { page } = chat;
    await chat.say('Where is order 1042?', 'shipped');
    await chat.button('New conversation').click();
    await page.getByText('How can we help?').waitFor();
    await chat.say('What is your refund policy?', 'final sale');

    await page.getByLabel('Search conversations').fill('1042');
    await page.waitForFunction(() => document.querySelectorAll('.session').length === 1);
    await chat.button(/^Where is order 1042/).click();
    await chat.expectAsked(['Where is order 1042?']);
    await page.getByLabel('Search conversations').fill('');
    // Without a place in the address the page opens where it was left.
    await page.goto('about:blank');
    await page.goto(url);
    await chat.expectAsked(['Where is order 1042?']);

    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByText('Where is order 1042?').first().hover();
    await chat.button('Delete “Where is order 1042?”').click();
    await page.getByText('How can we help?').waitFor();
    await page.waitForFunction(() => document.querySelectorAll('.session').length === 1);
    await page.goBack();
    await page.getByText('This conversation no longer exists.').waitFor();
  });

  it('renames a conversation, where the store keeps titles', async () => {
    const { url } = await setting.serve(undefined, { store: new InMemorySessionStore() });
    const chat = await setting.open({ url });
    const { page } = chat;
    await chat.say('Where is order 1042?', 'shipped');
    await page.locator('.session').hover();
    await chat.button('Rename “Where is order 1042?”').click();
    await page.locator('[aria-label="Title"]:focus').fill('The French press');
    await page.keyboard.press('Enter');
    await page.locator('.session .title', { hasText: 'The French press' }).waitFor();
    await chat.say('Thanks', 'welcome');
    await page.reload();
    await page.locator('.session .title', { hasText: 'The French press' }).waitFor();
    await page.getByLabel('Search conversations').fill('french');
    await expect.poll(() => page.locator('.session').count()).toBe(1);
    expect(chat.complaints).toEqual([]);
  });

  it('opens at a new conversation when the address makes no sense', async () => {
    const chat = await setting.open({ place: '#/%' });
    await chat.page.getByText('How can we help?').waitFor();
    await chat.say('Where is order 1042?', 'shipped');
    expect(chat.complaints).toEqual([]);
  });

  it('lists older conversations when asked to, and opens one with an odd name', async () => {
    const { url } = await setting.serve();
    const api = remoteAgent({ url: `${url}/api/support` });
    for (const sessionId of ['..', ...Array.from({ length: 50 }, (_, number) => `s${number}`)]) {
      await api.chat({ sessionId }).send('Hello');
    }
    const chat = await setting.open({ url });
    const { page } = chat;
    const listed = (count: number) =>
      page.waitForFunction((wanted) => document.querySelectorAll('.session').length === wanted, count);
    await listed(50);
    await chat.button('Older conversations').click();
    await listed(51);
    expect(await chat.button('Older conversations').count()).toBe(0);

    await page.locator('.session .open').last().click();
    await chat.expectAsked(['Hello']);
    expect(new URL(page.url()).hash).toBe('#/..');
    page.once('dialog', (dialog) => void dialog.accept());
    await page.locator('.session').last().hover();
    await page.locator('.session').last().getByRole('button', { name: 'Delete' }).click();
    await listed(50);
    expect(chat.complaints).toEqual([]);
  });

  it('shows the id of what failed, runs it again, and counts it as no branch', async () => {
    const { url } = await setting.serve(brittleModel());
    const chat = await setting.open({ url });
    const { page } = chat;
    await page.getByText('a made-up model').waitFor();
    await chat.say('Hello', 'Fine.');
    await chat.ask('Break');
    const alert = page.getByRole('alert');
    await alert.getByText('Something went wrong inside the agent.').waitFor();
    const errorId = await alert.locator('code').textContent();
    expect(errorId).toMatch(/^[\w-]{8,}$/);
    await chat.expectAsked(['Hello', 'Break']);
    await chat.expectTree({ boxes: 1, lines: 0, onPath: 1 });
    expect(await page.getByText('You went back').count()).toBe(0);

    // It is there still when the page is loaded again.
    await page.reload();
    await alert.getByText(errorId!).waitFor();
    await chat.button('Retry').click();
    await alert.getByText(errorId!).waitFor({ state: 'detached' });
    await alert.getByText('Something went wrong inside the agent.').waitFor();
    await chat.button('Dismiss').click();
    await chat.expectAsked(['Hello']);
    await chat.ask('Go on');
    await chat.settled('Go on');
    await chat.expectAsked(['Hello', 'Go on']);
    await chat.expectTree({ boxes: 2, lines: 1, onPath: 2 });
  });

  it('keeps what is being typed while the server is away', async () => {
    const folder = await setting.folder();
    let server = await startSample({ DATA_DIR: folder });
    setting.after(() => server.end('SIGKILL'));
    const chat = await setting.open({ url: server.url });
    const { page } = chat;
    await page.getByText('connected', { exact: true }).waitFor();
    await chat.field.fill('Where is order 1042?');
    await server.end('SIGTERM');
    await page.getByText('The server is not answering').waitFor();
    expect(await chat.button('Send').isDisabled()).toBe(true);
    server = await startSample({ DATA_DIR: folder, PORT: String(server.port) });
    await chat.button('Send').click();
    await chat.expectAsked(['Where is order 1042?']);
  });

  it('shows one part at a time on a narrow screen', async () => {
    const chat = await setting.open({ width: 390, height: 844 });
    const { page } = chat;
    await chat.ask('Where is order 1042?');
    await chat.settled('Where is order 1042?');
    await chat.button('Branches').click();
    await chat.button('Turn 1: Where is order 1042?').click();
    // Choosing a turn shows it.
    await chat.turn(1).waitFor();
    await chat.button('Conversations').click();
    await chat.button('New conversation').waitFor();
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow).toBe(0);
  });
});
