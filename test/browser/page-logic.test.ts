import type { ContextReport, MessageData } from 'genkitx-agents/client';
import { describe, expect, it } from 'vitest';
import { parse } from '../../samples/support/page/src/logic/place.ts';
import { byTurn, draw, NODE_SIZE, pathTo, turnTree } from '../../samples/support/page/src/logic/tree.ts';
import type { SnapshotNode } from '../../samples/support/server/api-types.ts';
import { describeContext } from '../../ui/logic/describe-context.ts';
import { turnsOf } from '../../ui/logic/turns.ts';

interface Made {
  parent?: string;
  turn?: number;
  status?: SnapshotNode['status'];
  asked?: string;
}

function node(snapshotId: string, { parent, turn = 1, status = 'completed', asked = '' }: Made = {}): SnapshotNode {
  const preview = { title: '', asked, tools: [], turn, isWaiting: false };
  return { snapshotId, parentId: parent, status, createdAt: '', preview };
}

const ids = (nodes: readonly SnapshotNode[]) => nodes.map(({ snapshotId, parentId }) => [snapshotId, parentId]);

//     a
//   b   e
//  c d
const TREE = [
  node('a'),
  node('b', { parent: 'a', turn: 2 }),
  node('c', { parent: 'b', turn: 3 }),
  node('d', { parent: 'b', turn: 3 }),
  node('e', { parent: 'a', turn: 2 }),
];

describe('the tree', () => {
  it('knows the way to each snapshot', () => {
    expect(pathTo(TREE, 'd').map(({ snapshotId }) => snapshotId)).toEqual(['a', 'b', 'd']);
    expect(pathTo(TREE, 'gone')).toEqual([]);
    expect(pathTo([node('x', { parent: 'y' }), node('y', { parent: 'x' })], 'x')).toHaveLength(2);
  });

  it('has one box a turn, whether the turn waited for an answer or was run again', () => {
    const nodes = [
      node('start', { turn: 0 }),
      node('asks', { parent: 'start' }),
      node('approved', { parent: 'asks' }),
      node('stopped', { parent: 'approved', turn: 2, status: 'aborted' }),
      node('retried', { parent: 'stopped', turn: 2 }),
    ];
    expect(ids(turnTree(nodes, 'retried'))).toEqual([
      ['approved', undefined],
      ['retried', 'approved'],
    ]);
    const turns = byTurn(pathTo(nodes, 'retried'));
    expect(turns.get(2)?.first.snapshotId).toBe('stopped');
    expect(turns.get(2)?.last.snapshotId).toBe('retried');
  });

  it('shows a turn that failed only when that is where one is', () => {
    const nodes = [node('a'), node('b', { parent: 'a', turn: 2, status: 'failed' })];
    expect(ids(turnTree(nodes, 'a'))).toEqual([['a', undefined]]);
    expect(turnTree(nodes, 'b')).toHaveLength(2);
  });

  it('is drawn with parents above, the older branch on the left, and nothing overlapping', () => {
    const { nodes, width } = draw(TREE);
    const at = Object.fromEntries(nodes.map((placed) => [placed.node.snapshotId, placed]));
    expect(at.a!.y).toBeLessThan(at.b!.y);
    expect(at.b!.x + NODE_SIZE.width).toBeLessThan(at.e!.x);
    expect(at.c!.x + NODE_SIZE.width).toBeLessThan(at.d!.x);
    expect(Math.max(...nodes.map(({ x }) => x + NODE_SIZE.width))).toBeLessThanOrEqual(width);
  });

  it('draws what is left of a tree whose first snapshots were pruned', () => {
    expect(draw([node('b', { parent: 'pruned' }), node('c', { parent: 'b' })]).nodes).toHaveLength(2);
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
  const user = { role: 'user' as const, content: [{ text: 'Where is 1042?' }] };
  const asks = { role: 'model' as const, content: [{ toolRequest: request }] };
  const gets = { role: 'tool' as const, content: [{ toolResponse: response }] };
  const says = (text: string) => ({ role: 'model' as const, content: [{ text }] });

  it('have what was asked and the steps of the answer', () => {
    expect(turnsOf([user, asks, gets, says('On its way.'), user])).toEqual([
      {
        index: 0,
        asked: 'Where is 1042?',
        steps: [
          { kind: 'tool', name: 'findOrder', ref: '1', input: { orderId: '1042' }, output: { order: {} } },
          { kind: 'text', text: 'On its way.' },
        ],
      },
      { index: 4, asked: 'Where is 1042?', steps: [] },
    ]);
  });

  it('show a tool as not done until its result is there', () => {
    const [last] = turnsOf([user, asks]);
    expect(last?.steps[0]).not.toHaveProperty('output');
  });
});

describe('what the model saw, in words', () => {
  const message = (role: MessageData['role']): MessageData => ({ role, content: [{ text: 'x' }] });
  /** Eight turns of two messages. */
  const messages = Array.from({ length: 8 }, () => [message('user'), message('model')]).flat();
  const report: ContextReport = {
    maxTokens: 8_000,
    estimatedTokens: 1_234,
    inputTokens: 1_200,
    calls: 1,
    sections: {
      prompt: { tokens: 100, items: 1 },
      history: { tokens: 400, items: 4, omitted: 4, reasons: ['strategy'] },
      summary: { tokens: 200, items: 1 },
    },
    messages: 15,
    sent: [
      [8, 10],
      [12, 14],
    ],
    dropped: [
      [6, 8],
      [10, 12],
    ],
    changed: [[8, 10]],
    summary: { sha256: 'a', to: 6 },
  };

  it('names the turns that were sent, those in the summary, those left out and why, and those that were shortened', () => {
    expect(describeContext(report, messages)).toEqual({
      total: 'About 1,234 of at most 8,000 tokens; the model counted 1,200.',
      sections: [
        { label: 'Summary', what: 'turns 1–3', tokens: 200, share: 0.5 },
        { label: 'Earlier turns', what: 'turns 5, 7 · 4 messages', tokens: 400, share: 1 },
        { label: 'This turn', what: '1 message', tokens: 100, share: 0.25 },
      ],
      leftOut: [
        'Earlier turns: 4 messages (turns 4, 6), older than the turns that the agent sends.',
        'Tool outputs of turn 5: replaced by a short line.',
      ],
      summarized: 'turns 1–3',
    });
  });

  it('says when the model was called more than once, refused the length, counted nothing, or when the report is cut', () => {
    const { inputTokens: _, summary: _none, ...rest } = report;
    const { total, summarized } = describeContext(
      { ...rest, calls: 2, hasRetried: true, isShortened: true, sections: {} },
      messages,
    );
    expect(total).toBe(
      'About 1,234 of at most 8,000 tokens; the model reported no count. This is the last of 2 calls of the model. The model refused a longer one. Not all turns are listed here.',
    );
    expect(summarized).toBeUndefined();
  });
});
