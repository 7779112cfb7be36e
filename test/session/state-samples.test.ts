import { expect, test, vi } from 'vitest';
import { greet } from '../../samples/session-state/greeting.ts';
import { logIn } from '../../samples/session-state/login.ts';

test('the greeting is kept under the output key', async () => {
  expect(await greet()).toEqual({
    before: {},
    after: { last_greeting: 'Hello there! How can I help you today?' },
  });
});

test('the login changes the session and the user, and temporary keys are not kept', async () => {
  expect(await logIn(1_700_000_000_000)).toEqual({
    before: { 'user:login_count': 0, task_status: 'idle' },
    after: { 'user:login_count': 1, task_status: 'active', 'user:last_login_ts': 1_700_000_000_000 },
  });
});

test('the program prints the results of both', async () => {
  const log = vi.spyOn(console, 'log').mockReturnValue();
  await import('../../samples/session-state/main.ts');
  expect(log.mock.calls.flat()).toEqual([
    'greeting: the state was {} and is {"last_greeting":"Hello there! How can I help you today?"}',
    expect.stringMatching(/^login: .* is \{"task_status":"active","user:login_count":1,"user:last_login_ts":\d+\}$/),
  ]);
  log.mockRestore();
});
