import { GenkitError } from 'genkit';
import { describe, expect, it } from 'vitest';
import { scale } from '../../../support/scale.ts';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { otherPathTo } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { openStore, saveTurns, SESSION, type Store } from '../support/scenarios.ts';

type Call = (...args: unknown[]) => unknown;

/** The fault of a system call; `undefined`: none. */
type Fault = (name: keyof FileSystem, args: readonly unknown[]) => void;

function fails(code: string): Fault {
  return (name) => {
    throw Object.assign(new Error(`${code}: simulated, ${name}`), { code, syscall: name });
  };
}

const FAULTS: Readonly<Record<string, Fault>> = {
  ENOSPC: fails('ENOSPC'),
  EIO: fails('EIO'),
  EMFILE: fails('EMFILE'),
  'half a write': (name, args) => {
    const [fd, bytes] = args as [number, Uint8Array];
    if (name === 'write') nodeFileSystem.write(fd, bytes.subarray(0, bytes.length >> 1));
    fails('ENOSPC')(name, args);
  },
  'a refused link': (name, args) => {
    if (name === 'link') fails('EPERM')(name, args);
  },
};

/** The file system with a fault in the n-th call. */
function faultyFileSystem(nth: number, fault: Fault): FileSystem {
  let calls = 0;
  const faulty: FileSystem = { ...nodeFileSystem };
  for (const [name, call] of Object.entries(nodeFileSystem) as [keyof FileSystem, Call][]) {
    const replacement: Call = (...args) => {
      if (++calls === nth) fault(name, args);
      return call(...args);
    };
    Object.assign(faulty, { [name]: replacement });
  }
  return faulty;
}

/** Increments a counter this many times, with a turn each. Returns how many were acknowledged, and how many may have been saved. */
async function increment(store: Store, times: number): Promise<{ made: number; perhaps: number }> {
  const count = { made: 0, perhaps: 0 };
  for (let i = 0; i < times; i++) {
    try {
      await store.saveSnapshot('counter', (current) => ({
        ...(current ?? { sessionId: SESSION, createdAt: '2026-01-01T00:00:00.000Z', status: 'pending' as const }),
        state: { custom: { turn: (current?.state?.custom?.turn ?? 0) + 1 } },
      }));
      count.made++;
    } catch (error) {
      expect(error).toBeInstanceOf(GenkitError);
      if (/may have been saved/.test((error as GenkitError).message)) count.perhaps++;
    }
  }
  return count;
}

describe('lock under faults: ', () => {
  // The kinds begin at different calls, so that each call fails in some way.
  const step = scale(5, 1);
  for (const [first, [kind, fault]] of Object.entries(FAULTS).entries()) {
    for (const isUsed of [false, true]) {
      it(`${kind} at one of the first 60 system calls of one of two processes, in ${isUsed ? 'a folder in use' : 'a fresh folder'}: no acknowledged increment is lost`, async () => {
        for (let nth = 1 + (first % step); nth <= 60; nth += step) {
          const folder = temporaryFolder();
          const options = { durability: 'fast', lockTimeoutMs: 10_000 } as const;
          if (isUsed) await saveTurns(openStore(folder, options), 2);
          const faulty = openStore(folder, options, faultyFileSystem(nth, fault));
          const healthy = openStore(otherPathTo(folder), options);
          const counts = await Promise.all([increment(faulty, 5), increment(healthy, 5)]);
          const made = counts[0].made + counts[1].made;
          const cold = openStore(folder, options);
          const value = (await cold.getSnapshot({ snapshotId: 'counter' }))?.state?.custom?.turn ?? 0;
          expect(counts[1].made, `call ${nth}: the other process is not affected`).toBe(5);
          expect(value, `call ${nth}`).toBeGreaterThanOrEqual(made);
          expect(value, `call ${nth}`).toBeLessThanOrEqual(made + counts[0].perhaps);
          const { items } = await cold.listSnapshots({ sessionId: SESSION });
          for (const { snapshotId } of items)
            expect(await cold.getSnapshot({ snapshotId }), `call ${nth}`).toBeDefined();
          await Promise.all([faulty, healthy, cold].map((store) => store.close()));
        }
      });
    }
  }
});
