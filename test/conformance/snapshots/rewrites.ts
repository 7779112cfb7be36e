import * as fc from 'fast-check';
import { equal, refuses, statusOf, textOf } from '../support/assertions.ts';
import type { SnapshotStatus } from '../../../src/store/contract.ts';
import type { Stage, Subject } from '../support/kit.ts';
import { message, snapshot } from '../support/snapshots.ts';
import { forAll } from '../support/for-all.ts';

/** A change from one state to the next. */
interface Change {
  kind: 'append' | 'truncate' | 'summary' | 'custom' | 'clear';
  value: fc.JsonValue;
}

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('append', 'append', 'append', 'truncate', 'summary', 'custom', 'clear'),
  // Ordinary JSON, because special values are tested elsewhere.
  value: fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text) as fc.JsonValue),
});

/** A session, and rewrites of any of its snapshots. Numbers name snapshots, modulo their count. Every fifth turn is not completed. */
const story = fc.record({
  turns: fc.array(fc.record({ parent: fc.nat(40), change }), { minLength: 2, maxLength: 30 }),
  rewrites: fc.array(fc.record({ target: fc.nat(40), change }), { minLength: 10, maxLength: 10 }),
});

type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

interface State {
  messages: ReturnType<typeof message>[];
  custom: unknown;
}

function changed(state: State, { kind, value }: Change): State {
  const { messages, custom } = state;
  switch (kind) {
    case 'append':
      return { messages: [...messages, message(messages.length), message(messages.length + 1)], custom };
    case 'truncate':
      return { messages: messages.slice(0, messages.length >> 1), custom };
    case 'summary':
      return { messages: [{ role: 'model', content: [{ text: `summary ${JSON.stringify(value)}` }] }], custom };
    case 'custom':
      return { messages, custom: value };
    case 'clear':
      return { messages: [], custom: null };
  }
}

/** The state of a completed snapshot with children never changes; a rewrite never changes another snapshot. */
export const rewrites: Subject = {
  name: 'rewrites',
  tests(kit) {
    const random = kit.property(50, 1000);
    const name = `rewrites: ${random.numRuns * 10} random rewrites change neither a completed snapshot with children nor another snapshot (seed ${random.seed})`;
    kit.test(name, async (stage) => {
      let stories = 0;
      await forAll(story, (plan) => playStory(stage, `story ${stories++}`, plan), random);
    });

    kit.test('everything except the state of a completed snapshot with children may change', async ({ a, b }) => {
      await a.save('root', snapshot({ sessionId: 'chat', messages: 40, custom: { n: 1 } }));
      await a.save('leaf', snapshot({ sessionId: 'chat', parentId: 'root', messages: 42, custom: { n: 2 } }));
      await b.save('root', (current) => ({ ...current!, note: 'checked', updatedAt: '2026-01-02T03:05:00.000Z' }));
      equal(((await a.mustGet('root')) as { note?: string }).note, 'checked', 'the new member');
      const { state: _, ...stateless } = snapshot({ sessionId: 'chat' });
      for (const rewrite of [snapshot({ sessionId: 'chat', custom: { n: 1 } }), stateless]) {
        await refuses('FAILED_PRECONDITION', () => b.save('root', rewrite), 'root');
      }
      equal((await a.mustGet('leaf')).state?.custom, { n: 2 }, 'the leaf');
    });

    kit.test('a pending snapshot with children may still end with another state', async ({ a, b }) => {
      await a.save('root', snapshot({ sessionId: 'chat', messages: 30 }));
      await a.save('run', snapshot({ sessionId: 'chat', parentId: 'root', status: 'pending', messages: 31 }));
      await b.save('child', snapshot({ sessionId: 'chat', parentId: 'run', messages: 33 }));
      const before = await a.mustGet('child');
      const done = snapshot({ sessionId: 'chat', parentId: 'run', messages: 35, custom: { done: true } });
      await b.save('run', done);
      equal(await a.mustGet('child'), before, 'the child');
      equal((await a.mustGet('run')).state, done.state, 'the run');
      await refuses('FAILED_PRECONDITION', () => a.save('run', snapshot({ sessionId: 'chat' })), 'run');
    });
  },
};

async function playStory({ a, b }: Stage, sessionId: string, { turns, rewrites: repeats }: Story): Promise<void> {
  const states: State[] = [];
  const ids = turns.map((_, i) => `${sessionId}, turn ${i}`);
  const parentOf = (i: number): number => (i === 0 ? -1 : turns[i]!.parent % i);
  const statusOfTurn = (i: number): SnapshotStatus =>
    i % 5 === 3 ? (i % 2 === 0 ? 'failed' : 'pending') : 'completed';
  const input = (i: number, state: State): ReturnType<typeof snapshot> => {
    const parentId = i === 0 ? {} : { parentId: ids[parentOf(i)]! };
    return { ...snapshot({ sessionId, status: statusOfTurn(i), ...parentId }), state: { sessionId, ...state } };
  };
  const isAnchor = (i: number): boolean =>
    statusOfTurn(i) === 'completed' && turns.some((_, other) => parentOf(other) === i);
  for (const [i, turn] of turns.entries()) {
    const parent = i === 0 ? { messages: [], custom: {} } : states[turn.parent % i]!;
    states.push(changed(parent, turn.change));
    await (i % 2 === 0 ? a : b).save(ids[i], input(i, states[i]!));
  }
  for (const [n, repeat] of repeats.entries()) {
    const target = repeat.target % ids.length;
    const state = changed(states[target]!, repeat.change);
    const save = (n % 2 === 0 ? a : b).save(ids[target], input(target, state));
    if (isAnchor(target) && textOf(state) !== textOf(states[target])) await refusal(save);
    else await save.then(() => (states[target] = state));
    await check(n % 2 === 0 ? [b, a] : [a, b]);
  }

  async function check(handles: [Stage['a'], Stage['a']]): Promise<void> {
    const read = await Promise.all(ids.map((id, i) => handles[i % 2]!.mustGet(id)));
    const expected = ids.map((id, i) => textOf({ ...input(i, states[i]!), snapshotId: id }));
    for (const [i, text] of expected.entries()) equal(textOf(read[i]), text, ids[i]!);
  }
}

async function refusal(save: Promise<unknown>): Promise<void> {
  const error: unknown = await save.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  equal(statusOf(error), 'FAILED_PRECONDITION', 'the refusal');
}
