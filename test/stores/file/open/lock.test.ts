import { existsSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GenkitError } from 'genkit';
import { describe, expect, it, vi } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { LockFolder } from '../../../../stores/file/disk/lock-folder.ts';
import { formatOwner, livenessOf, newOwner, parseOwner, type Owner } from '../../../../stores/file/disk/lock-owner.ts';
import { entriesBelow, temporaryFolder } from '../support/folders.ts';

/** No process has so high a number. */
const NO_PROCESS = 4_194_305;

/** Locks are called by a SHA-256; what has another name is left alone. */
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

/** Nothing but what the store has for its own use while it is open. */
async function expectTidy(locks: LockFolder, folder: string): Promise<void> {
  locks.close();
  expect(entriesBelow(folder)).toEqual([]);
}

describe('a lock', () => {
  it('keeps others out while its owner lives; a caller that waits too long gets ABORTED and a sentence', async () => {
    const folder = temporaryFolder();
    note(folder, A_LOCK, newOwner());
    await expect(take(open(folder))).rejects.toMatchObject({
      status: 'ABORTED',
      message: expect.stringMatching(/^ABORTED: It was locked/),
    });
  });

  it.each([-3_600_000, 3_600_000])(
    'is given up when the clock jumps by %i ms: others may take it for abandoned',
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

  it('whose owner died is taken over, and so is one that died taking it over, and so on', async () => {
    const folder = temporaryFolder();
    note(folder, A_LOCK, deadOwner('00000000000a'));
    note(folder, `${A_LOCK}.1`, deadOwner('00000000000b'));
    note(folder, `${A_LOCK}.2`, deadOwner('00000000000c'));
    const locks = open(folder);
    expect(await take(locks)).toBe('taken');
    await expectTidy(locks, folder);
  });

  it('that was taken over from a dead owner is held until the task ends, also while what the dead left is removed', async () => {
    const folder = temporaryFolder();
    const locks = open(folder);
    const names = [A_LOCK, 'b'.repeat(64)];
    for (const name of names) note(folder, name, deadOwner('00000000000a'));
    // Others take the lock once one of these is gone.
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

  it('that was released while it was claimed is not taken by the late claim', async () => {
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

  it('of an owner that can’t be asked is taken over when it is old, not before', async () => {
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

  it('without a text counts as held; when it is old a power failure left it, and it is taken over', async () => {
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

  it('that could not be released is the owner’s own the next time', async () => {
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

  it('held for too long is given up before the commit point', async () => {
    const locks = open(temporaryFolder());
    const now = Date.now;
    const held = locks.run(A_LOCK, 'It', async (lock) => {
      lock.assertHeld();
      Date.now = () => now() + 16_000;
      lock.assertHeld();
    });
    await expect(held.finally(() => (Date.now = now))).rejects.toMatchObject({ status: 'ABORTED' });
  });

  it('of the dead is removed with the first lock, with their marks and claims; of the living nothing is', async () => {
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
  it('can be told from a later process of the same number, and from one of another machine', () => {
    const self = newOwner();
    expect(parseOwner(formatOwner(self))).toEqual(self);
    expect(parseOwner('anything else')).toBeUndefined();
    expect(livenessOf(self)).toBe('alive');
    expect(livenessOf({ ...self, pid: NO_PROCESS })).toBe('dead');
    if (process.platform === 'linux') expect(livenessOf({ ...self, started: '1' })).toBe('dead');
    expect(livenessOf({ ...self, host: '0123456789ab' })).toBe('unknown');
  });
});
