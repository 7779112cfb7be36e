import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { random, seed } from '../../support/scale.ts';
import { jsonEqual, parseJson, setMember, type Json } from '../../../src/json/value.ts';
import { cut, shardName, type Cut } from '../../../stores/chain/cut.ts';
import { fill } from '../../../stores/chain/fill.ts';
import { readChain, type ChainReader } from '../../../stores/file/read/read-chain.ts';
import { patchText, planDiff } from '../../../stores/chain/plan-diff.ts';
import type { WrittenState } from '../../../stores/file/format/snapshot-file.ts';

const message = (i: number, length = 1000): Json => ({
  role: 'user',
  content: [{ text: `${i} `.repeat(length / 4).slice(0, length) }],
});
const messages = (count: number, from = 0): Json[] => Array.from({ length: count }, (_, i) => message(from + i));

function filled(made: Cut): Json {
  const texts = new Map(made.shards.map((shard) => [shard.name, shard.text()]));
  return fill(parseJson(made.skeleton), made.lifts, (name) => texts.get(name)!).state;
}

function shardsOf(made: Cut): string[] {
  return made.lifts.flatMap((lift) => lift.shards);
}

const key = fc.oneof(fc.string({ maxLength: 5 }), fc.constantFrom('__proto__', 'constructor', 'a/b', '~', ''));
const long = fc.nat(3).map((n) => 'x\uD800é'.repeat(n * 5000));
const small = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constant(-0),
  fc.constantFrom('__proto__', 'a.b'),
) as fc.Arbitrary<Json>;
const list = fc
  .tuple(fc.array(small, { minLength: 1, maxLength: 4 }), fc.nat(3000))
  .map(([items, length]): Json => Array.from({ length }, (_, i) => items[i % items.length] ?? i));
