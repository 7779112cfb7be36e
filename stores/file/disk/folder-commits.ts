/** A change of a folder's entries that has not been made yet. */
interface Pending {
  readonly change: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Changes of folders' entries, each followed by a flush of the folder. Changes that arrive during a flush wait, are then made together, and
 * share the next flush: a thousand sessions wait for a few flushes, not for a thousand. No change is made during a flush, because it would
 * block the event loop until the disk is ready.
 */
export class FolderCommits {
  readonly #flush: (path: string) => Promise<void>;
  readonly #waiting = new Map<string, Pending[]>();

  /** @param flush Flushes the entries of a folder. */
  constructor(flush: (path: string) => Promise<void>) {
    this.#flush = flush;
  }

  /** Makes the change, and resolves when it is on the disk. @throws The error of the change or of the flush. */
  run(path: string, change: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const pending = { change, resolve, reject };
      const waiting = this.#waiting.get(path);
      if (waiting) {
        waiting.push(pending);
      } else {
        this.#waiting.set(path, [pending]);
        void this.#work(path);
      }
    });
  }

  async #work(path: string): Promise<void> {
    for (let batch = this.#waiting.get(path)!; batch.length > 0; batch = this.#waiting.get(path)!) {
      this.#waiting.set(path, []);
      const made = batch.filter(makeChange);
      if (made.length === 0) continue;
      try {
        await this.#flush(path);
        for (const { resolve } of made) resolve();
      } catch (error) {
        for (const { reject } of made) reject(error);
      }
    }
    this.#waiting.delete(path);
  }
}

/** Returns whether the change was made; if not, the promise of its caller is rejected. */
function makeChange({ change, reject }: Pending): boolean {
  try {
    change();
    return true;
  } catch (error) {
    reject(error);
    return false;
  }
}
