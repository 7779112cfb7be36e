import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completedSnapshot, Workload, type WorkloadState } from '../../../../bench/workload.ts';
import { bytesAtRest } from '../../../../bench/measure.ts';
import { random, scale } from '../../../support/scale.ts';
import { FileSessionStore, type FileSessionStoreOptions } from '../../../../stores/file/file-session-store.ts';
import type { SnapshotStatus } from '../../../../src/store/contract.ts';
import { SessionTree, type SnapshotNode } from '../../../../src/snapshot/session-tree.ts';
import { overflow, planRetention } from '../../../../src/snapshot/retention.ts';
import { entriesBelow } from '../support/folders.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';
import { RecordingFileSystem, type Operation } from '../support/recording.ts';
import { openStore, saveTurn, saveTurns, SESSION } from '../support/scenarios.ts';

describe('maxPersistedChainLength', () => {
  it('keeps the newest of the path, each as it was', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { maxPersistedChainLength: 3 });
    await saveTurns(store, 20, true);
    const cold = openStore(folder);
    const { items } = await cold.listSnapshots({ sessionId: SESSION });
    expect(items.map((item) => item.snapshotId)).toEqual(['t18', 't19', 't20']);
    for (const turn of [18, 19, 20]) {
      expect((await cold.getSnapshot({ snapshotId: `t${turn}` }))?.state?.custom?.turn).toBe(turn);
    }
    expect(await cold.getSnapshot({ snapshotId: 't17' })).toBeUndefined();
    expect(
      readdirSync(join(folder, 'global'))
        .filter((name) => name.endsWith('.json'))
        .toSorted(),
    ).toEqual(['t18.json', 't19.json', 't20.json']);
  });

  it('an ancestor that a sibling branch needs stays', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { maxPersistedChainLength: 3 });
    await saveTurns(store, 3);
    await saveTurn(store, 30, { parent: 't2' });
    await saveTurn(store, 4);
    await saveTurn(store, 5);
    const ids = async (): Promise<string[]> =>
      (await store.listSnapshots({ sessionId: SESSION })).items.map((item) => item.snapshotId);
    // t30, t2 and t1 are within reach of t30; t3, t4, t5 of t5.
    expect(await ids()).toEqual(['t1', 't2', 't3', 't30', 't4', 't5']);
    await saveTurn(store, 31, { parent: 't30' });
    expect(await ids()).toEqual(['t2', 't3', 't30', 't4', 't5', 't31']);
    for (const id of await ids())
      expect((await openStore(folder).getSnapshot({ snapshotId: id }))?.snapshotId).toBe(id);
  });

  it.each(['pending', 'failed', 'aborted', 'expired'] as const)(
    'a turn that is %s removes no snapshot that its session continues from',
    async (status) => {
      const folder = temporaryFolder();
      const store = openStore(folder, { maxPersistedChainLength: 1 });
      await saveTurns(store, 2, true);
      await saveTurn(store, 3, { status: 'aborted', wide: true });
      await saveTurn(store, 4, { status, wide: true });
      const cold = openStore(folder);
      const ids = async (): Promise<string[]> =>
        (await cold.listSnapshots({ sessionId: SESSION })).items.map((item) => item.snapshotId);
      expect(await ids()).toEqual(['t2', 't3', 't4']);
      expect((await cold.getSnapshot({ snapshotId: 't2' }))?.state?.custom?.turn).toBe(2);
      await saveTurn(store, 5, { parent: 't2' });
      await saveTurn(store, 6);
      // t2 stays for t4, another leaf.
      expect(await ids()).toEqual(['t2', 't3', 't4', 't6']);
    },
  );

  it('after a turn has completed, the next save removes the snapshots that it no longer needs', async () => {
    const store = openStore(temporaryFolder(), { maxPersistedChainLength: 1 });
    await saveTurn(store, 1);
    await saveTurn(store, 2, { status: 'aborted' });
    await saveTurn(store, 3);
    const { items } = await store.listSnapshots({ sessionId: SESSION });
    expect(items.map((item) => item.snapshotId)).toEqual(['t3']);
  });

  it('a removed id can be used again, in any session', async () => {
    const store = openStore(temporaryFolder(), { maxPersistedChainLength: 2 });
    await saveTurns(store, 4, true);
    await store.saveSnapshot('t2', () => ({
      sessionId: 'another',
      createdAt: 'x',
      state: { custom: { turn: 100 } },
    }));
    await store.saveSnapshot('t1', () => ({
      sessionId: SESSION,
      createdAt: 'x',
      parentId: 't4',
      state: { custom: { turn: 200 } },
    }));
    expect((await store.getSnapshot({ sessionId: 'another' }))?.state?.custom?.turn).toBe(100);
    expect((await store.getSnapshot({ sessionId: SESSION }))?.state?.custom?.turn).toBe(200);
    expect((await store.getSnapshot({ snapshotId: 't4' }))?.state?.custom?.turn).toBe(4);
  });

  it('removed snapshots leave no files: the folder stays as small as the chain', async () => {
    const folder = temporaryFolder();
    const store = openStore(folder, { maxPersistedChainLength: 3, durability: 'fast' });
    await saveTurns(store, 12, true);
    const after12 = entriesBelow(folder).length;
    for (let turn = 13; turn <= 60; turn++) await saveTurn(store, turn, { wide: true });
    expect(entriesBelow(folder).length).toBeLessThanOrEqual(after12 + 3);
  });

  it('overflow removes what the rule for whole sessions removes, on random trees', () => {
    growTrees(
      { statuses: ['completed', 'completed', 'failed', 'aborted', 'expired'] },
      ({ tree, beyond, length, added }) => {
        const path = new Set(tree.ancestors(added.snapshotId));
        const plan = planRetention(tree, { maxChainLength: length }, 0);
        const expected = plan.whole ? [] : plan.remove.filter((id) => path.has(id));
        expect(beyond.toSorted()).toEqual(expected.toSorted());
      },
    );
  });

  it('overflow keeps running snapshots, and does not make inner snapshots leaves', () => {
    growTrees({ statuses: ['completed', 'completed', 'completed', 'failed', 'pending'] }, ({ tree, beyond }) => {
      const leaves = tree.leaves().map((leaf) => leaf.snapshotId);
      for (const id of beyond) expect(tree.mustGet(id).status).not.toBe('pending');
      for (const id of beyond) tree.remove(id);
      expect(tree.leaves().map((leaf) => leaf.snapshotId)).toEqual(leaves);
    });
  });
});

