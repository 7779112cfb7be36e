import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { greet } from '../../samples/session-state/greeting.ts';
import { logIn } from '../../samples/session-state/login.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('the greeting is kept under the output key', async () => {
  expect(await greet()).toEqual({
    before: {},
    after: { last_greeting: 'Hello there! How can I help you today?' },
  });
});

test('the login changes the session and the user, and what is temporary is not kept', async () => {
  expect(await logIn(1_700_000_000_000)).toEqual({
    before: { 'user:login_count': 0, task_status: 'idle' },
    after: { 'user:login_count': 1, task_status: 'active', 'user:last_login_ts': 1_700_000_000_000 },
  });
});

test('the samples run as a program', async () => {
  const args = ['--import', 'tsx', 'samples/session-state/main.ts'];
  const env = { ...process.env, GENKIT_ENV: 'prod' };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env, timeout: 60_000 });
  expect(stdout).toContain(
    'greeting: the state was {} and is {"last_greeting":"Hello there! How can I help you today?"}',
  );
  expect(stdout).toMatch(/login: .* is \{"task_status":"active","user:login_count":1,"user:last_login_ts":\d+\}/);
});
