import { isAborted } from '../../../errors.ts';

/** Runs `work`, at most `attempts` times, until no other commit comes between its reads and its commit. */
export async function retryAborted<T>(attempts: number, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isAborted(error) || attempt === attempts) throw error;
    }
  }
}
