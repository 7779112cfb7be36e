import { vi } from 'vitest';

/** From here on time stands still, except in {@link untilDone}. */
export function stopTheClock(): void {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'],
    now: Date.parse('2026-01-01T00:00:00Z'),
  });
}

export function letTheClockRun(): void {
  vi.clearAllTimers();
  vi.useRealTimers();
}

/** Resolves once so much simulated time has passed. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** More than any chain of macrotasks in the runtime that waits for no timer. */
const MACROTASKS = 6;

/** Goes from timer to timer until the work is done, or nothing could finish it any more. */
export async function untilDone<T>(work: Promise<T>, limitMs: number): Promise<T> {
  const deadline = Date.now() + limitMs;
  const state = { isDone: false };
  const end = () => void (state.isDone = true);
  work.then(end, end);
  for (;;) {
    for (let i = 0; i < MACROTASKS && !state.isDone; i++) await new Promise((resolve) => setImmediate(resolve));
    if (state.isDone) return work;
    if (vi.getTimerCount() === 0) throw new Error('Nothing is left to happen, and yet something is waited for.');
    if (Date.now() > deadline) throw new Error(`Not done after ${limitMs} ms of simulated time.`);
    vi.advanceTimersToNextTimer();
  }
}
