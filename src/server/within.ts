import type { Refusal } from './answer/refusal.ts';

/**
 * Waits for `work` for at most `ms`. With `undefined` there is no limit.
 *
 * @throws Refusal made by `timeOut` when the time is up. The result of `work` is then ignored.
 */
export async function within<T>(ms: number | undefined, work: Promise<T>, timeOut: () => Refusal): Promise<T> {
  if (ms === undefined) {
    return work;
  }
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timeOut()), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
