import * as fc from 'fast-check';
import { equal, isTyped, statusOf, textOf } from './support/assertions.ts';
import type { Stage, Subject } from './support/kit.ts';
import { message, snapshot } from './support/snapshots.ts';
import { forAll } from './support/for-all.ts';

/** How a state differs from the one it is made from. */
interface Change {
  kind: 'append' | 'truncate' | 'summary' | 'custom' | 'clear';
  value: fc.JsonValue;
}

const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('append', 'append', 'append', 'truncate', 'summary', 'custom', 'clear'),
  // Ordinary JSON: what becomes of hard values is not the question here.
  value: fc.json({ maxDepth: 3 }).map((text) => JSON.parse(text) as fc.JsonValue),
});

/** A session, and rewrites of any of its snapshots. Numbers name snapshots, modulo their count. */
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

/** Rewriting a snapshot never changes what the others read as. */
export const rewrites: Subject = {
  name: 'rewrites',
  tests(kit) {
    const random = kit.property(50, 1000);
    const name = `F3 rewrites: ${random.numRuns * 10} random rewrites leave every other snapshot byte for byte as it was (seed ${random.seed})`;
    kit.test(name, async (stage) => {
      let stories = 0;
      await forAll(story, (told) => tell(stage, `story ${stories++}`, told), random);
    });
  },
};

async function tell({ a, b }: Stage, sessionId: string, { turns, rewrites: repeats }: Story): Promise<void> {
  const states: State[] = [];
  const ids = turns.map((_, i) => `${sessionId}, turn ${i}`);
  const input = (i: number, state: State): ReturnType<typeof snapshot> => {
    const parentId = i === 0 ? {} : { parentId: ids[turns[i]!.parent % i]! };
    return { ...snapshot({ sessionId, ...parentId }), state: { sessionId, ...state } };
  };
  for (const [i, turn] of turns.entries()) {
    const parent = i === 0 ? { messages: [], custom: {} } : states[turn.parent % i]!;
    states.push(changed(parent, turn.change));
    await (i % 2 === 0 ? a : b).save(ids[i], input(i, states[i]!));
  }
  for (const [n, repeat] of repeats.entries()) {
    const target = repeat.target % ids.length;
    const state = changed(states[target]!, repeat.change);
    if (await accepted((n % 2 === 0 ? a : b).save(ids[target], input(target, state)))) states[target] = state;
    await check(n % 2 === 0 ? [b, a] : [a, b]);
  }

  async function check(handles: [Stage['a'], Stage['a']]): Promise<void> {
    const read = await Promise.all(ids.map((id, i) => handles[i % 2]!.mustGet(id)));
    const expected = ids.map((id, i) => textOf({ ...input(i, states[i]!), snapshotId: id }));
    for (const [i, text] of expected.entries()) equal(textOf(read[i]), text, ids[i]!);
  }
}

/** A store may refuse to rewrite a snapshot, typed. */
async function accepted(save: Promise<unknown>): Promise<boolean> {
  try {
    await save;
    return true;
  } catch (error) {
    if (!isTyped(error)) throw error;
    equal(statusOf(error), 'FAILED_PRECONDITION', 'the refusal');
    return false;
  }
}
