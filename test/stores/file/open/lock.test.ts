import { existsSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { describe, expect, it, vi } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { LockFolder } from '../../../../stores/file/disk/lock-folder.ts';
import { formatOwner, livenessOf, newOwner, parseOwner, type Owner } from '../../../../stores/file/disk/lock-owner.ts';
import { entriesBelow } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

/** No process has such a high id. */
const NO_PROCESS = 4_194_305;

/** The name of a lock is a SHA-256; files with other names are not touched. */
const A_LOCK = 'a'.repeat(64);

function deadOwner(nonce: string): Owner {
  return { ...newOwner(), pid: NO_PROCESS, nonce };
}

function open(folder: string, fileSystem: FileSystem = nodeFileSystem): LockFolder {
  return new LockFolder(fileSystem, folder, { timeoutMs: 20, makeFolder: () => {}, flush: async () => {} });
}

function note(folder: string, name: string, owner: Owner): void {
  writeFileSync(join(folder, name), formatOwner(owner));
}

async function take(locks: LockFolder): Promise<'taken'> {
  return locks.run(A_LOCK, 'It', async () => 'taken' as const);
}

/** Only the files that an open store uses. */
async function expectTidy(locks: LockFolder, folder: string): Promise<void> {
  locks.close();
  expect(entriesBelow(folder)).toEqual([]);
}

describe('a lock', () => {
  it('excludes other owners while its owner lives; a caller that waits too long gets ABORTED and a message', async () => {
    const folder = temporaryFolder();
    note(folder, A_LOCK, newOwner());
    await expect(take(open(folder))).rejects.toMatchObject({
      status: 'ABORTED',
      message: expect.stringMatching(/^ABORTED: It was locked/),
    });
  });

  it.each([-3_600_000, 3_600_000])(
    'is given up when the clock jumps by %i ms: another process may consider it abandoned',
    async (ms) => {
      const locks = open(temporaryFolder());
      const held = locks.run(A_LOCK, 'It', async (lock) => {
        lock.assertHeld();
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
        lock.assertHeld();
      });
      await expect(held.finally(() => vi.useRealTimers())).rejects.toMatchObject({ status: 'ABORTED' });
    },
  );

  it('whose owner died is taken over, also after several owners died during a takeover', async () => {
    const folder = temporaryFolder();
    note(folder, A_LOCK, deadOwner('00000000000a'));
    note(folder, `${A_LOCK}.1`, deadOwner('00000000000b'));
    note(folder, `${A_LOCK}.2`, deadOwner('00000000000c'));
    const locks = open(folder);
    expect(await take(locks)).toBe('taken');
    await expectTidy(locks, folder);
  });

  it('that was taken over from a dead owner is held until the task ends, also while the files of the dead owner are removed', async () => {
    const folder = temporaryFolder();
    const locks = open(folder);
    const names = [A_LOCK, 'b'.repeat(64)];
    for (const name of names) note(folder, name, deadOwner('00000000000a'));
    // Another process takes the lock when one of these is gone.
    const isHeld = (name: string) =>
      locks.run(name, 'It', async () => {
        expect(entriesBelow(folder)).toEqual(expect.arrayContaining([name, `${name}.1`]));
      });
    await Promise.all(names.map(isHeld));
  });

  it('that a living process took over from a dead one is not taken', async () => {
    const folder = temporaryFolder();
    note(folder, A_LOCK, deadOwner('00000000000a'));
    note(folder, `${A_LOCK}.1`, newOwner());
    await expect(take(open(folder))).rejects.toBeInstanceOf(GenkitError);
  });

  it('that was released during a claim is not taken by the late claim', async () => {
    const folder = temporaryFolder();
    const path = join(folder, A_LOCK);
    note(folder, A_LOCK, deadOwner('00000000000a'));
    let claims = 0;
    const fs: FileSystem = {
      ...nodeFileSystem,
      link: (from, to) => {
        nodeFileSystem.link(from, to);
        // Right after the claim its earlier owner has released the lock, and a third process has taken it.
        if (to === `${path}.1` && claims++ === 0) {
          unlinkSync(path);
          note(folder, A_LOCK, newOwner());
        }
      },
    };
    await expect(take(open(folder, fs))).rejects.toMatchObject({ status: 'ABORTED' });
    expect(claims).toBe(1);
    expect(existsSync(`${path}.1`), 'the claim was withdrawn').toBe(false);
    expect(existsSync(path), 'the third one has it still').toBe(true);
  });

  it('of an owner that can’t be looked up is taken over when it is old, not before', async () => {
    const folder = temporaryFolder();
    let age = 29_000;
    const fs: FileSystem = {
      ...nodeFileSystem,
      stat: (path) => {
        const found = nodeFileSystem.stat(path);
        if (found && path.endsWith(A_LOCK)) found.ctimeMs -= age;
        return found;
      },
    };
    const locks = open(folder, fs);
    note(folder, A_LOCK, { ...newOwner(), host: '0123456789ab' });
    await expect(take(locks)).rejects.toBeInstanceOf(GenkitError);
    age = 31_000;
    expect(await take(locks)).toBe('taken');
    await expectTidy(locks, folder);
  });

  it('without a text counts as held; an old one is left by a power failure, and is taken over', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, A_LOCK), '');
    const early = open(folder);
    await expect(take(early)).rejects.toMatchObject({ status: 'ABORTED' });
    early.close();
    const fs: FileSystem = {
      ...nodeFileSystem,
      stat: (path) => {
        const found = nodeFileSystem.stat(path);
        if (found && path.endsWith(A_LOCK)) found.ctimeMs -= 31_000;
        return found;
      },
    };
    const locks = open(folder, fs);
    expect(await take(locks)).toBe('taken');
    await expectTidy(locks, folder);
  });

  it('that can’t be made, or whose owner can’t be named, fails the call before its task begins', async () => {
    for (const call of ['open', 'write', 'link'] as const) {
      const folder = temporaryFolder();
      const fs: FileSystem = {
        ...nodeFileSystem,
        [call]: () => {
          throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', syscall: call });
        },
      };
      const task = vi.fn(async () => {});
      await expect(open(folder, fs).run(A_LOCK, 'It', task)).rejects.toMatchObject({ code: 'ENOSPC' });
      expect(task).not.toHaveBeenCalled();
      expect(entriesBelow(folder), call).toEqual([]);
    }
  });

  it('that could not be released is used again by its owner', async () => {
    const folder = temporaryFolder();
    let fails = true;
    const fs: FileSystem = {
      ...nodeFileSystem,
      unlink: (path) => {
        if (fails) throw Object.assign(new Error('EIO'), { code: 'EIO', syscall: 'unlink' });
        nodeFileSystem.unlink(path);
      },
    };
    const locks = open(folder, fs);
    expect(await take(locks)).toBe('taken');
    expect(entriesBelow(folder)).toContain(A_LOCK);
    fails = false;
    expect(await take(locks)).toBe('taken');
    await expectTidy(locks, folder);
  });

  it('that was held too long is given up before the commit point', async () => {
    const locks = open(temporaryFolder());
    const now = Date.now;
    const held = locks.run(A_LOCK, 'It', async (lock) => {
      lock.assertHeld();
      Date.now = () => now() + 16_000;
      lock.assertHeld();
    });
    await expect(held.finally(() => (Date.now = now))).rejects.toMatchObject({ status: 'ABORTED' });
  });

  it('of a dead owner is removed with the first lock, with its marks and claims; files of living owners stay', async () => {
    const folder = temporaryFolder();
    const living = newOwner();
    note(folder, `owner-${formatOwner(deadOwner('00000000000a'))}`, deadOwner('00000000000a'));
    note(folder, 'b'.repeat(64), deadOwner('00000000000a'));
    note(folder, `${'c'.repeat(64)}.1`, deadOwner('00000000000b'));
    const livingMark = `owner-${formatOwner(living)}`;
    note(folder, livingMark, living);
    note(folder, A_LOCK, living);
    const locks = open(folder);
    await locks.run('d'.repeat(64), 'Another', async () => {});
    locks.close();
    expect(
      entriesBelow(folder).filter((name) => !readFileSync(join(folder, name), 'latin1').includes(living.nonce)),
    ).toEqual(entriesBelow(folder).filter((name) => name.startsWith('owner-') && name !== livingMark));
    expect(entriesBelow(folder)).toEqual(expect.arrayContaining([A_LOCK, livingMark]));
  });
});

describe('an owner', () => {
  it('is distinguished from a later process with the same id, and from one on another machine', () => {
    const self = newOwner();
    expect(parseOwner(formatOwner(self))).toEqual(self);
    expect(parseOwner('anything else')).toBeUndefined();
    expect(livenessOf(self)).toBe('alive');
    expect(livenessOf({ ...self, pid: NO_PROCESS })).toBe('dead');
    if (process.platform === 'linux') expect(livenessOf({ ...self, started: '1' })).toBe('dead');
    expect(livenessOf({ ...self, host: '0123456789ab' })).toBe('unknown');
  });
});
