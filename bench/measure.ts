import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** On the checkout's own disk: the system's folder for temporary files may be memory, where flushing costs nothing. */
const SCRATCH = fileURLToPath(new URL('../.tmp', import.meta.url));

/** A set of timings in ms. */
export interface Spread {
  median: number;
  min: number;
  max: number;
  count: number;
}

export function spread(samples: readonly number[]): Spread {
  const sorted = [...samples].toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)!, count: sorted.length };
}

/** A figure that is no timing: of it there is one. */
export function single(value: number): Spread {
  return { median: value, min: value, max: value, count: 1 };
}

/** Runs `work` and answers how long it took, in ms. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

const madeFolders: string[] = [];

/**
 * An empty folder; {@link removeFolders} removes it. On ext4 without a journal a new file takes up to 0.4 ms longer for minutes where many
 * files were just removed. So nothing is removed before all is measured, and folders are asked to lie apart from what was removed before.
 */
export function makeFolder(): string {
  mkdirSync(SCRATCH, { recursive: true });
  // Marks the top of a hierarchy, below which ext4 spreads folders over the disk. Elsewhere there is no such program or flag, and no need.
  spawnSync('chattr', ['+T', SCRATCH], { stdio: 'ignore' });
  const folder = mkdtempSync(join(SCRATCH, 'bench-'));
  madeFolders.push(folder);
  return folder;
}

/** Removes what {@link makeFolder} made. */
export function removeFolders(): void {
  for (const folder of madeFolders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** What a folder holds: the sum of the files' sizes, and what the disk gives them in blocks. */
export async function bytesAtRest(folder: string): Promise<{ bytes: number; onDisk: number; files: number }> {
  let bytes = 0;
  let onDisk = 0;
  let files = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const info = await stat(join(entry.parentPath, entry.name));
    onDisk += info.blocks * 512;
    if (!entry.isFile()) continue;
    bytes += info.size;
    files++;
  }
  return { bytes, onDisk, files };
}

/** Bytes of memory in use after everything that can be freed was, those of buffers included. Needs --expose-gc. */
export function heapInUse(): number {
  if (!globalThis.gc) throw new Error('Run the bench with `npm run bench`: it needs --expose-gc.');
  for (let i = 0; i < 4; i++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