const objectOf = (member: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.array(fc.tuple(key, member), { maxLength: 5 }).map((members) => {
    const object = {};
    for (const [name, value] of members) setMember(object, name, value);
    return object;
  });
const inner = objectOf(fc.oneof(small, long, list));
/** States with many parts to lift, and hostile keys. */
const anyState = objectOf(fc.oneof(small, long, list, inner, objectOf(inner)));

describe('a cut state', () => {
  it(`values: is equal to the original after filling, for any content (seed ${seed})`, () => {
    fc.assert(
      fc.property(anyState, (state) => {
        expect(jsonEqual(filled(cut(state)), state)).toBe(true);
      }),
      random(60, 3000),
    );
  });

  it('keeps small values inline and lifts long arrays, long strings and large objects', () => {
    const made = cut({
      small: [1, 2],
      messages: messages(100),
      note: 'x'.repeat(40_000),
      deep: { crowd: Object.fromEntries(messages(60).entries()) },
    });
    expect(made.lifts.map(({ path, holds }) => [path.join('.'), holds])).toEqual([
      ['messages', 'elements'],
      ['note', 'value'],
      ['deep.crowd', 'value'],
    ]);
    expect(parseJson(made.skeleton)).toEqual({ small: [1, 2], messages: [], note: null, deep: { crowd: null } });
    for (const shard of made.shards) expect(shardName(shard.text())).toBe(shard.name);
  });

  it('puts inner lifts back into a lifted object', () => {
    const state = { crowd: { ...Object.fromEntries(messages(60).entries()), list: messages(50) } };
    expect(filled(cut(state))).toEqual(state);
    const root = Object.fromEntries(messages(60).entries());
    expect(filled(cut(root))).toEqual(root);
  });

  it('shares all shards except the last with a state that has more messages', () => {
    const before = shardsOf(cut({ messages: messages(500) }));
    const after = shardsOf(cut({ messages: messages(520) }));
    expect(before.length).toBeGreaterThan(5);
    expect(after.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
  });

  it('shares most shards with a state that lost messages at its beginning or in its middle', () => {
    const all = messages(500);
    const before = new Set(shardsOf(cut({ messages: all })));
    for (const kept of [all.slice(7), [...all.slice(0, 200), ...all.slice(203)], [message(9999), ...all]]) {
      const after = shardsOf(cut({ messages: kept }));
      const fresh = after.filter((name) => !before.has(name));
      expect(fresh.length).toBeLessThanOrEqual(3);
      expect(after.length).toBeGreaterThan(5);
    }
  });

  it('is the same with the memory of an earlier cut, and does not serialize known parts again', () => {
    const state = { messages: messages(300), note: 'x'.repeat(50_000) };
    const first = cut(state);
    const grown = { ...state, messages: [...state.messages, ...messages(40, 300)] };
    const again = cut(grown, first.memory);
    const anew = cut(grown);
    expect(again.lifts).toEqual(anew.lifts);
    expect(again.skeleton).toBe(anew.skeleton);
    expect(filled(again)).toEqual(grown);
  });

  it('keeps its shards after filling', () => {
    const state = { messages: messages(300) };
    const made = cut(state);
    const texts = new Map(made.shards.map((shard) => [shard.name, shard.text()]));
    const read = fill(parseJson(made.skeleton), made.lifts, (name) => texts.get(name)!);
    const grown = { messages: [...(read.state as typeof state).messages, message(300)] };
    expect(shardsOf(cut(grown, read.memory))).toEqual(shardsOf(cut(grown)));
  });

  it('with damage is refused, not filled with other data', () => {
    const made = cut({ messages: messages(100) });
    expect(() => fill(parseJson(made.skeleton), made.lifts, () => '{"not":"elements"}')).toThrow();
    expect(() => fill(parseJson(made.skeleton), made.lifts, () => '[1, 2')).toThrow(SyntaxError);
    expect(() => fill({ other: 1 }, made.lifts, () => '[]')).toThrow();
  });
});

describe('the plan of a write', () => {
  const parent = { messages: messages(100) };
  const state = { messages: [...parent.messages, message(100)] };

  it('is a diff from the parent, until there are too many successive diffs', () => {
    const patch = JSON.stringify([{ op: 'add', path: '/messages/-', value: message(100) }]);
    expect(planDiff(state, { state: parent, depth: 0 }, 5)).toBe(patch);
    expect(planDiff(state, { state: parent, depth: 3 }, 5)).toBe(patch);
    expect(planDiff(state, { state: parent, depth: 4 }, 5)).toBeUndefined();
    expect(planDiff(state, undefined, 5)).toBeUndefined();
  });

  it('is a checkpoint if that is smaller', () => {
    expect(planDiff({ summary: 'short' }, { state: parent, depth: 0 }, 5)).toBeUndefined();
    expect(planDiff({}, { state: {}, depth: 0 }, 5)).toBeUndefined();
  });

  it('with an interval of 1 is always a checkpoint', () => {
    expect(planDiff(state, { state: parent, depth: 0 }, 1)).toBeUndefined();
  });
});

/** A chain in memory: each snapshot's state is written on the one before it. */
function chainOf(states: readonly Json[]): { reader: ChainReader<number>; reads: number[] } {
  const written: WrittenState<number>[] = [];
  const shards = new Map<string, string>();
  let depth = 0;
  for (const [i, state] of states.entries()) {
    const patch = planDiff(state, i === 0 ? undefined : { state: states[i - 1]!, depth }, 4);
    if (patch !== undefined) {
      depth++;
      written.push({ kind: 'diff', base: i - 1, patch: JSON.parse(patch) });
    } else {
      depth = 0;
      const whole = cut(state);
      for (const shard of whole.shards) shards.set(shard.name, shard.text());
      written.push({ kind: 'whole', skeleton: parseJson(whole.skeleton), lifts: whole.lifts });
    }
  }
  const reads: number[] = [];
  const reader: ChainReader<number> = {
    read: async (ref) => {
      reads.push(ref);
      const found = written[ref]!;
      return found.kind === 'whole' ? { ...found, skeleton: structuredClone(found.skeleton) } : found;
    },
    shards: async (names) => new Map(names.map((name) => [name, shards.get(name)!])),
    known: () => undefined,
  };
  return { reader, reads };
}

describe('a state that is read', () => {
  const states = Array.from({ length: 11 }, (_, i) => ({ messages: messages(20 + i), custom: { turn: i } }));

  it('is the written state, for every snapshot of the chain', async () => {
    const { reader } = chainOf(states);
    for (const [i, state] of states.entries()) expect((await readChain(i, reader))?.state).toEqual(state);
  });

  it(`values: is the written state, for any states (seed ${seed})`, async () => {
    const property = fc.asyncProperty(fc.array(anyState, { minLength: 1, maxLength: 8 }), async (written) => {
      const { reader } = chainOf(written);
      for (const [i, state] of written.entries())
        expect(jsonEqual((await readChain(i, reader))!.state, state)).toBe(true);
    });
    await fc.assert(property, random(30, 3000));
  });

  it('is read from its last checkpoint on, or from a known state', async () => {
    const { reader, reads } = chainOf(states);
    await readChain(7, reader);
    expect(reads).toEqual([7, 6, 5, 4]);
    reads.length = 0;
    const at6 = { state: states[6]!, memory: new Map(), length: 0 };
    const read = await readChain(7, { ...reader, known: (ref) => (ref === 6 ? at6 : undefined) });
    expect(reads).toEqual([7]);
    expect(read?.state).toEqual(states[7]);
    expect((read!.state as (typeof states)[0]).messages[0], 'shared, not copied').toBe(states[6]!.messages[0]);
  });

  it('is undefined for a snapshot without a state, and an error for a chain without a checkpoint', async () => {
    const none: ChainReader<number> = { ...chainOf([]).reader, read: async () => ({ kind: 'none' }) };
    expect(await readChain(0, none)).toBeUndefined();
    const patched: WrittenState<number> = { kind: 'diff', base: 1, patch: [] };
    const broken: ChainReader<number> = {
      ...none,
      read: async (ref) => (ref === 0 ? patched : { kind: 'none' }),
    };
    await expect(readChain(0, broken)).rejects.toThrow();
  });
});

describe('the text of a patch', () => {
  it('is the patch, however deep its values are', () => {
    let deep: Json = 1;
    for (let i = 0; i < 1999; i++) deep = [deep];
    expect(
      JSON.parse(
        patchText([
          { op: 'replace', path: '', value: deep },
          { op: 'remove', path: '/a' },
        ]),
      ),
    ).toHaveLength(2);
    expect(patchText([{ op: 'add', path: '/a', value: -0 }])).toBe('[{"op":"add","path":"/a","value":-0}]');
  });
});
