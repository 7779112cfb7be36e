/** `PRIVACY=on npm start`: the sample that replaces personal data and encrypts what is left. */
import { chmod, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { remoteAgent } from 'genkitx-agents/client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { StartReportOutput } from '../../samples/support/agent/tools/start-report.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { runSample, startSample, type Sample } from '../browser/support/sample-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const atEnd: (() => unknown)[] = [];

afterEach(async () => {
  for (const work of atEnd.splice(0)) await work();
});

async function start(env: Record<string, string>): Promise<Sample> {
  const sample = await startSample(env);
  atEnd.push(() => sample.end('SIGKILL'));
  return sample;
}

const agentOf = ({ url }: Sample) => remoteAgent<SupportState>({ url: `${url}/api/support` });

const MAIL = 'jane.roe@example.org';
const PHONE = '+49 30 901820';
const CARD = '4111 1111 1111 1111';

/** What is said, by the customer and the agent, and what is in it that a rule finds. */
const SAID = {
  question: `Where is order 1042? I am ${MAIL}`,
  reply: 'Order **1042** for Ana Silva',
  refund: `Refund order 1035, call me at ${PHONE}, I paid with ${CARD}`,
  report: 'Please write the report',
  MAIL,
  PHONE,
  CARD,
};

/** Talks until a refund waits for approval, with a report in the background. */
async function talk(sample: Sample) {
  const chat = agentOf(sample).chat({ sessionId: 'mine' });
  expect((await chat.send(SAID.question)).text).toContain(SAID.reply);
  await chat.send(SAID.report);
  const { messages } = await agentOf(sample).loadChat({ sessionId: 'mine' });
  const output = messages
    .flatMap(({ content }) => content)
    .find(({ toolResponse }) => toolResponse?.name === 'startReport')?.toolResponse?.output as StartReportOutput;
  const { interrupts } = await chat.send(SAID.refund);
  expect(interrupts).toMatchObject([{ question: { orderId: '1035', reason: expect.stringContaining(PHONE) } }]);
  return output.reportId;
}

/** Which of the things that were said are in clear in the files of a folder, or in their names. */
async function foundIn(folder: string): Promise<string[]> {
  const found = new Set<string>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    // A file that the server replaces meanwhile is found under its next name.
    const bytes = entry.isFile() ? await readFile(path).catch(() => Buffer.alloc(0)) : Buffer.alloc(0);
    for (const [what, text] of Object.entries(SAID)) if (bytes.includes(text) || path.includes(text)) found.add(what);
  }
  return [...found].toSorted();
}

describe('PRIVACY=on npm start', () => {
  it('keeps nothing in clear of what is said, in the middle of an approval and of a report too, and goes on after a restart', async () => {
    const folder = temporaryFolder();
    const data = join(folder, 'data');
    const env = { DATA_DIR: data, PRIVACY: 'on' };
    const first = await start(env);
    const keyFile = join(folder, 'data.key');
    expect(first.stdout).toContain(`Key file   ${keyFile} (new`);
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    const key = await readFile(keyFile, 'utf8');

    const reportId = await talk(first);
    expect(await foundIn(data)).toEqual([]);
    expect(await first.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(await foundIn(data)).toEqual([]);

    const second = await start(env);
    expect(second.stdout).toContain(`Key file   ${keyFile}\n`);
    expect(await readFile(keyFile, 'utf8')).toBe(key);
    const chat = await agentOf(second).loadChat({ sessionId: 'mine' });
    const asked = chat.messages.filter(({ role }) => role === 'user').map(({ content }) => content[0]?.text);
    expect(asked).toEqual([
      'Where is order 1042? I am [EMAIL_1]',
      SAID.report,
      'Refund order 1035, call me at [PHONE_1], I paid with [CREDIT_CARD_1]',
    ]);
    // The refund that waits has what was said.
    expect(chat.interrupts).toMatchObject([{ question: { reason: expect.stringContaining(PHONE) } }]);
    const { text } = await chat.resume({ restart: chat.interrupts.map((question) => question.restart()) });
    expect(text).toContain('€46.00');
    const report = remoteAgent({ url: `${second.url}/api/reporter` });
    const written = () => report.getSnapshot({ snapshotId: reportId });
    await vi.waitUntil(async () => (await written())?.status === 'completed', { interval: 50 });
    expect((await chat.send('Where is it?')).text).toContain('1035');
    expect(await second.end('SIGTERM')).toMatchObject({ code: 0 });
    expect(await foundIn(data)).toEqual([]);
    expect(await readFile(join(data, 'orders.json'), 'utf8')).toContain(
      'call me at [PHONE_1], I paid with [CREDIT_CARD_1]',
    );

    const store = new FileSessionStore(join(data, 'sessions'));
    atEnd.push(() => store.close());
    const refused = { status: 'FAILED_PRECONDITION', message: expect.stringContaining('"mine"') };
    await expect(store.getSnapshot({ sessionId: 'mine' })).rejects.toMatchObject(refused);

    await chmod(keyFile, 0o644);
    expect(await runSample(env)).toMatchObject({
      code: 1,
      stderr: `Other users can read the key file '${keyFile}'; run 'chmod 600' on it, then start again.\n`,
    });
  });

  it('is needed for it: without, everything that is said is in the files', async () => {
    const folder = temporaryFolder();
    await talk(await start({ DATA_DIR: folder }));
    expect(await foundIn(folder)).toEqual(Object.keys(SAID).toSorted());
  });

  it('makes a key that is not in git', async () => {
    const ignored = await readFile(new URL('../../.gitignore', import.meta.url), 'utf8');
    expect(ignored.split('\n')).toContain('*.key');
  });
});
