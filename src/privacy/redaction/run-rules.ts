import { describeThrown, unavailable } from '../../errors.ts';
import type { RedactingSettings } from './options.ts';

/**
 * Runs the rules until the signal aborts; `undefined` when they fail and what they could not search is to be written.
 *
 * @throws `UNAVAILABLE` when they fail.
 */
export async function runRules<T>(
  { onFailure }: Pick<RedactingSettings, 'onFailure'>,
  signal: AbortSignal,
  run: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await beforeAbort(run, signal);
  } catch (error) {
    if (onFailure === 'write') return undefined;
    throw unavailable(
      `The privacy rules failed, so nothing was written: ${describeThrown(error)} Try again, or set onFailure: 'write' to save what they could not search.`,
    );
  }
}

function beforeAbort<T>(run: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    run()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop));
  });
}
