import { FileSessionStore, InMemorySessionStore } from 'genkitx-agents';
import { eraseUser, exportUser } from 'genkitx-agents/privacy';
import { describe, expect, it } from 'vitest';
import { contentsBelow, killOwners, temporaryFolder } from '../../stores/file/support/folders.ts';
import { MortalFileSystem } from '../../stores/file/support/mortal.ts';
import { agentOn, erasesUsers, type FullStore } from './erase-suite.ts';

describe('eraseUser on files', () => {
  erasesUsers(async () => {
    const folder = temporaryFolder();
    const open = (fileSystem?: MortalFileSystem['fileSystem']): FullStore =>
      new (FileSessionStore as new (...args: unknown[]) => FullStore)(folder, { durability: 'fast' }, fileSystem);
    return {
      open,
      look: async () => new Map(Object.entries(contentsBelow(folder))),
      dying: async (changes, work) => {
        const mortal = new MortalFileSystem();
        const store = open(mortal.fileSystem);
        mortal.dieAfter(changes);
        await work(store).catch(() => {});
        const died = mortal.dead;
        mortal.dead = true;
        killOwners(folder);
        return died;
      },
    };
  });
});

describe('eraseUser', () => {
  it('on a store in memory: a turn that runs brings nothing back', async () => {
    const store = new InMemorySessionStore();
    let end: () => void = () => {};
    let begun: () => void = () => {};
    const isRunning = new Promise<void>((resolve) => (begun = resolve));
    const { turn } = agentOn(store, () => {
      begun();
      return new Promise((resolve) => (end = resolve));
    });
    const running = turn('ada', 'hello', { sessionId: 'new' });
    await isRunning;
    expect(await eraseUser(store, { userId: 'ada' })).toMatchObject({ sessions: 0, scopes: 0 });
    end();
    const { output } = await running;
    expect(output.error).toMatchObject({ status: 'ABORTED' });
    expect((await store.listSessions()).items).toEqual([]);
  });

  it('and exportUser refuse a store that can’t find what is a user’s, and calls that name no user', async () => {
    const store = { getSnapshot: async () => undefined, saveSnapshot: async () => null } as never;
    await expect(eraseUser(store, { userId: 'ada' })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    await expect(exportUser(store, { userId: 'ada' }).next()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    const own = new InMemorySessionStore();
    for (const options of [{}, { userId: ' ' }, { userId: 'ada', user: 'ada' }] as never[]) {
      await expect(eraseUser(own, options)).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
      await expect(exportUser(own, options).next()).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    }
  });
});
