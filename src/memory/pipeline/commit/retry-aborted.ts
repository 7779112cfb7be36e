import { isAborted } from '../../../errors.ts';

/** What `work` answers. Does it anew while another commit comes between its reads and its commit, up to so many times. */
export async function retryAborted<T>(attempts: number, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isAborted(error) || attempt === attempts) throw error;
    }
  }
}
