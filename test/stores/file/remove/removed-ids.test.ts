import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../../../stores/file/disk/file-system.ts';
import { otherPathTo } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { MortalFileSystem } from '../support/mortal.ts';
import { openStore, saveTurn, saveTurns, SESSION, type Store } from '../support/scenarios.ts';

const REMOVALS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  'deleteSession()': (store) => store.deleteSession({ sessionId: SESSION }),
  'prune()': (store) => store.prune({ maxChainLength: 1 }),
  'a save over maxPersistedChainLength': (store) => saveTurn(store, 4, { wide: true }),
};

describe('an id that was removed', () => {
  for (const [name, remove] of Object.entries(REMOVALS)) {
    for (const sessionId of [SESSION, 'another']) {
      it(`can be saved into ${sessionId === SESSION ? 'the same' : 'another'} session wherever a process was killed in ${name}`, async () => {
        let removed = 0;
        for (let changes = 0; ; changes++) {
          const folder = temporaryFolder();
          const mortal = new MortalFileSystem();
          const options = name.startsWith('a save') ? { maxPersistedChainLength: 3 } : {};
          const dying = openStore(folder, { durability: 'fast', ...options }, mortal.fileSystem);
          await saveTurns(dying, 3, true);
          mortal.dieAfter(changes);
          await remove(dying).catch(() => {});
          // Its death would release these.
          rmSync(join(folder, '.locks'), { recursive: true, force: true });
          const store = openStore(folder, { durability: 'fast' });
          if ((await store.getSnapshot({ snapshotId: 't1' })) === undefined) {
            removed++;
            await store.saveSnapshot('t1', () => ({ sessionId, createdAt: 'x', state: { custom: { turn: 100 } } }));
          }
          await store.prune({ maxChainLength: 100 });
          const cold = openStore(folder);
          const listed = [SESSION, 'another'].map(async (id) => (await cold.listSnapshots({ sessionId: id })).items);
          for (const { snapshotId } of (await Promise.all(listed)).flat()) {
            const turn = (await cold.getSnapshot({ snapshotId }))?.state?.custom?.turn;
            expect(turn, `${snapshotId} after ${changes} changes`).toBe(
              snapshotId === 't1' && removed > 0 ? 100 : Number(snapshotId.slice(1)),
            );
          }
          if (!mortal.dead) break;
        }
        expect(removed).toBeGreaterThan(2);
      });
    }
  }
});

describe('a leftover file of a removed snapshot', () => {
  it('stays when another session uses its id by the time of its removal', async () => {
    const folder = temporaryFolder();
    const mortal = new MortalFileSystem();
    const dying = openStore(folder, { durability: 'fast' }, mortal.fileSystem);
    await saveTurns(dying, 2);
    mortal.fileSystem.unlink = () => {
      mortal.dead = true;
      throw new Error('killed');
    };
    // t1 is removed in the log, but its file still exists.
    await dying.prune({ maxChainLength: 1 }).catch(() => {});
    rmSync(join(folder, '.locks'), { recursive: true });
    const other = openStore(otherPathTo(folder));
    const overtake = async (): Promise<void> => {
      await saveTurn(other, 3);
      await other.saveSnapshot('t1', () => ({ sessionId: 'another', createdAt: 'x', state: {} }));
    };
    let hasLooked = false;
    let overtaking: Promise<void> | undefined;
    let isOvertaken = false;
    const fs: FileSystem = {
      ...nodeFileSystem,
      open: (path, flags) => {
        hasLooked ||= path.endsWith('/t1.json');
        return nodeFileSystem.open(path, flags);
      },
      link: (from, to) => {
        if (hasLooked && !isOvertaken && to.includes('/.locks/')) {
          overtaking ??= overtake().then(() => void (isOvertaken = true));
          throw Object.assign(new Error('EEXIST'), { code: 'EEXIST', syscall: 'link' });
        }
        nodeFileSystem.link(from, to);
      },
    };
    await openStore(folder, { lockTimeoutMs: 10_000 }, fs).prune({ maxChainLength: 100 });
    await overtaking;
    expect(isOvertaken).toBe(true);
    const cold = openStore(folder);
    expect((await cold.getSnapshot({ sessionId: 'another' }))?.snapshotId).toBe('t1');
    expect((await cold.getSnapshot({ snapshotId: 't1' }))?.sessionId).toBe('another');
  });
});
