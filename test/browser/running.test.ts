/** A turn takes time: what becomes of it when the page, the server, or the person does something meanwhile. */
import { expect, it } from 'vitest';
import { describePage } from './support/page-setting.ts';
import { waitingModel } from './support/sample-in-process.ts';
import { startSample } from './support/sample-process.ts';

const ASKED = 'Tell me a story';
const BEGUN = 'Once upon a time';
const WHOLE = 'Once upon a time there was an end.';

describePage('while a reply comes in', (setting) => {
  /** A server whose model has begun to answer on the page that is opened, and waits. */
  async function begun() {
    const { model, goOn } = waitingModel();
    const { url } = await setting.serve(model);
    const chat = await setting.open({ url });
    await chat.ask(ASKED);
    const reply = chat.turn(1).locator('.reply');
    await reply.getByText(BEGUN).waitFor();
    return { url, chat, page: chat.page, reply, goOn };
  }

  it('a reload goes on with it where it stands, and what was typed stays', async () => {
    const { chat, page, reply, goOn } = await begun();
    await page.keyboard.type('And then');
    await page.reload();
    await reply.getByText(BEGUN).waitFor();
    expect(await page.getByRole('log').getAttribute('aria-busy')).toBe('true');
    goOn();
    await reply.getByText(WHOLE).waitFor();
    await chat.settled(ASKED);
    expect(await chat.field.inputValue()).toBe('And then');
    await chat.expectTree({ boxes: 1, lines: 0, onPath: 1 });
    expect(chat.complaints).toEqual([]);
  });

  it('Stop keeps the question and the words so far, and Retry runs it again', async () => {
    const { chat, page, reply, goOn } = await begun();
    await page.keyboard.type('typed meanwhile');
    await chat.button('Stop').click();
    await page.getByText('This reply was stopped.').waitFor();
    await chat.expectAsked([ASKED]);
    expect(await reply.textContent()).toBe(BEGUN);
    // The focus stays where the user types.
    await page.locator('#message:focus').waitFor();
    await chat.takePicture('stopped');

    await page.reload();
    await chat.button('Retry').click();
    await page.locator('[role=log][aria-busy=true]').waitFor();
    await reply.getByText(BEGUN).waitFor();
    goOn();
    await reply.getByText(WHOLE).waitFor();
    await chat.settled(ASKED);
    await chat.expectAsked([ASKED]);
    await chat.expectTree({ boxes: 1, lines: 0, onPath: 1 });
    expect(await chat.field.inputValue()).toBe('typed meanwhile');
    expect(await page.getByText('You went back').count()).toBe(0);
  });

  it('another conversation can be looked at, and the reply goes on', async () => {
    const { chat, page, reply, goOn } = await begun();
    await chat.button('New conversation').click();
    await page.getByText('How can we help?').waitFor();
    await page.goBack();
    await reply.getByText(BEGUN).waitFor();
    goOn();
    await reply.getByText(WHOLE).waitFor();
    await chat.settled(ASKED);
  });

  it('a second tab shows it as it comes, and another browser hears of it when it is there', async () => {
    const { url, chat, reply, goOn } = await begun();
    const tab = await chat.openTab();
    await tab.turn(1).locator('.reply').getByText(BEGUN).waitFor();
    const other = await setting.open({ url, place: new URL(chat.page.url()).hash });
    await other.page.getByText('connected', { exact: true }).waitFor();
    goOn();
    for (const page of [chat, tab, other]) {
      await page.turn(1).locator('.reply').getByText(WHOLE).waitFor();
      await page.settled(ASKED);
      await page.expectTree({ boxes: 1, lines: 0, onPath: 1 });
    }

    await chat.ask('Another');
    await tab.turn(2).locator('.reply').getByText(BEGUN).waitFor();
    goOn();
    for (const page of [chat, tab, other]) {
      await page.turn(2).locator('.reply').getByText(WHOLE).waitFor();
      await page.settled('Another');
      expect(await page.page.getByText('You went back').count()).toBe(0);
    }
    expect(await reply.count()).toBe(1);
  });

  it('a server that dies says so, and Retry asks it again', async () => {
    const folder = await setting.folder();
    let server = await startSample({ DATA_DIR: folder, OFFLINE_PACE_MS: '150' });
    setting.after(() => server.end('SIGKILL'));
    const chat = await setting.open({ url: server.url });
    const { page } = chat;
    await chat.ask('What is your refund policy?');
    await chat.turn(1).locator('.reply').waitFor();
    await page.keyboard.type('typed meanwhile');
    await server.end('SIGKILL');
    await page.getByText('The server is not answering').waitFor();
    server = await startSample({ DATA_DIR: folder, PORT: String(server.port) });
    await page.getByRole('alert').getByText('The server ended in the middle of this reply.').waitFor();
    await chat.expectAsked(['What is your refund policy?']);
    await chat.turn(1).locator('.reply').getByText('Orders').waitFor();
    await chat.takePicture('died');
    await chat.button('Retry').click();
    await chat.turn(1).locator('.reply', { hasText: 'delivered or late.' }).waitFor();
    await chat.settled('What is your refund policy?');
    await chat.expectTree({ boxes: 1, lines: 0, onPath: 1 });
    expect(await chat.field.inputValue()).toBe('typed meanwhile');
  });
});
