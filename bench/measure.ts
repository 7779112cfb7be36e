import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** On the checkout's disk, because the system's folder for temporary files may be in memory, where a flush costs nothing. */
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

/** A figure with one value, for example a count. */
export function single(value: number): Spread {
  return { median: value, min: value, max: value, count: 1 };
}

/** Runs `work` and returns its duration in ms. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e6;
}

const madeFolders: string[] = [];

/**
 * An empty folder; {@link removeFolders} removes it. On ext4 without a journal, new files near many removed files take up to 0.4 ms longer for
 * minutes. So folders are removed only after all measurements, and new folders are placed away from removed ones.
 */
export function makeFolder(): string {
  mkdirSync(SCRATCH, { recursive: true });
  // Marks the top of a hierarchy, so that ext4 spreads its folders over the disk. Other systems do not have this flag, and do not need it.
  spawnSync('chattr', ['+T', SCRATCH], { stdio: 'ignore' });
  const folder = mkdtempSync(join(SCRATCH, 'bench-'));
  madeFolders.push(folder);
  return folder;
}

/** Removes the folders of {@link makeFolder}. */
export function removeFolders(): void {
  for (const folder of madeFolders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** The size of a folder: the sum of the files' sizes, and of their blocks on the disk. */
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

/** Bytes of memory in use after garbage collection, including buffers. Needs --expose-gc. */
export function heapInUse(): number {
  if (!globalThis.gc) throw new Error('Run the bench with `npm run bench`: it needs --expose-gc.');
  for (let i = 0; i < 4; i++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
