import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FileSessionStore, type FileSessionStoreOptions } from '../../../stores/file/file-session-store.ts';
import type { SessionSnapshotInput } from '../../../src/store/contract.ts';
import { temporaryFolder } from './support/folders.ts';
import { openStore, saveTurn, saveTurns, SESSION, stateOf, type State, type Store } from './support/scenarios.ts';

const logOf = (folder: string): string => join(folder, 'global', '.sessions', `${SESSION}.jsonl`);

/** Cuts the last lines off the session's log, as a backup has it that copied the log before the snapshots. */
function cut(folder: string, lines: number): void {
  const all = readFileSync(logOf(folder), 'utf8').split('\n').slice(0, -1);
  writeFileSync(logOf(folder), `${all.slice(0, all.length - lines).join('\n')}\n`);
}

async function saveState(store: Store, id: string, parentId: string | undefined, state: unknown): Promise<void> {
  const answer = { sessionId: SESSION, createdAt: '2026-01-01T00:00:00.000Z', status: 'completed', parentId, state };
  await store.saveSnapshot(id, () => answer as SessionSnapshotInput<State['custom']>);
}

/** Saves on top of `parentId`: what it has and a little more, so that it is stored as what changed. */
async function saveOn(store: Store, id: string, parentId: string, turn: number): Promise<unknown> {
  const before = (await store.getSnapshot({ snapshotId: parentId }))!.state!;
  const messages = [...(before.messages ?? []), { role: 'user' as const, content: [{ text: `that of ${id}` }] }];
  const state = { ...before, messages, custom: { ...before.custom, turn } };
  await saveState(store, id, parentId, state);
  return state;
}

/** Each is there, read by a store that knows nothing yet, with its own state. */
async function expectStates(folder: string, states: ReadonlyMap<string, unknown>, place: string): Promise<void> {
  const cold = openStore(folder);
  for (const [snapshotId, state] of states) {
    const read = await cold.getSnapshot({ snapshotId }).catch((error: unknown) => error);
    expect((read as { state?: unknown } | undefined)?.state, `${snapshotId}, ${place}: ${String(read)}`).toEqual(state);
  }
}

const idsOf = async (store: Store): Promise<string[]> =>
  (await store.listSnapshots({ sessionId: SESSION })).items.map((item) => item.snapshotId);

describe('the place of a snapshot in its session', () => {
  it('is not that of a removed one after the log was written anew', async () => {
    const folder = temporaryFolder();
    const [one, other] = [new FileSessionStore<object>(folder), new FileSessionStore<object>(folder)];
    const stateOfOwner = (who: string, more = {}): object => ({
      messages: [{ role: 'user', content: [{ text: `secret of ${who}` }] }],
      custom: { who, ...more },
    });
    const snap = (more: object): never =>
      ({ sessionId: SESSION, createdAt: new Date().toISOString(), status: 'completed', ...more }) as never;
    await one.saveSnapshot('c', () => snap({ parentId: 'p', state: stateOfOwner('c') }));
    await one.saveSnapshot('p', () => snap({ state: stateOfOwner('p', { fromP: 'x'.repeat(50) }) }));
    await one.getSnapshot({ snapshotId: 'p' });
    await other.prune({ maxChainLength: 1 });
    for (let i = 0; i < 200; i++) {
      await other.saveSnapshot('c', (c) => ({ ...c!, updatedAt: new Date(i * 1000).toISOString() }));
    }
    const state = stateOfOwner('n', { filler: 'y'.repeat(300) }) as { messages: object[] };
    await other.saveSnapshot('n', () => snap({ parentId: 'c', state }));
    const next = { ...state, messages: [...state.messages, { role: 'user', content: [{ text: 'm' }] }] };
    await other.saveSnapshot('m', () => snap({ parentId: 'n', state: next }));
    expect((await one.getSnapshot({ snapshotId: 'm' }))?.state).toEqual(next);
  });

  it('stays empty when the one that was written last was removed, and then the log was written anew', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { durability: 'fast' });
    const touch = async (id: string, times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        await store.saveSnapshot(id, (current) => ({ ...current!, updatedAt: new Date(i * 1000).toISOString() }));
      }
    };
    for (const turn of [1, 2, 3, 4]) {
      await saveState(store, `t${turn}`, turn > 1 ? `t${turn - 1}` : undefined, { custom: { turn } });
    }
    // The log is long enough to be written anew by the removal itself, with no other write after this one.
    await touch('t1', 62);
    await store.prune({ maxChainLength: 1 });
    expect(await idsOf(openStore(folder))).toEqual(['t4']);
    expect((await openStore(folder).getSnapshot({ sessionId: SESSION }))?.snapshotId).toBe('t4');
  });

  it('is never given twice, whatever becomes of the log and the clock', async () => {
    const folder = temporaryFolder();
    const given = new Map<number, string>();
    const note = (): void => {
      for (const line of readFileSync(logOf(folder), 'utf8').trim().split('\n').slice(1)) {
        const { seq, meta } = JSON.parse(line) as { seq?: number; meta?: { snapshotId: string } };
        if (seq === undefined || !meta) continue;
        expect(given.get(seq) ?? meta.snapshotId).toBe(meta.snapshotId);
        given.set(seq, meta.snapshotId);
      }
    };
    let turn = 0;
    const options: FileSessionStoreOptions = { durability: 'fast', maxPersistedChainLength: 2 };
    const now = Date.now;
    try {
      for (let round = 0; round < 6; round++) {
        const store = openStore(folder, options);
        for (let i = 0; i < 40; i++) {
          await saveTurn(store, ++turn);
          note();
        }
        // Removed ones are the highest: a branch that ended, and then the log is written anew.
        await store.prune({ maxChainLength: 1 });
        if (round % 3 === 0) cut(folder, 3);
        if (round % 3 === 1) writeFileSync(logOf(folder), 'damaged');
        if (round % 3 === 2) await store.deleteSession({ sessionId: SESSION });
        Date.now = () => now() - round * 3600_000;
        turn += 100;
      }
    } finally {
      Date.now = now;
    }
    expect(given.size).toBeGreaterThan(200);
  });
});

