/** Waiting for background runs. */
import type { SessionSnapshot } from 'genkit/beta/client';
import type { DetachedTask } from 'genkitx-agents/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createAgentApi } from '../../../src/client/chat/agent-api.ts';
import { refusal } from '../support/refusal.ts';
import { scriptedTransport, type ScriptedTransport } from '../support/scripted-transport.ts';

const snapshot = (status: SessionSnapshot['status']): SessionSnapshot => ({
  snapshotId: 's1',
  createdAt: '2026-01-01T00:00:00.000Z',
  status,
});

let transport: ScriptedTransport;
let task: DetachedTask;

const statusOf = async (promise: Promise<unknown>): Promise<string> => (await refusal(promise)).status;

beforeEach(async () => {
  vi.useFakeTimers();
  transport = scriptedTransport({ output: { snapshotId: 's1', finishReason: 'detached' } });
  task = await createAgentApi(transport).chat().detach('go');
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a detached task', () => {
  it('asks the agent to run in the background', () => {
    expect(transport.calls[0]?.input).toMatchObject({ detach: true, message: { role: 'user' } });
    expect(task.snapshotId).toBe('s1');
  });

  it('is refused by an agent that has no snapshot to follow', async () => {
    const chat = createAgentApi(scriptedTransport({ output: { finishReason: 'stop' } })).chat();
    expect(await statusOf(chat.detach('go'))).toBe('FAILED_PRECONDITION');
  });

  it('polls at once, then at every interval, up to the final status', async () => {
    transport.snapshots = [snapshot('pending'), snapshot('pending'), snapshot('failed')];
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const { status } of task.poll({ intervalMs: 500 })) {
        seen.push(status);
      }
    })();
    await vi.advanceTimersByTimeAsync(0);
    expect(seen).toEqual(['pending']);
    await vi.advanceTimersByTimeAsync(499);
    expect(seen).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(501);
    await reading;
    expect(seen).toEqual(['pending', 'pending', 'failed']);
  });

  it.each(['completed', 'failed', 'aborted', 'expired'] as const)('wait ends at %s', async (status) => {
    transport.snapshots = [snapshot(status)];
    expect(await task.wait()).toMatchObject({ status });
  });

  it('wait times out, also while a read hangs', async () => {
    transport.snapshots = [snapshot('pending')];
    const late = statusOf(task.wait({ intervalMs: 100, timeoutMs: 250 }));
    await vi.advanceTimersByTimeAsync(250);
    expect(await late).toBe('DEADLINE_EXCEEDED');
    transport.getSnapshot = () => new Promise(() => {});
    const hanging = statusOf(task.wait({ timeoutMs: 250 }));
    await vi.advanceTimersByTimeAsync(250);
    expect(await hanging).toBe('DEADLINE_EXCEEDED');
  });

  it('wait ends when its caller aborts', async () => {
    transport.snapshots = [snapshot('pending')];
    const controller = new AbortController();
    const waiting = statusOf(task.wait({ abortSignal: controller.signal }));
    await vi.advanceTimersByTimeAsync(1);
    controller.abort();
    expect(await waiting).toBe('CANCELLED');
    expect(await statusOf(task.wait({ abortSignal: controller.signal }))).toBe('CANCELLED');
  });

  it('leaves no timer when the caller stops reading', async () => {
    transport.snapshots = [snapshot('pending')];
    for await (const { status } of task.poll()) {
      expect(status).toBe('pending');
      break;
    }
  });

  it('is NOT_FOUND when its snapshot is gone', async () => {
    transport.snapshots = [undefined];
    expect(await statusOf(task.wait())).toBe('NOT_FOUND');
  });

  it('abort returns the earlier status, within its limits', async () => {
    expect(await task.abort()).toBe('pending');
    transport.abort = () => new Promise(() => {});
    for (const options of [{ timeoutMs: 2 ** 31 }, { intervalMs: 2 ** 31 }, { timeoutMs: Number.NaN }]) {
      expect(await statusOf(task.wait(options))).toBe('INVALID_ARGUMENT');
    }
    const hanging = statusOf(task.abort({ timeoutMs: 10 }));
    await vi.advanceTimersByTimeAsync(10);
    expect(await hanging).toBe('DEADLINE_EXCEEDED');
  });
});
