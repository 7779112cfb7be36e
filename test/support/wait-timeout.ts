import { vi } from 'vitest';

/** What a test waits for comes at once on a free machine and late on a busy one. Vitest waits for a second. */
const TIMEOUT_MS = 60_000;

const { waitFor, waitUntil } = vi;

// Files share a process, and this runs before each of them.
if (!('isLong' in waitUntil)) {
  vi.waitFor = (check, options) => waitFor(check, withTimeout(options));
  const longWaitUntil: typeof waitUntil = (check, options) => waitUntil(check, withTimeout(options));
  vi.waitUntil = Object.assign(longWaitUntil, { isLong: true });
}

function withTimeout<T extends object>(options: number | T = {} as T): number | T {
  return typeof options === 'number' ? options : { timeout: TIMEOUT_MS, ...options };
}
