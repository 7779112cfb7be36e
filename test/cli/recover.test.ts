/** A background run whose process is killed, taken over by the built command. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { buildPackage, DIST, runBuilt } from './support/built-cli.ts';
import { jsonLinesOf } from './support/run-cli.ts';

beforeAll(buildPackage);

/** An app with two runs. Its model never answers in the process that is killed, and logs each call in other processes. */
const APP = `
  import { appendFileSync } from 'node:fs';
  import { defineAgent, FileSessionStore, genkit } from ${JSON.stringify(join(DIST, 'index.mjs'))};
  export const ai = genkit({});
  export const store = new FileSessionStore('data', { durability: 'fast' });
  let asked = 0;
  let bothAsked;
  const running = new Promise((resolve) => (bothAsked = resolve));
  ai.defineModel({ name: 'writer', apiVersion: 'v2' }, async ({ messages }) => {
    if (process.env.DIES) {
      if (++asked === 2) bothAsked();
      return new Promise(() => setInterval(() => {}, 1000));
    }
    const { text } = messages.at(-1).content[0];
    appendFileSync('calls', text + '\\n');
    if (text === 'Fail.') throw new Error('The model is down.');
    return { message: { role: 'model', content: [{ text: 'The report.' }] }, finishReason: 'stop' };
  });
  const background = { heartbeatIntervalMs: 100, leaseMs: 500 };
  export const agent = defineAgent(ai, { name: 'report', model: 'writer', store, background });
  if (process.env.DIES) {
    await agent.chat({ sessionId: 'f' }).detach('Fail.');
    await agent.chat({ sessionId: 's' }).detach('Write the report.');
    await running;
    console.log('They run.');
  }
`;

it('runs recover continues the runs of a process that was killed, once and to their ends, and exits with 1 when one fails', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'app.mjs'), APP);
  const env = { ...process.env, DIES: 'yes' };
  const dying = spawn(process.execPath, ['app.mjs'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void dying.kill('SIGKILL'));
  const closed = once(dying, 'close');
  await once(dying.stdout, 'data');
  dying.kill('SIGKILL');
  expect(await closed).toEqual([null, 'SIGKILL']);

  const cli = (...args: string[]) => runBuilt([...args, '--json', '-s', './app.mjs#store'], folder);
  // Heartbeats decide which session was written last.
  const linesBySession = (out: string) =>
    jsonLinesOf(out).toSorted((one, other) => String(one['sessionId']).localeCompare(String(other['sessionId'])));
  const listed = async () => linesBySession((await cli('runs', 'list')).out);
  await expect.poll(listed, { timeout: 60_000 }).toMatchObject([
    { sessionId: 'f', agent: 'report', generation: 1, state: 'expired' },
    { sessionId: 's', agent: 'report', generation: 1, state: 'expired' },
  ]);

  const recovered = await cli('runs', 'recover', '--app', './app.mjs#ai');
  expect(recovered.code).toBe(1);
  expect(recovered.err).toContain('The model is down.');
  expect(recovered.err).toMatch(/Taken over: 2 runs, of which 1 did not complete.\n$/);
  expect(linesBySession(recovered.out)).toMatchObject([
    { sessionId: 'f', generation: 2, status: 'failed' },
    { sessionId: 's', generation: 2, status: 'completed' },
  ]);
  const again = await cli('runs', 'recover', '--app', './app.mjs#ai');
  expect(again).toMatchObject({ code: 0, out: '', err: 'Taken over: 0 runs\n' });

  const calls = readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n');
  expect(calls.toSorted()).toEqual(['Fail.', 'Write the report.']);
  const store = new FileSessionStore(join(folder, 'data'));
  const { items } = await store.listSnapshots({ sessionId: 's' });
  expect(items).toMatchObject([{ status: 'completed' }]);
  const { state } = (await store.getSnapshot({ sessionId: 's' }))!;
  expect(state?.messages?.map(({ content }) => content[0]?.text)).toEqual(['Write the report.', 'The report.']);
  await store.close();
});
