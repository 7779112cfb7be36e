/** What the model saw at each turn. */
import { InMemorySessionStore } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { expect, it } from 'vitest';
import { contextOf } from '../../samples/support/cloud/cloud-support.ts';
import { offlineModel } from '../../samples/support/models/choose-model.ts';
import type { SeenContext } from '../../samples/support/server/api-types.ts';
import type { ChatPage, Look } from './support/chat-page.ts';
import { describePage } from './support/page-setting.ts';
import { SCRIPT } from './support/script.ts';
import { KEYS, serveUsers, type UsersServer } from './support/users-in-process.ts';

type User = keyof typeof KEYS;

const SESSION = 'seen';
const SUMMARY = 'What the model saw';

const bearer = (user: User) => ({ authorization: `Bearer ${KEYS[user]}` });

/** Has the first turns of the script as Ana, and waits for each summary that they make. */
async function talk({ url, store }: UsersServer, turns: number): Promise<string> {
  const agent = remoteAgent({ url: `${url}/api/support`, headers: bearer('ana@example.com') });
  const chat = agent.chat({ sessionId: SESSION });
  const context = contextOf('ana@example.com', 'ana@example.com');
  const summaries = async () => {
    const [chain] = await store.readRecords({ sessionId: SESSION, kind: 'compaction', keys: ['chain'], context });
    return (chain?.value as { records?: unknown[] } | undefined)?.records?.length ?? 0;
  };
  for (const [index, [said]] of SCRIPT.slice(0, turns).entries()) {
    const { interrupts } = await chat.send(said);
    if (interrupts.length > 0) await chat.resume({ restart: interrupts.map((one) => one.restart()) });
    if ((index + 1) % 5 === 0) await expect.poll(summaries).toBe((index + 1) / 5);
  }
  return chat.snapshotId!;
}

async function signIn(chat: ChatPage, user: User): Promise<void> {
  await chat.page.getByLabel('Your key').fill(KEYS[user]);
  await chat.button('Sign in').click();
  await chat.page.getByText(user).first().waitFor();
}

async function readContext({ url }: UsersServer, snapshotId: string, user?: User): Promise<Response> {
  return fetch(`${url}/api/context?${new URLSearchParams({ snapshotId })}`, { headers: user ? bearer(user) : {} });
}

const LOOKS: Look[] = [390, 1440].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, height: width === 390 ? 844 : 900, colorScheme })),
);

describePage('what the model saw', (setting) => {
  it('at turn 12 is a summary of the first turns and those after it, for the owner of the conversation alone', async () => {
    const server = await serveUsers(setting, offlineModel(0));
    const { url } = server;
    await talk(server, 11);
    const ana = await setting.open({ url, place: `#/${SESSION}` });
    const { page } = ana;
    await signIn(ana, 'ana@example.com');
    await ana.expectTurns(11);
    await ana.say(...SCRIPT[11]!);

    const seen = ana.turn(12).locator('.seen');
    const line = seen.getByText(SUMMARY, { exact: true });
    await line.focus();
    await page.keyboard.press('Enter');
    await seen.getByText(/^About [\d,]+ of at most 8,000 tokens; the model counted [\d,]+\./).waitFor();
    await seen.getByRole('row', { name: /^Summary turns 1–10 \d+$/ }).waitFor();
    await seen.getByRole('row', { name: /^Earlier turns turn 11 · 4 messages \d+$/ }).waitFor();
    await seen.getByRole('row', { name: /^Tools 10 tools [\d,]+$/ }).waitFor();
    await seen.getByText('Nothing: turns 1–10 are in the summary.').waitFor();
    // Opened by the keyboard under the last turn, it is in sight.
    expect(await seen.getByRole('heading', { name: 'Left out' }).isVisible()).toBe(true);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    const notes = seen.locator('blockquote');
    await notes.getByText('Notes by the rules of the offline model, not by a language model.').waitFor();
    await notes.getByText('“Where is order 1042?” – looked up order 1042: shipped.').waitFor();
    await notes.getByText(/“Refund it, because it is late” – .*refund: refunded \(€46\.00, R-1035\)\./).waitFor();
    for (const look of LOOKS) {
      await page.setViewportSize({ width: look.width!, height: look.height! });
      await notes.scrollIntoViewIfNeeded();
      await ana.takePicture(`seen-${look.width}-${look.colorScheme}`, look);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBe(0);
    }

    // The first turn saw no summary, and the fifth all four before it.
    await ana.turn(1).getByText(SUMMARY, { exact: true }).click();
    await ana.turn(1).getByText('Nothing.', { exact: true }).waitFor();
    expect(await ana.turn(1).locator('.notes').count()).toBe(0);
    await ana.turn(5).getByText(SUMMARY, { exact: true }).click();
    await ana
      .turn(5)
      .getByRole('row', { name: /^Earlier turns turns 1–4 · \d+ messages \d+$/ })
      .waitFor();

    const ben = await setting.open({ url, place: new URL(page.url()).hash });
    await signIn(ben, 'ben@example.com');
    await ben.page.getByText('This conversation no longer exists.').waitFor();
    expect(await ben.page.getByText(SUMMARY).count()).toBe(0);
    expect([...ana.complaints, ...ben.complaints]).toEqual([]);
  });

  it('is refused to other users by the agent, also where all share one store', async () => {
    const server = await serveUsers(setting, offlineModel(0), new InMemorySessionStore());
    const snapshotId = await talk(server, 6);
    const own = await readContext(server, snapshotId, 'ana@example.com');
    expect((await own.json()) as SeenContext).toMatchObject({
      report: { summary: { to: expect.any(Number) } },
      summary: { text: expect.stringContaining('1042'), model: 'custom' },
    });
    const others = await readContext(server, snapshotId, 'ben@example.com');
    expect([others.status, await others.json()]).toEqual([
      404,
      { status: 'NOT_FOUND', message: 'There is no such turn.' },
    ]);
    expect((await readContext(server, snapshotId)).status).toBe(401);
    expect((await readContext(server, 'no-such-snapshot', 'ana@example.com')).status).toBe(404);
  });
});