interface Grown {
  readonly tree: SessionTree<SnapshotNode>;
  readonly added: SnapshotNode;
  /** The result of `overflow` for the snapshot that was added last. */
  readonly beyond: readonly string[];
  readonly length: number;
}

/** Grows random trees. Calls `check` after each new snapshot, and removes the overflow. */
function growTrees({ statuses }: { statuses: readonly SnapshotStatus[] }, check: (grown: Grown) => void): void {
  const step = fc.record({
    back: fc.nat(20),
    isRoot: fc.integer({ min: 0, max: 9 }),
    status: fc.constantFrom(...statuses),
  });
  const steps = fc.array(step, { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 5 }), (plan, length) => {
      const tree = new SessionTree<SnapshotNode>();
      for (const [i, { back, isRoot, status }] of plan.entries()) {
        const known = [...tree.nodes()].map((node) => node.snapshotId);
        const parentId = isRoot === 0 ? undefined : known.at(-1 - (back % Math.max(1, known.length)));
        const added: SnapshotNode = {
          snapshotId: `n${i}`,
          createdAt: '',
          status,
          ...(parentId !== undefined && { parentId }),
        };
        const beyond = overflow(tree, added, length);
        tree.put(added);
        check({ tree, added, beyond, length });
        for (const id of beyond) tree.remove(id);
      }
    }),
    random(300, 20_000),
  );
}

const CHANGES: ReadonlySet<Operation['call']> = new Set([
  'open',
  'write',
  'rename',
  'link',
  'unlink',
  'flush',
  'mkdir',
  'truncate',
]);

interface TurnCost {
  calls: number;
  changes: number;
  written: number;
}

/** Plays the standard workload, and counts what the turns of these numbers cost: each a lookup and a save. */
async function costs(
  options: FileSessionStoreOptions,
  marks: readonly number[],
  prepare: (store: FileSessionStore<WorkloadState>) => Promise<void> = async () => {},
): Promise<TurnCost[]> {
  const recording = new RecordingFileSystem();
  const store = new FileSessionStore<WorkloadState>(
    temporaryFolder(),
    { durability: 'fast', ...options },
    recording.fileSystem,
  );
  await prepare(store);
  const workload = new Workload();
  const found: TurnCost[] = [];
  for (let turn = 1; turn <= Math.max(...marks); turn++) {
    const state = workload.next();
    recording.operations.length = 0;
    const leaf = await store.getSnapshot({ sessionId: workload.sessionId });
    await store.saveSnapshot(`turn-${turn}`, () => completedSnapshot(state, leaf?.snapshotId));
    if (!marks.includes(turn)) continue;
    const written = recording.operations.map((operation) => (operation.call === 'write' ? operation.bytes.length : 0));
    found.push({
      calls: recording.operations.length,
      changes: recording.operations.filter(({ call }) => CHANGES.has(call)).length,
      written: written.reduce((sum, bytes) => sum + bytes, 0),
    });
  }
  return found;
}

