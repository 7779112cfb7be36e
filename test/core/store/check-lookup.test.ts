import { describe, expect, it } from 'vitest';
import { SessionTree, type SnapshotNode } from '../../../src/snapshot/session-tree.ts';
import { checkLookup } from '../../../src/store/check-lookup.ts';
import { chooseLeaf } from '../../../src/store/choose-leaf.ts';
import { summarize } from '../../../src/store/list/session-summary.ts';

const refused = (status: string): Error => expect.objectContaining({ status }) as Error;

describe('checkLookup', () => {
  it('refuses no lookup at all', () => {
    expect(() => checkLookup(undefined as never)).toThrow(refused('INVALID_ARGUMENT'));
  });
});

function treeOf(...nodes: [id: string, parentId?: string][]): SessionTree<SnapshotNode> {
  const tree = new SessionTree<SnapshotNode>();
  for (const [i, [snapshotId, parentId]] of nodes.entries()) {
    tree.put({ snapshotId, createdAt: `${i}`, status: 'completed', ...(parentId && { parentId }) });
  }
  return tree;
}

describe('chooseLeaf', () => {
  it('refuses a branched session when told to, and one that runs in a circle always', () => {
    const branched = treeOf(['a'], ['b', 'a'], ['c', 'a']);
    expect(() => chooseLeaf(branched, 'chat', true)).toThrow(refused('FAILED_PRECONDITION'));
    expect(() => chooseLeaf(branched, 'chat', true)).toThrow('"chat" has 2 leaves');
    expect(() => chooseLeaf(treeOf(['a', 'b'], ['b', 'a']), 'chat', false)).toThrow(refused('FAILED_PRECONDITION'));
  });
});

describe('summarize', () => {
  it('has nothing to say of one without a snapshot, or without a leaf', () => {
    expect(summarize('chat', treeOf())).toBeUndefined();
    expect(summarize('chat', treeOf(['a', 'b'], ['b', 'a']))).toBeUndefined();
  });
});
