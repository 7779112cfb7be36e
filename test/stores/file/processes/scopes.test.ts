import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { FileSessionStore } from '../../../../stores/file/file-session-store.ts';
import { scale, seed } from '../../../support/scale.ts';
import { leftoversIn } from './support/crash-ledger.ts';
import { Fleet, type Child } from './support/fleet.ts';
import type { DeathPlan } from './support/mortal-file-system.ts';
import { Random } from '../../../support/random.ts';
import { countsExpected, countsOf, countTurn } from './scripts/records.ts';
import { idsOf } from './support/snapshots.ts';
import { FAST } from './support/stores.ts';

const LONGEST_MS = scale(300_000, 3_600_000);

describe(`records that processes share (seed ${seed})`, () => {
  const processes = new Fleet();
  const folders = new Fleet();

  afterEach(() => folders.end());
  afterAll(() => processes.end());

  it('atomic update: 4 processes that add 50 times each, from a session each, give 200, and no key is lost', async () => {
    const folder = folders.folder();
    const children = await processes.launch(4);
    const reader = new FileSessionStore(folder, FAST);
    const work = { isDone: false };
    const adding = Promise.all(
      children.map((child, i) => child.call('countTurns', { store: { folder }, sessionId: `s${i}`, times: 50 })),
    ).finally(() => (work.isDone = true));
    for (let last = 0; !work.isDone;) {
      const { ofUser } = await countsOf(reader);
      expect(ofUser, 'a count that was read before').toBeGreaterThanOrEqual(last);
      last = ofUser;
      await new Promise(setImmediate);
    }
    await adding;
    const counts = await countsOf(reader);
    expect(counts).toEqual({
      ofUser: 200,
      ofApp: 200,
      lastTurns: { s0: 's0-49', s1: 's1-49', s2: 's2-49', s3: 's3-49' },
    });
    expect(await countsExpected(reader)).toEqual(counts);
    await reader.close();
    await Promise.all(children.map((child) => child.kill()));
  });

  /** Two writers that continue, and one that dies. */
  async function killOneOfThree(folder: string, death: DeathPlan, acknowledged: string[]): Promise<void> {
    const start = (sessionId: string, plan: { death?: DeathPlan } = {}): { child: Child; end: Promise<unknown> } => {
      const child = processes.start();
      child.onLine = (line) => acknowledged.push(line);
      const end = child.call('countUntilKilled', { store: { folder }, sessionId, ...plan });
      return { child, end: expect(end).rejects.toThrow('the child process ended') };
    };
    const survivors = [start('one'), start('two')];
    const victim = start('three', { death });
    await victim.end;
    const after = acknowledged.length;
    // They continue, whatever lock it held.
    await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(after + 4);
    await Promise.all(survivors.map(({ child }) => child.kill()));
    await Promise.all(survivors.map(({ end }) => end));
  }

  const rounds = scale(3, 200);
  it(
    `crash-kill: of three writers of one record one is killed at some system call and then the others, ${rounds} times: each turn counts once`,
    async () => {
      const random = new Random(seed);
      for (let round = 0; round < rounds; round++) {
        const folder = folders.folder();
        const death: DeathPlan = { call: 1 + random.below(400), moment: random.pick(['before', 'midway', 'after']) };
        const acknowledged: string[] = [];
        await killOneOfThree(folder, death, acknowledged);
        const place = JSON.stringify(death);
        const store = new FileSessionStore(folder, FAST);
        expect(await countsOf(store), place).toEqual(await countsExpected(store));
        const listed: string[] = [];
        for (const sessionId of ['one', 'two', 'three']) {
          await countTurn(store, sessionId, `last of ${sessionId}`);
          listed.push(...(await idsOf(store, sessionId)));
        }
        expect(new Set(listed), place).toEqual(new Set([...listed, ...acknowledged]));
        expect(await countsOf(store), place).toEqual(await countsExpected(store));
        await store.close();
        expect(leftoversIn(folder, listed), place).toEqual([]);
      }
    },
    LONGEST_MS,
  );
});
