import { describe, expect, it } from 'vitest';
import type { SnapshotNode } from '../../samples/support/server/api-types.ts';
import { EMPTY, reduce, type ConversationEvent } from '../../samples/support/page/src/conversation-state.ts';
import { parse } from '../../samples/support/page/src/place.ts';
import { continueFrom, draw, NODE_SIZE, pathTo } from '../../samples/support/page/src/tree.ts';
import { turnsOf, withChunk } from '../../samples/support/page/src/turns.ts';

const preview = { title: '', asked: '', replied: '', tools: [] };

function node(snapshotId: string, parentId?: string, status: SnapshotNode['status'] = 'completed'): SnapshotNode {
  return { snapshotId, parentId, status, createdAt: '', preview };
}

//     a
//   b   e
//  c d
const TREE = [node('a'), node('b', 'a'), node('c', 'b'), node('d', 'b'), node('e', 'a')];

describe('the conversation', () => {
  const loaded: Extract<ConversationEvent, { type: 'loaded' }> = { type: 'loaded', nodes: [] };

  it('says what went wrong with a turn until one goes elsewhere, also when it is read again', () => {
    const failed = reduce(EMPTY, { type: 'failed', problem: 'The model is overloaded.', isOfTurn: true });
    const again = reduce(reduce(failed, { ...loaded, isAgain: true }), { ...loaded, isAgain: true });
    expect(again.problem).toBe('The model is overloaded.');
    expect(reduce(again, loaded).problem).toBeUndefined();
    expect(reduce(reduce(again, { type: 'dismissed' }), { ...loaded, isAgain: true }).problem).toBeUndefined();
  });

  it('does not say any more that it could not be read once it could', () => {
    const failed = reduce(EMPTY, { type: 'failed', problem: 'The server can’t be reached.' });
    expect(reduce(failed, { ...loaded, isAgain: true }).problem).toBeUndefined();
  });
});

describe('the tree', () => {
  it('knows the way to each snapshot', () => {
    expect(pathTo(TREE, 'd').map(({ snapshotId }) => snapshotId)).toEqual(['a', 'b', 'd']);
    expect(pathTo(TREE, 'gone')).toEqual([]);
    expect(pathTo([node('x', 'y'), node('y', 'x')], 'x')).toHaveLength(2);
  });

  it('continues from the last good snapshot', () => {
    const failed = [node('a'), node('b', 'a', 'failed')];
    expect(continueFrom(pathTo(failed, 'b'))?.snapshotId).toBe('a');
    expect(continueFrom([])).toBeUndefined();
  });

  it('is drawn with parents above, the older branch on the left, and nothing overlapping', () => {
    const { nodes, width } = draw(TREE);
    const at = Object.fromEntries(nodes.map((placed) => [placed.node.snapshotId, placed]));
    expect([at.a?.turn, at.b?.turn, at.d?.turn]).toEqual([1, 2, 3]);
    expect(at.a!.y).toBeLessThan(at.b!.y);
    expect(at.b!.x + NODE_SIZE.width).toBeLessThan(at.e!.x);
    expect(at.c!.x + NODE_SIZE.width).toBeLessThan(at.d!.x);
    expect(Math.max(...nodes.map(({ x }) => x + NODE_SIZE.width))).toBeLessThanOrEqual(width);
  });

  it('draws what is left of a tree whose first snapshots were pruned', () => {
    expect(draw([node('b', 'pruned'), node('c', 'b')]).nodes.map(({ turn }) => turn)).toEqual([1, 2]);
  });
});

describe('the place in the address', () => {
  it.each<[hash: string, place: object]>([
    ['#/s%2F1/a', { sessionId: 's/1', snapshotId: 'a' }],
    ['#/..', { sessionId: '..' }],
    ['#/new', {}],
    ['#/%', {}],
    ['#/s/%', { sessionId: 's' }],
  ])('%s', (hash, place) => expect(parse(hash)).toEqual(place));
});

describe('the turns', () => {
  const request = { name: 'findOrder', ref: '1', input: { orderId: '1042' } };
  const response = { name: 'findOrder', ref: '1', output: { order: {} } };
  const turn = {
    asked: 'Where is 1042?',
    steps: [
      { kind: 'tool', name: 'findOrder', ref: '1', input: { orderId: '1042' }, output: { order: {} } },
      { kind: 'text', text: 'On its way.' },
    ],
  };

  it('are the same whether they are read from a snapshot or streamed', () => {
    const stored = turnsOf([
      { role: 'user', content: [{ text: 'Where is 1042?' }] },
      { role: 'model', content: [{ toolRequest: request }] },
      { role: 'tool', content: [{ toolResponse: response }] },
      { role: 'model', content: [{ text: 'On its way.' }] },
    ]);
    const chunks = [
      { modelChunk: { role: 'model' as const, content: [{ toolRequest: request }] } },
      { customPatch: [] },
      { modelChunk: { role: 'tool' as const, content: [{ toolResponse: response }] } },
      { modelChunk: { role: 'model' as const, content: [{ text: 'On its' }] } },
      { modelChunk: { role: 'model' as const, content: [{ text: ' way.' }] } },
    ];
    expect(stored).toEqual([turn]);
    expect(chunks.reduce(withChunk, { asked: 'Where is 1042?', steps: [] })).toEqual(turn);
  });

  it('show a tool as running until its result is there', () => {
    const [running] = turnsOf([
      { role: 'user', content: [{ text: 'Hi' }] },
      { role: 'model', content: [{ toolRequest: request }] },
    ]);
    expect(running?.steps[0]).not.toHaveProperty('output');
  });
});