describe('a log that was cut short', () => {
  for (const checkpointInterval of [1, 3, 25]) {
    for (const policy of [undefined, { maxAgeMs: 1e12 }, { maxChainLength: 2 }]) {
      it(`loses nothing that is saved after it (${JSON.stringify({ checkpointInterval, policy })})`, async () => {
        for (let lines = 1; lines <= 10; lines++) {
          const place = `${lines} lines cut`;
          const folder = temporaryFolder();
          const options = { checkpointInterval, durability: 'fast' } as const;
          await saveTurns(openStore(folder, options), 6, lines % 2 === 0);
          cut(folder, lines);
          const store = openStore(folder, options);
          const leaf = (await store.getSnapshot({ sessionId: SESSION }))!.snapshotId;
          const states = new Map<string, unknown>();
          states.set('a', await saveOn(store, 'a', leaf, 100));
          states.set('b', await saveOn(store, 'b', 'a', 101));
          await expectStates(folder, states, place);
          if (policy) await store.prune(policy);
          await expectStates(folder, states, `${place}, pruned`);
          expect((await store.getSnapshot({ sessionId: SESSION }))?.snapshotId, place).toBe('b');
          states.set('c', await saveOn(openStore(folder, options), 'c', 'b', 102));
          for (const turn of [5, 6]) {
            const id = `t${turn}`;
            const parentId = (await store.getSnapshotMetadata({ snapshotId: id }))?.parentId ?? `t${turn - 1}`;
            await saveState(store, id, parentId, { custom: { turn: 200 + turn } });
            states.set(id, { custom: { turn: 200 + turn } });
            await expectStates(folder, states, `${place}, ${id} saved again`);
          }
          states.set('d', await saveOn(openStore(folder, options), 'd', 'c', 103));
          await openStore(folder, options).prune({ maxAgeMs: 1e12 });
          await expectStates(folder, states, `${place}, pruned at last`);
          expect((await openStore(folder).getSnapshot({ sessionId: SESSION }))?.snapshotId, place).toBe('d');
        }
      });
    }
  }

  for (const wide of [false, true]) {
    it(`knows what it lost again after prune(), and when one of these is saved again${wide ? ' (with shards)' : ''}`, async () => {
      for (const lines of [1, 2, 3, 4, 8, 11, 12]) {
        for (const mend of ['prune', 'save']) {
          const place = `${lines} lines cut, ${mend}`;
          const folder = temporaryFolder();
          await saveTurns(openStore(folder, { durability: 'fast' }), 6, wide);
          const states = new Map(
            [1, 2, 3, 4, 5, 6].map((turn): [string, unknown] => [`t${turn}`, stateOf(turn, wide)]),
          );
          cut(folder, lines);
          const store = openStore(folder);
          if (lines < 11) states.set('new', await saveOn(store, 'new', 't1', 100));
          else await saveState(store, 'new', 't1', undefined);
          if (mend === 'prune') await store.prune({ maxAgeMs: 1e12 });
          else await store.saveSnapshot('t6', (current) => ({ ...current!, updatedAt: '2026-03-01T00:00:00.000Z' }));
          await expectStates(folder, states, place);
          expect((await idsOf(openStore(folder))).toSorted(), place).toEqual([
            'new',
            't1',
            't2',
            't3',
            't4',
            't5',
            't6',
          ]);
          expect((await openStore(folder).getSnapshot({ sessionId: SESSION }))?.snapshotId, place).toBe('new');
        }
      }
    });
  }

  it('gives what was rewritten as its file has it, and goes on from there', async () => {
    for (const lines of [1, 2, 3, 4]) {
      const folder = temporaryFolder();
      const first = openStore(folder, { durability: 'fast' });
      await saveTurns(first, 4);
      // t4 starts from t3, which is kept as a piece; t4 is rewritten in its place.
      const [rewritten, leaf] = [stateOf(7, true), { ...stateOf(4), custom: { turn: 44 } }];
      await saveState(first, 't3', 't2', rewritten);
      await saveState(first, 't4', 't3', leaf);
      cut(folder, lines);
      const reader = openStore(folder);
      expect((await reader.getSnapshot({ sessionId: SESSION }))?.state).toEqual(leaf);
      expect((await reader.getSnapshotMetadata({ snapshotId: 't4' }))?.snapshotId).toBe('t4');
      const store = openStore(folder);
      const states = new Map<string, unknown>([['t4', leaf]]);
      states.set('branch', await saveOn(store, 'branch', 't3', 8));
      states.set('a', await saveOn(store, 'a', 't4', 9));
      await saveState(store, 't3', 't2', { custom: { turn: 33 } });
      states.set('t3', { custom: { turn: 33 } });
      await expectStates(folder, states, `${lines} lines cut`);
      await openStore(folder).prune({ maxChainLength: 1 });
      states.delete('t3');
      states.delete('t4');
      await expectStates(folder, states, `${lines} lines cut, pruned`);
    }
  });

  it('takes in rewrites together with snapshots: what starts from the state before a rewrite still does', async () => {
    const folder = temporaryFolder();
    const first = openStore(folder, { durability: 'fast' });
    await saveTurns(first, 3);
    const states = new Map<string, unknown>([['t3', stateOf(3)]]);
    for (const turn of [70, 71]) await saveState(first, 't2', 't1', { custom: { turn } });
    states.set('t2', { custom: { turn: 71 } });
    states.set('lost', await saveOn(first, 'lost', 't2', 72));
    cut(folder, 6);
    const store = openStore(folder);
    states.set('new', await saveOn(store, 'new', 't3', 73));
    await store.prune({ maxAgeMs: 1e12 });
    await expectStates(folder, states, 'pruned');
  });

  it('does not bring back what was removed or deleted', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder);
    await saveTurns(store, 5);
    const file = (id: string): string => join(folder, 'global', `${id}.json`);
    const [t1, t5] = [readFileSync(file('t1')), readFileSync(file('t5'))];
    await store.prune({ maxChainLength: 2 });
    // The machine lost its power before the folder was flushed.
    writeFileSync(file('t1'), t1);
    await openStore(folder).prune({ maxAgeMs: 1e12 });
    expect(await idsOf(openStore(folder))).toEqual(['t4', 't5']);
    await store.deleteSession({ sessionId: SESSION });
    writeFileSync(file('t5'), t5);
    await saveTurn(store, 1);
    await openStore(folder).prune({ maxAgeMs: 1e12 });
    expect(await idsOf(openStore(folder))).toEqual(['t1']);
    await saveTurn(store, 5, { parent: 't1' });
    expect((await openStore(folder).getSnapshot({ snapshotId: 't5' }))?.state).toEqual(stateOf(5));
  });

  it('of an earlier version, which gave a place twice, loses neither of the two', async () => {
    const folder = temporaryFolder();
    await saveTurns(openStore(folder), 6);
    const file = (id: string): string => join(folder, 'global', `${id}.json`);
    // The numbers that earlier versions gave: t5 was lost, and `a` got its place.
    const log = readFileSync(logOf(folder), 'utf8');
    const seqs = [...new Set([...log.matchAll(/"seq":(\d+)/g)].map((match) => match[1]!))];
    const number = (text: string): string => seqs.reduce((all, seq, i) => all.replaceAll(seq, `${i + 1}`), text);
    for (let turn = 1; turn <= 6; turn++)
      writeFileSync(file(`t${turn}`), number(readFileSync(file(`t${turn}`), 'utf8')));
    writeFileSync(logOf(folder), number(log));
    cut(folder, 4);
    const store = openStore(folder);
    const states = new Map<string, unknown>([['a', await saveOn(store, 'a', 't4', 100)]]);
    const seq = /"seq":(\d+)/.exec(readFileSync(file('a'), 'utf8'))![1]!;
    for (const path of [file('a'), logOf(folder)]) writeFileSync(path, readFileSync(path, 'utf8').replaceAll(seq, '5'));
    states.set('b', await saveOn(openStore(folder), 'b', 'a', 101));
    const lost = [readFileSync(file('t5')), readFileSync(file('t6'))];
    await openStore(folder).prune({ maxAgeMs: 1e12 });
    await openStore(folder).prune({ maxChainLength: 2 });
    await expectStates(folder, states, 'pruned');
    expect([readFileSync(file('t5')), readFileSync(file('t6'))]).toEqual(lost);
    await saveState(openStore(folder), 't5', 'b', { custom: { turn: 5 } });
    states.set('t5', { custom: { turn: 5 } });
    await expectStates(folder, states, 't5 saved again');
  });
});
