import { cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isTorture } from '../../../support/scale.ts';
import { killOwners } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { MortalFileSystem } from '../support/mortal.ts';
import { ADA, adding, APP, openStore, saveTurn, SESSION, stateOf, type Store } from '../support/scenarios.ts';

const BOTH = [adding(ADA), adding(APP)];
const FAST = { durability: 'fast' } as const;

/** A save that changes both records, and whether it was made. */
interface Attempt {
  readonly name: string;
  readonly save: (store: Store) => Promise<unknown>;
  readonly isMade: (store: Store) => Promise<boolean>;
}

async function rewrite(store: Store): Promise<unknown> {
  return store.saveSnapshot('t2', (current) => ({ ...current!, state: stateOf(9) }), { scopes: BOTH });
}

const isThere =
  (snapshotId: string) =>
  async (store: Store): Promise<boolean> =>
    (await store.getSnapshot({ snapshotId })) !== undefined;

const ATTEMPTS: readonly Attempt[] = [
  { name: 'a turn', save: (store) => saveTurn(store, 3, { scopes: BOTH }), isMade: isThere('t3') },
  {
    name: 'a rewrite',
    save: rewrite,
    isMade: async (store) => (await store.getSnapshot({ snapshotId: 't2' }))?.state?.custom?.turn === 9,
  },
  {
    name: 'the first save of a session',
    save: (store) => store.saveSnapshot('new', () => ({ sessionId: 'new', createdAt: 'x' }), { scopes: BOTH }),
    isMade: isThere('new'),
  },
  {
    name: 'a save without a session',
    save: (store) => store.saveSnapshot('alone', () => ({ createdAt: 'x' }), { scopes: BOTH }),
    isMade: isThere('alone'),
  },
];

/** Rewrites all snapshots of possible saves, and so the marks in their files. */
async function saveOver(store: Store): Promise<void> {
  for (const id of ['t1', 't2', 't3', 'new', 'alone']) {
    await store.saveSnapshot(id, (current) => (current ? { ...current, updatedAt: '2026-02-01T00:00:00.000Z' } : null));
  }
}

/** The first calls after the crash. After each, both records must be equal. Returns how often the call itself added to them. */
const FINDERS: Readonly<Record<string, (store: Store, folder: string) => Promise<number>>> = {
  'a reader': async () => 0,
  'a save of another session that changes the records': async (store) => {
    await store.saveSnapshot('other', () => ({ sessionId: 'other', createdAt: 'x' }), { scopes: BOTH });
    return 1;
  },
  'saves of all the sessions, over the same snapshots': async (store) => {
    await saveOver(store);
    return 0;
  },
  'removals of the sessions': async (store) => {
    await store.deleteSession({ sessionId: SESSION });
    await store.deleteSession({ sessionId: 'new' });
    return 0;
  },
  retention: async (store) => {
    await store.prune({ maxChainLength: 1 });
    await store.prune({ idleMs: 0 });
    return 0;
  },
  'a save over the same snapshots after the logs were damaged': async (store, folder) => {
    const logs = join(folder, 'global/.sessions');
    for (const name of readdirSync(logs)) writeFileSync(join(logs, name, 'log.jsonl'), 'damaged\n');
    await saveOver(store);
    return 0;
  },
};

async function counts(store: Store): Promise<number[]> {
  return (await store.readScopes({ scopes: [ADA, APP] })).map((record) => Number(record['n'] ?? 0));
}

function draftsIn(folder: string): string[] {
  return readdirSync(join(folder, 'global/.scopes')).filter((name) => name.endsWith('.draft'));
}

/** Calls `found` with the files of a writer that dies at its first changing call, its second, and so on to its last. */
async function atEachDeath(
  { save }: Attempt,
  found: (folder: string, deaths: number) => Promise<void>,
): Promise<{ deaths: number; drafts: number }> {
  const template = temporaryFolder();
  const maker = openStore(template, FAST);
  await saveTurn(maker, 1, { scopes: BOTH });
  await saveTurn(maker, 2, { scopes: BOTH });
  await maker.close();
  for (let deaths = 0, drafts = 0; ; deaths++) {
    const folder = temporaryFolder();
    cpSync(template, folder, { recursive: true });
    const mortal = new MortalFileSystem();
    mortal.dieAfter(deaths);
    const outcome = await save(openStore(folder, FAST, mortal.fileSystem)).then(
      () => 'saved',
      () => 'failed',
    );
    if (!mortal.dead) {
      expect(outcome).toBe('saved');
      return { deaths, drafts };
    }
    if (existsSync(join(folder, '.locks'))) killOwners(folder);
    drafts += Math.min(draftsIn(folder).length, 1);
    await found(folder, deaths);
  }
}

describe('crash-kill: a writer that dies at any step of a save that changes records', () => {
  const finders = Object.entries(FINDERS);
  // In the long form each finder comes after each death; otherwise they take turns.
  const choices = isTorture ? finders.map((finder) => [finder]) : [finders];
  for (const [number, attempt] of ATTEMPTS.entries()) {
    for (const choice of choices) {
      const found = choice.length === 1 ? choice[0]![0] : 'what finds it';
      it(`${attempt.name}, then ${found}: both records changed with the snapshot, or neither did`, async () => {
        let made = 0;
        const { deaths, drafts } = await atEachDeath(attempt, async (folder, death) => {
          const [finder, find] = choice[(death + number) % choice.length]!;
          const isMade = await attempt.isMade(openStore(folder));
          const before = isMade ? 3 : 2;
          const place = `the writer died at its change ${death}; the save was ${isMade ? '' : 'not '}made; ${finder}`;
          expect(await counts(openStore(folder)), place).toEqual([before, before]);
          const added = await find(openStore(folder, FAST), folder);
          expect(await counts(openStore(folder)), place).toEqual([before + added, before + added]);
          made += isMade ? 1 : 0;
          const store = openStore(folder, FAST);
          await store.prune({ maxChainLength: 1000 });
          expect(draftsIn(folder), place).toEqual([]);
          await store.saveSnapshot('last', () => ({ createdAt: 'x' }), { scopes: BOTH });
          expect(await counts(openStore(folder)), place).toEqual([before + added + 1, before + added + 1]);
        });
        // It died before the commit point as well as after, and with drafts on the disk.
        expect(made).toBeGreaterThan(2);
        expect(deaths - made).toBeGreaterThan(5);
        expect(drafts).toBeGreaterThan(3);
      });
    }
  }

  it('a turn that is tried again under its own id counts once', async () => {
    const attempt = ATTEMPTS[0]!;
    await atEachDeath(attempt, async (folder, death) => {
      const again = openStore(folder, FAST);
      await again.saveSnapshot('t3', (current) => (current ? null : { sessionId: SESSION, createdAt: 'x' }), {
        scopes: BOTH,
      });
      expect(await counts(openStore(folder)), `the writer died at its change ${death}`).toEqual([3, 3]);
    });
  });

  it('a record that is deleted stays deleted', async () => {
    await atEachDeath(ATTEMPTS[0]!, async (folder, death) => {
      const store = openStore(folder, FAST);
      expect(await store.deleteScope({ scope: ADA })).toBe(true);
      await saveTurn(store, 5, { parent: 't2' });
      expect(await store.readScopes({ scopes: [ADA] }), `the writer died at its change ${death}`).toEqual([{}]);
    });
  });
});
