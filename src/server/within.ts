import type { Refusal } from './answer/refusal.ts';

/**
 * Waits for `work` for at most `ms`; `undefined`: without limit.
 *
 * @throws Refusal the one that `timeOut` makes, when the time is up. What becomes of `work` after that is ignored.
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
