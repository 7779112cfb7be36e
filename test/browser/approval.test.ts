/** A refund asks first. */
import { remoteAgent } from 'genkitx-agents/client';
import { expect, it } from 'vitest';
import { describePage } from './support/page-setting.ts';
import { startSample } from './support/sample-process.ts';

const REFUND = 'Refund order 1035, it is late';

describePage('a refund', (setting) => {
  it('asks first, also after a reload and a restart, and is made when it is approved', async () => {
    const folder = await setting.folder();
    let server = await startSample({ DATA_DIR: folder });
    setting.after(() => server.end('SIGKILL'));
    const chat = await setting.open({ url: server.url });
    const { page } = chat;
    await chat.ask(REFUND);
    const card = page.getByRole('region', { name: 'Refund €46.00 for order 1035?' });
    for (const told of ['Ana Silva <ana@example.com>', '1 × Oak serving board', 'it is late']) {
      await card.getByText(told).waitFor();
    }
    await page.getByText('waits for approval').waitFor();
    await chat.takePicture('approval');
    await page.reload();
    await card.waitFor();
    chat.serverIsAway = true;
    await server.end('SIGTERM');
    server = await startSample({ DATA_DIR: folder, PORT: String(server.port) });
    await page.reload();
    chat.serverIsAway = false;
    await card.getByRole('button', { name: 'Approve' }).click();
    await chat.turn(1).locator('.reply', { hasText: 'Done: I refunded' }).waitFor();
    await chat.settled(REFUND);
    expect(await card.count()).toBe(0);
    await page.locator('#message:focus').waitFor();
    await chat.expectTree({ boxes: 1, lines: 0, onPath: 1 });
    expect(chat.complaints).toEqual([]);
  });

  it('is not made when it is rejected', async () => {
    const chat = await setting.open();
    await chat.ask('Refund order 1031, the lid is chipped');
    await chat.button('Reject').click();
    await chat.turn(1).locator('.reply', { hasText: 'I did not refund order 1031' }).waitFor();
    await chat.settled('Refund order 1031');
    await chat.page.locator('.state .row', { hasText: 'refunds' }).getByText('–').waitFor();
    await chat.say('And 1031?', 'All of it can be refunded');
  });

  it('is made once when two tabs approve it, and both show it', async () => {
    const { url } = await setting.serve();
    const chat = await setting.open({ url });
    await chat.ask(REFUND);
    await chat.button('Approve').waitFor();
    // Of another browser: it hears nothing of what this one starts.
    const other = await setting.open({ url, place: new URL(chat.page.url()).hash });
    const tab = await chat.openTab();
    const pages = [chat, tab, other];
    for (const page of pages) await page.button('Approve').waitFor();
    // In one go, without the checks that a click waits for.
    await Promise.all(
      pages.map((page) => page.button('Approve').evaluate((button: HTMLButtonElement) => button.click())),
    );
    for (const page of pages) {
      await page.turn(1).locator('.reply', { hasText: 'Done: I refunded' }).waitFor();
      await page.settled(REFUND);
      await page.expectTree({ boxes: 1, lines: 0, onPath: 1 });
    }
    const sessionId = new URL(chat.page.url()).hash.split('/')[1]!;
    const snapshot = await remoteAgent({ url: `${url}/api/support` }).getSnapshot({ sessionId });
    const answers = snapshot?.state?.messages?.flatMap(({ content }) => content.filter((part) => part.toolResponse));
    expect(answers?.map((part) => part.toolResponse?.output)).toMatchObject([{}, { outcome: 'refunded' }]);
  });

  it('of another customer is not asked for', async () => {
    const chat = await setting.open();
    await chat.say('Refund order 1038, it came broken', 'no order 1038');
    expect(await chat.button('Approve').count()).toBe(0);
  });
});
