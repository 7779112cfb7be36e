import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byCreation, SessionTree, type SnapshotNode } from '../../../src/snapshot/session-tree.ts';
import { random, seed } from '../../support/scale.ts';

type Step = { do: 'put'; id: number; parent: number | undefined } | { do: 'remove'; id: number };

const id = fc.integer({ min: 0, max: 12 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('put' as const), id, parent: fc.option(id, { nil: undefined, freq: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('remove' as const), id }) },
);

function node(number: number, parent: number | undefined): SnapshotNode {
  return {
    snapshotId: `s${number}`,
    createdAt: '2026-01-01T00:00:00.000Z',
    ...(parent !== undefined && { parentId: `s${parent}` }),
  };
}

/** The same from scratch: nodes in a list, searched from end to end. */
function fromScratch(nodes: readonly SnapshotNode[]) {
  const childrenOf = (parent: string) => nodes.filter((one) => one.parentId === parent).map((one) => one.snapshotId);
  const leaves = nodes.filter((one) => childrenOf(one.snapshotId).length === 0).map((one) => one.snapshotId);
  const pathOf = (start: string): string[] => {
    const path: string[] = [];
    for (let at: string | undefined = start; at !== undefined && !path.includes(at);) {
      path.push(at);
      at = nodes.find((one) => one.snapshotId === at)?.parentId;
    }
    return path;
  };
  return { childrenOf, leaves, pathOf };
}

describe('SessionTree', () => {
  it(`agrees after every step with what is worked out from scratch (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const tree = new SessionTree<SnapshotNode>();
        let nodes: SnapshotNode[] = [];
        for (const now of steps) {
          const snapshotId = `s${now.id}`;
          if (now.do === 'remove') {
            tree.remove(snapshotId);
            nodes = nodes.filter((one) => one.snapshotId !== snapshotId);
          } else {
            const known = nodes.find((one) => one.snapshotId === snapshotId);
            const parent = now.parent === undefined ? undefined : `s${now.parent}`;
            const closes = parent !== undefined && fromScratch(nodes).pathOf(parent).includes(snapshotId);
            if (!known) expect(tree.wouldCycle(snapshotId, parent)).toBe(closes);
            if (!known && closes) continue;
            // As `revise` sees to it: a rewrite keeps its parent.
            const put = known ? { ...known } : node(now.id, now.parent);
            tree.put(put);
            nodes = known ? nodes.map((one) => (one === known ? put : one)) : [...nodes, put];
          }
          const expected = fromScratch(nodes);
          expect([...tree.nodes()]).toEqual(nodes);
          expect(tree.leaves().map((leaf) => leaf.snapshotId)).toEqual(expected.leaves);
          expect([tree.size, tree.leafCount]).toEqual([nodes.length, expected.leaves.length]);
          expect(tree.latestLeaf()?.snapshotId).toBe(expected.leaves.at(-1));
          for (let n = 0; n <= 12; n++) {
            expect(tree.children(`s${n}`).toSorted()).toEqual(expected.childrenOf(`s${n}`).toSorted());
            expect(tree.hasChildren(`s${n}`)).toBe(expected.childrenOf(`s${n}`).length > 0);
            expect([...tree.ancestors(`s${n}`)]).toEqual(expected.pathOf(`s${n}`));
          }
        }
      }),
      random(300, 10_000),
    );
  });

  it('remembers what was written last, removed or not', () => {
    const tree = new SessionTree<SnapshotNode>();
    expect(tree.lastWritten()).toBeUndefined();
    tree.put(node(1, undefined));
    tree.put(node(2, 1));
    const rewritten = { ...node(1, undefined), updatedAt: 'later' };
    tree.put(rewritten);
    expect(tree.lastWritten()).toBe(rewritten);
    tree.remove('s1');
    expect(tree.lastWritten()).toBe(rewritten);
  });

  it('has no leaf when foreign data runs in a circle, and walks it once', () => {
    const tree = new SessionTree<SnapshotNode>();
    tree.put(node(1, 2));
    tree.put(node(2, 1));
    expect(tree.latestLeaf()).toBeUndefined();
    expect([...tree.ancestors('s1')]).toEqual(['s1', 's2']);
  });

  it('says which id an invariant misses', () => {
    expect(() => new SessionTree().mustGet('gone')).toThrow('"gone"');
  });
});

describe('byCreation', () => {
  it('orders by time, then by id', () => {
    const at = (snapshotId: string, createdAt: string): SnapshotNode => ({ snapshotId, createdAt });
    const sorted = [at('b', '2'), at('c', '1'), at('a', '2'), at('d', '3')].toSorted(byCreation);
    expect(sorted.map((one) => one.snapshotId)).toEqual(['c', 'a', 'b', 'd']);
  });
});
