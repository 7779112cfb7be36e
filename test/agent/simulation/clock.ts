import { vi } from 'vitest';

/** From here on, time advances only in {@link untilDone}. */
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

/** Resolves after this simulated time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Longer than any chain of macrotasks in the runtime without a timer. */
const MACROTASKS = 6;

/** Runs timer after timer until the work is done, or no timer is left. */
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