describe('the cost of a turn', () => {
  const last = scale(161, 1511);
  it(`does not grow with the session: as many system calls and bytes at turn ${last} as at turn 61`, async () => {
    for (const options of [{}, { maxPersistedChainLength: 20 }, { rejectBranchingSessions: true }]) {
      const [early, late] = await costs(options, [61, last]);
      expect(late!.calls, JSON.stringify(options)).toBeLessThanOrEqual(early!.calls + 2);
      expect(late!.written).toBeLessThanOrEqual(early!.written * 1.1);
      expect(late!.written).toBeLessThan(4096);
    }
  });

  it('does not grow with the number of other sessions and tenants', async () => {
    const [alone] = await costs({}, [12]);
    const [crowded] = await costs({}, [12], async (store) => {
      for (let i = 0; i < scale(100, 1000); i++) {
        await store.saveSnapshot(`other-${i}`, () => ({ sessionId: `other-${i}`, createdAt: 'x', state: {} }));
      }
    });
    expect(crowded).toEqual(alone);
  });

  it('is about 20 changing system calls, and less than 35 reading ones', async () => {
    const [cost] = await costs({}, [13]);
    expect(cost!.changes).toBeLessThanOrEqual(22);
    expect(cost!.calls - cost!.changes).toBeLessThan(35);
  });

  it('pruning reads no state: the calls of a turn are those without it and a few more', async () => {
    const [without] = await costs({}, [63]);
    const [pruning] = await costs({ maxPersistedChainLength: 20 }, [63]);
    expect(pruning!.calls).toBeLessThanOrEqual(without!.calls + 6);
  });

  it('a lookup that refuses branches costs what one costs that does not', async () => {
    const counts: number[] = [];
    for (const rejectBranchingSessions of [true, false]) {
      const folder = temporaryFolder();
      await saveTurns(openStore(folder), 10);
      const recording = new RecordingFileSystem();
      const store = openStore(folder, { rejectBranchingSessions }, recording.fileSystem);
      await store.getSnapshot({ sessionId: SESSION });
      counts.push(recording.operations.length);
    }
    expect(counts[0]).toBe(counts[1]);
  });

  it('metadata of a snapshot costs the same however large its state is', async () => {
    const folder = temporaryFolder();
    await saveTurn(openStore(folder), 1);
    await openStore(folder).saveSnapshot('large', () => ({
      sessionId: 'large',
      createdAt: 'x',
      state: { messages: [{ role: 'user', content: [{ text: 'x'.repeat(3e6) }] }] },
    }));
    const read = async (snapshotId: string): Promise<number> => {
      const recording = new RecordingFileSystem();
      await openStore(folder, {}, recording.fileSystem).getSnapshotMetadata({ snapshotId });
      return recording.operations.length;
    };
    expect(await read('large')).toBe(await read('t1'));
  });
});

describe('the size of a session', () => {
  it('is at most 3 bytes on the disk for a byte of new information, every snapshot still loadable', async () => {
    const turns = scale(300, 1000);
    const folder = temporaryFolder();
    const store = new FileSessionStore<WorkloadState>(folder, { durability: 'fast' });
    const workload = new Workload();
    const texts: string[] = [];
    for (let turn = 1; turn <= turns; turn++) {
      const state = workload.next();
      if (turn % 37 === 0) texts[turn] = JSON.stringify(state);
      await store.saveSnapshot(`turn-${turn}`, () =>
        completedSnapshot(state, turn > 1 ? `turn-${turn - 1}` : undefined),
      );
    }
    await store.close();
    const { bytes, onDisk } = await bytesAtRest(folder);
    expect(bytes / workload.information).toBeLessThan(2.5);
    expect(onDisk / workload.information).toBeLessThan(3);
    const cold = new FileSessionStore<WorkloadState>(folder);
    for (const [turn, text] of Object.entries(texts)) {
      expect(JSON.stringify((await cold.getSnapshot({ snapshotId: `turn-${turn}` }))?.state)).toBe(text);
    }
  });

  it('a summary in place of 500 messages is stored in the smaller form', async () => {
    const folder = temporaryFolder();
    const recording = new RecordingFileSystem();
    const store = new FileSessionStore(folder, { durability: 'fast' }, recording.fileSystem);
    const messages = Array.from({ length: 500 }, (_, i) => ({
      role: 'user' as const,
      content: [{ text: `message ${i} `.repeat(20) }],
    }));
    await store.saveSnapshot('long', () => ({ sessionId: SESSION, createdAt: 'x', state: { messages } }));
    recording.operations.length = 0;
    const summary = { messages: [{ role: 'model' as const, content: [{ text: 'They talked.' }] }] };
    await store.saveSnapshot('short', () => ({ sessionId: SESSION, createdAt: 'x', parentId: 'long', state: summary }));
    const written = recording.operations.map((operation) => (operation.call === 'write' ? operation.bytes.length : 0));
    expect(written.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(1200);
    expect((await new FileSessionStore(folder).getSnapshot({ snapshotId: 'short' }))?.state).toEqual(summary);
  });
});
