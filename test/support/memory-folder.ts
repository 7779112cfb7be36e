import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isTorture } from './scale.ts';

/** Where Linux keeps files in memory. */
const IN_MEMORY = '/dev/shm';
/** The tests of one run use a quarter of it at most. */
const ROOM = 2 * 1024 ** 3;

/**
 * Before the tests: their temporary folders are made in memory, where there is room for them, because the tests that open thousands of small stores
 * wait for the disk half of their time. `npm run torture` uses the disk.
 */
export default function setup(): (() => void) | undefined {
  // Each project calls it.
  if (isTorture || tmpdir().startsWith(IN_MEMORY) || !hasRoom()) return undefined;
  const folder = mkdtempSync(join(IN_MEMORY, 'genkitx-agents-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once('exit', remove);
  process.env['TMPDIR'] = folder;
  return remove;
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return bavail * bsize >= ROOM && freemem() >= ROOM;
  } catch {
    return false;
  }
}
