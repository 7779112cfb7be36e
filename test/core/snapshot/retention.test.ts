import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SessionTree, type SnapshotNode } from '../../../src/snapshot/session-tree.ts';
import { assertPolicy, planRetention, type SessionRetention } from '../../../src/snapshot/retention.ts';
import { SNAPSHOT_STATUSES } from '../../../src/snapshot/status.ts';
import { random, seed } from '../../support/scale.ts';

const NOW = Date.parse('2026-06-01T00:00:00.000Z');

interface Entry {
  parent: number;
  status: SnapshotNode['status'];
  age: number;
  touched: number | undefined;
}

const entry: fc.Arbitrary<Entry> = fc.record({
  parent: fc.integer({ min: -2, max: 20 }),
  status: fc.constantFrom('completed', 'completed', 'completed', ...SNAPSHOT_STATUSES),
  age: fc.integer({ min: 0, max: 10 }),
  touched: fc.option(fc.integer({ min: 0, max: 10 }), { nil: undefined }),
});

const age = fc.option(fc.integer({ min: 0, max: 10 }), { nil: undefined });
const policy: fc.Arbitrary<SessionRetention> = fc.record({
  maxAgeMs: age,
  idleMs: age,
  maxChainLength: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
});

const ago = (ms: number): string => new Date(NOW - ms - 0.5).toISOString();

function treeOf(entries: readonly Entry[]): SessionTree<SnapshotNode> {
  const tree = new SessionTree<SnapshotNode>();
  for (const [i, { parent, status, age: created, touched }] of entries.entries()) {
    tree.put({
      snapshotId: `s${i}`,
      createdAt: ago(created),
      status,
      ...(touched !== undefined && { updatedAt: ago(touched) }),
      ...(i > 0 && parent >= 0 && { parentId: `s${parent % i}` }),
      ...(parent === -2 && { parentId: 'pruned before' }),
    });
  }
  return tree;
}

function copyOf(tree: SessionTree<SnapshotNode>): SessionTree<SnapshotNode> {
  const copy = new SessionTree<SnapshotNode>();
  for (const one of tree.nodes()) copy.put(one);
  return copy;
}

/** The snapshot that a session with this leaf continues from, or the missing one that keeps it from continuing. */
function walkBack(tree: SessionTree<SnapshotNode>, leaf: SnapshotNode): string | undefined {
  let node = leaf;
  while (node.status !== 'completed') {
    if (node.parentId === undefined) return undefined;
    const parent = tree.get(node.parentId);
    if (!parent) return `${node.parentId} is gone`;
    node = parent;
  }
  return node.snapshotId;
}

const idsOf = (nodes: Iterable<SnapshotNode>): string[] => [...nodes].map((one) => one.snapshotId);

describe('planRetention', () => {
  it(`keeps leaves, what runs and the newest of every path, and turns nothing into a leaf (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 20 }), policy, (entries, rule) => {
        const tree = treeOf(entries);
        const plan = planRetention(tree, rule, NOW);
        if (plan.whole) {
          expect(rule.idleMs).toBeDefined();
          expect([...tree.nodes()].every((one) => one.status !== 'pending')).toBe(true);
          return;
        }
        const after = copyOf(tree);
        for (const id of plan.remove) after.remove(id);
        expect(idsOf(after.leaves())).toEqual(idsOf(tree.leaves()));
        expect(after.latestLeaf()).toBe(tree.latestLeaf());
        expect(after.leaves().map((leaf) => walkBack(after, leaf))).toEqual(
          tree.leaves().map((leaf) => walkBack(tree, leaf)),
        );
        for (const id of plan.remove) {
          expect(tree.mustGet(id).status).not.toBe('pending');
          const isOld = rule.maxAgeMs !== undefined && Date.parse(tree.mustGet(id).createdAt) < NOW - rule.maxAgeMs;
          const isFar = rule.maxChainLength !== undefined && isBeyond(tree, id, rule.maxChainLength);
          expect(isOld || isFar).toBe(true);
        }
        expect(plan.remove).toEqual(idsOf(tree.nodes()).filter((id) => plan.remove.includes(id)));
        // With one rule alone nothing is left to do; two rules may see each other's work.
        if (rule.maxAgeMs !== undefined && rule.maxChainLength !== undefined) return;
        expect(planRetention(after, { ...rule, idleMs: undefined }, NOW)).toEqual({ whole: false, remove: [] });
      }),
      random(500, 20_000),
    );
  });

  it('removes all that a policy names where nothing runs and the clocks are true', () => {
    const chain = treeOf(
      Array.from({ length: 10 }, (_, i) => ({ parent: i - 1, status: 'completed', age: 10 - i, touched: undefined })),
    );
    expect(planRetention(chain, { maxChainLength: 3 }, NOW)).toEqual({
      whole: false,
      remove: ['s0', 's1', 's2', 's3', 's4', 's5', 's6'],
    });
    expect(planRetention(chain, { maxAgeMs: 7 }, NOW)).toEqual({ whole: false, remove: ['s0', 's1', 's2', 's3'] });
    expect(planRetention(chain, { maxAgeMs: 0 }, NOW)).toEqual({
      whole: false,
      remove: idsOf(chain.nodes()).slice(0, -1),
    });
    expect(planRetention(chain, { idleMs: 0 }, NOW)).toEqual({ whole: true });
    expect(planRetention(chain, { idleMs: 5 }, NOW)).toEqual({ whole: false, remove: [] });
    expect(planRetention(chain, { maxChainLength: 9 }, NOW)).toEqual({ whole: false, remove: ['s0'] });
  });

  it('takes a time that can’t be read for a new one', () => {
    const tree = new SessionTree<SnapshotNode>();
    tree.put({ snapshotId: 'a', createdAt: 'yesterday' });
    tree.put({ snapshotId: 'b', parentId: 'a', createdAt: 'today' });
    expect(planRetention(tree, { maxAgeMs: 0, idleMs: 0 }, NOW)).toEqual({ whole: false, remove: [] });
  });
});

function isBeyond(tree: SessionTree<SnapshotNode>, id: string, length: number): boolean {
  return tree.leaves().every((leaf) => {
    const distance = [...tree.ancestors(leaf.snapshotId)].indexOf(id);
    return distance === -1 || distance >= length;
  });
}

describe('assertPolicy', () => {
  it.each([{ maxAgeMs: 0 }, { idleMs: 1.5 }, { maxChainLength: 1 }, { maxAgeMs: 1, idleMs: 2, maxChainLength: 3 }])(
    'takes %j',
    (good) => {
      expect(() => assertPolicy(good)).not.toThrow();
    },
  );

  it.each([
    undefined,
    null,
    'all',
    {},
    { maxAge: 1 },
    { idleMs: -1 },
    { maxAgeMs: Infinity },
    { maxChainLength: 0 },
    { maxChainLength: 2.5 },
  ])('refuses %j', (bad) => {
    expect(() => assertPolicy(bad as SessionRetention)).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT' }) as Error,
    );
  });
});
