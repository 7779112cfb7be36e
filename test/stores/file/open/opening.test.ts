import { describe, expect, it } from 'vitest';
import { killOwners, leftovers } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { MortalFileSystem } from '../support/mortal.ts';
import { RecordingFileSystem } from '../support/recording.ts';
import { openStore, saveTurn, saveTurns, SESSION, type Store } from '../support/scenarios.ts';

async function crowd(store: Store, sessions: number): Promise<void> {
  for (let i = 0; i < sessions; i++) {
    await store.saveSnapshot(`n${i}`, () => ({ sessionId: `s${i}`, createdAt: 'x', state: {} }));
  }
}

/** Kills a writer in the middle of a save, then counts the system calls until a new store has read and saved. */
async function callsAfterCrash(sessions: number, turns: number): Promise<{ read: number; save: number }> {
  const folder = temporaryFolder();
  const maker = openStore(folder, { durability: 'fast' });
  await crowd(maker, sessions);
  await saveTurns(maker, turns);
  await maker.close();
  const mortal = new MortalFileSystem();
  const dying = openStore(folder, { durability: 'fast' }, mortal.fileSystem);
  await dying.getSnapshot({ sessionId: SESSION });
  mortal.dieAfter(5);
  await saveTurn(dying, turns + 1).catch(() => {});
  expect(mortal.dead).toBe(true);
  killOwners(folder);
  const recording = new RecordingFileSystem();
  const store = openStore(folder, { durability: 'fast' }, recording.fileSystem);
  await store.getSnapshot({ sessionId: SESSION });
  const read = recording.operations.length;
  await saveTurn(store, turns + 2, { parent: `t${turns}` });
  expect(leftovers(folder)).toEqual([]);
  return { read, save: recording.operations.length - read };
}

describe('crash-kill: opening again after a kill', () => {
  it('takes a bounded number of system calls, the same for 500 sessions as for one, and after 61 turns as after 7', async () => {
    const alone = await callsAfterCrash(0, 7);
    expect(alone.read).toBeLessThan(40);
    expect(alone.save).toBeLessThan(110);
    expect(await callsAfterCrash(500, 7)).toEqual(alone);
    expect(await callsAfterCrash(0, 61)).toEqual(alone);
  });
});
