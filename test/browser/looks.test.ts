/** What is said is shown as it is meant, in light and dark, on a wide and on a narrow screen. */
import { remoteAgent } from 'genkitx-agents/client';
import { expect, it } from 'vitest';
import type { ChatPage } from './support/chat-page.ts';
import { describePage } from './support/page-setting.ts';
import { modelOf } from './support/sample-in-process.ts';
import { startSample } from './support/sample-process.ts';

const MARKDOWN = `Here is **all** of it, ~~not~~ with [a link](https://example.com/).

| Order | Items | Total |
|---|---|--:|
| 1042 | ${'French press, '.repeat(8)} | €54.50 |

\`\`\`ts
const message: string = "${'a long line '.repeat(12)}";
\`\`\`

![an image](https://example.com/tracker.png) <b>raw</b>`;

const LOOKS = [390, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, height: width === 390 ? 844 : 900, colorScheme })),
);

async function overflow({ page }: ChatPage): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
}

describePage('the looks of the page', (setting) => {
  it('Markdown has tables, links, strikethrough and highlighted code, each in a box that scrolls, and fetches nothing', async () => {
    const { url } = await setting.serve(modelOf(() => MARKDOWN));
    const chat = await setting.open({ url, width: 390, height: 844 });
    const { page } = chat;
    await chat.ask('Show me');
    await chat.settled('Show me');
    const reply = chat.turn(1).locator('.reply');
    expect(await reply.locator('del').textContent()).toBe('not');
    expect(await reply.locator('a').getAttribute('href')).toBe('https://example.com/');
    expect(await reply.locator('td').first().textContent()).toBe('1042');
    expect(await reply.locator('.hljs-keyword').first().textContent()).toBe('const');
    expect(await reply.locator('img, b').count()).toBe(0);
    for (const box of ['pre', '.scroll']) {
      const scrolls = await reply.locator(box).evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);
      expect(scrolls).toBe(true);
    }
    expect(await overflow(chat)).toBe(0);
    for (const look of LOOKS) await chat.takePicture(`markdown-${look.width}-${look.colorScheme}`, look);
    expect(chat.complaints).toEqual([]);
    await page.close();
  });

  it('Fit View shows all of 100 turns', async () => {
    const { url } = await setting.serve(modelOf(() => 'Fine.'));
    const api = remoteAgent({ url: `${url}/api/support` }).chat({ sessionId: 'long' });
    for (let turn = 1; turn <= 100; turn++) await api.send(`Number ${turn}`);
    const chat = await setting.open({ url, place: '#/long' });
    await chat.expectTurns(100);
    // The picture first moves to the latest turn by itself.
    await chat.page.waitForFunction(
      () => {
        const view = document.querySelector<HTMLElement>('.react-flow__viewport')!;
        const isAtRest = view.dataset['seen'] === view.style.transform;
        view.dataset['seen'] = view.style.transform;
        return isAtRest && document.querySelectorAll('.box').length === 100;
      },
      undefined,
      { polling: 250 },
    );
    await chat.button('Fit View').click();
    await chat.page.waitForFunction(() => {
      const pane = document.querySelector('.react-flow')!.getBoundingClientRect();
      const boxes = [...document.querySelectorAll('.box')].map((box) => box.getBoundingClientRect());
      return boxes.length === 100 && boxes.every(({ top, bottom }) => top >= pane.top && bottom <= pane.bottom);
    });
    await chat.takePicture('hundred');
  });

  it('a report is written in the background, and ready', async () => {
    const chat = await setting.open();
    const { page } = chat;
    await chat.say('Write the monthly report', 'in the background');
    await page.getByText('It is ready.').waitFor();
    await page.getByText('Read it').click();
    await page.getByRole('cell', { name: 'delayed' }).waitFor();
    const download = page.waitForEvent('download');
    await chat.button('Download monthly-report.md').click();
    expect((await download).suggestedFilename()).toBe('monthly-report.md');
    for (const look of LOOKS) await chat.takePicture(`report-${look.width}-${look.colorScheme}`, look);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await overflow(chat)).toBe(0);
    expect(chat.complaints).toEqual([]);
  });

  it('a report that takes long shows how far it is, and can be stopped', async () => {
    const { url } = await setting.serve(undefined, { stepMs: 600_000 });
    const chat = await setting.open({ url });
    const { page } = chat;
    await chat.say('Write the monthly report', 'in the background');
    await page.getByText('Order 1042: delivery').waitFor();
    expect(await page.getByRole('progressbar').getAttribute('max')).toBe('7');
    await chat.takePicture('report-running');
    await chat.say('Thanks', 'welcome');
    await chat.button('Stop the report').click();
    await page.getByText('Stopped after 0 of 7 steps.').waitFor();
  });

  it('a report goes on after its server was killed', async () => {
    const folder = await setting.folder();
    let server = await startSample({ DATA_DIR: folder, OFFLINE_PACE_MS: '60' });
    setting.after(() => server.end('SIGKILL'));
    const chat = await setting.open({ url: server.url });
    await chat.say('Write the monthly report', 'in the background');
    await chat.page.getByText(/^Order \d+: /).waitFor();
    chat.serverIsAway = true;
    await server.end('SIGKILL');
    server = await startSample({ DATA_DIR: folder, PORT: String(server.port) });
    await chat.page.getByText('It is ready.').waitFor();
  });

  it.each([390, 1440])(
    '%i px: nothing is wider than the screen, in light and dark, and a question is answered',
    async (width) => {
      const { url } = await setting.serve();
      const looks = LOOKS.filter((look) => look.width === width);
      const chat = await setting.open({ url, ...looks[0] });
      const fits = async (name: string) => {
        for (const look of looks) {
          await chat.page.emulateMedia({ colorScheme: look.colorScheme });
          expect(await overflow(chat)).toBe(0);
          await chat.takePicture(`${name}-${width}-${look.colorScheme}`, look);
        }
      };
      await chat.page.getByText('How can we help?').waitFor();
      await fits('welcome');
      await chat.say('What are my orders?', '3 orders');
      await chat.ask('Refund order 1035, it is late');
      await chat.button('Approve').waitFor();
      await fits('approval');
      await chat.button('Approve').click();
      await chat.turn(2).locator('.reply', { hasText: 'Done' }).waitFor();
      expect(chat.complaints).toEqual([]);
    },
  );
});
