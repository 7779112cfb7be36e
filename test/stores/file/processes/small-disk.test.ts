import { execFileSync, spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { childScript } from '../../../support/child-script.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

const SCRIPT = await childScript(new URL('./scripts/small-disk.ts', import.meta.url), { isWhole: true });

/** Arguments of `unshare` for a command in which the folder is a file system of 1 MB: a user namespace gives the right to mount one. */
const onSmallDisk = (folder: string, command: readonly string[]): string[] => {
  const mount = 'mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"';
  return ['--map-root-user', '--mount', 'sh', '-c', mount, 'sh', folder, ...command];
};

it('n-th fault: on a disk that is full, then read-only, saves are refused typed and old data is intact', (context) => {
  const folder = temporaryFolder();
  const canMount = spawnSync('unshare', onSmallDisk(folder, ['true'])).status === 0;
  context.skip(!canMount, 'the system does not let this process mount a file system in a namespace of its own');
  const command = [process.execPath, SCRIPT, folder];
  const told: unknown = JSON.parse(execFileSync('unshare', onSmallDisk(folder, command), { encoding: 'utf8' }));
  expect(told).toEqual({
    saves: expect.any(Number) as number,
    whenFull: 'RESOURCE_EXHAUSTED',
    wasIntactFull: true,
    whenReadOnly: 'UNAVAILABLE',
    wasIntactReadOnly: true,
    whenFree: 'saved',
    wasIntactFree: true,
  });
});
