import { describe, expect, it } from 'vitest';
import { SessionConflictError } from '../../../src/errors.ts';
import { SessionTree, type SnapshotNode } from '../../../src/snapshot/session-tree.ts';
import { assertFunction, checkLookup } from '../../../src/store/check-lookup.ts';
import { assertExpectedLeaf, chooseLeaf } from '../../../src/store/choose-leaf.ts';
import { summarize } from '../../../src/store/list/session-summary.ts';

const refused = (status: string): Error => expect.objectContaining({ status }) as Error;

describe('checkLookup', () => {
  it('answers which of the two it is', () => {
    expect(checkLookup({ snapshotId: 'x' })).toEqual({ by: 'snapshot', id: 'x' });
    expect(checkLookup({ sessionId: 'y', snapshotId: undefined })).toEqual({ by: 'session', id: 'y' });
  });

  it.each([
    {},
    { snapshotId: 'x', sessionId: 'y' },
    { snapshotId: '' },
    { sessionId: ' ' },
    { snapshotId: 7 },
    undefined,
  ])('refuses %j', (lookup) => {
    expect(() => checkLookup(lookup as never)).toThrow(refused('INVALID_ARGUMENT'));
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
  it('answers the latest leaf, or none', () => {
    expect(chooseLeaf(treeOf(), 'chat', true)).toBeUndefined();
    expect(chooseLeaf(treeOf(['a'], ['b', 'a']), 'chat', true)?.snapshotId).toBe('b');
    expect(chooseLeaf(treeOf(['a'], ['b', 'a'], ['c', 'a']), 'chat', false)?.snapshotId).toBe('c');
  });

  it('refuses a branched session when told to, and one that runs in a circle always', () => {
    const branched = treeOf(['a'], ['b', 'a'], ['c', 'a']);
    expect(() => chooseLeaf(branched, 'chat', true)).toThrow(refused('FAILED_PRECONDITION'));
    expect(() => chooseLeaf(branched, 'chat', true)).toThrow('"chat" has 2 leaves');
    expect(() => chooseLeaf(treeOf(['a', 'b'], ['b', 'a']), 'chat', false)).toThrow(refused('FAILED_PRECONDITION'));
  });
});

describe('assertExpectedLeaf', () => {
  it('lets through what matches, and what expects nothing', () => {
    assertExpectedLeaf(undefined, 'chat', 'leaf');
    assertExpectedLeaf(undefined, undefined, null);
    assertExpectedLeaf('leaf', 'chat', 'leaf');
    assertExpectedLeaf(null, 'chat', null);
  });

  it('throws a conflict that says what there is', () => {
    const conflict = (): void => assertExpectedLeaf('mine', 'chat', 'theirs');
    expect(conflict).toThrow(SessionConflictError);
    expect(conflict).toThrow(
      expect.objectContaining({ status: 'ABORTED', expectedLeafId: 'mine', actualLeafId: 'theirs' }) as Error,
    );
    expect(() => assertExpectedLeaf(null, 'chat', 'theirs')).toThrow(SessionConflictError);
    expect(() => assertExpectedLeaf('mine', 'chat', null)).toThrow(SessionConflictError);
  });

  it('refuses an expectation that can’t be met', () => {
    expect(() => assertExpectedLeaf('', 'chat', null)).toThrow(refused('INVALID_ARGUMENT'));
    expect(() => assertExpectedLeaf(null, undefined, null)).toThrow(refused('INVALID_ARGUMENT'));
  });
});

describe('assertFunction', () => {
  it('refuses what can’t be called, by the argument’s name', () => {
    expect(() => assertFunction(() => {}, 'mutator')).not.toThrow();
    expect(() => assertFunction({}, 'mutator')).toThrow('The mutator must be a function');
  });
});

describe('summarize', () => {
  it('says of a session what a list says', () => {
    const tree = treeOf(['a'], ['b', 'a'], ['c', 'a']);
    const line = {
      sessionId: 'chat',
      leafId: 'c',
      leafCount: 2,
      snapshotCount: 3,
      createdAt: '0',
      updatedAt: '2',
      status: 'completed',
    };
    expect(summarize('chat', tree)).toEqual(line);
    tree.put({ snapshotId: 'b', parentId: 'a', createdAt: '1', updatedAt: '9', status: 'completed' });
    expect(summarize('chat', tree)).toEqual({ ...line, updatedAt: '9' });
  });

  it('has nothing to say of one without a snapshot, or without a leaf', () => {
    expect(summarize('chat', treeOf())).toBeUndefined();
    expect(summarize('chat', treeOf(['a', 'b'], ['b', 'a']))).toBeUndefined();
  });
});
