import { isOwn, parseJson, setMember, type Json } from '../../src/json/value.ts';
import { placeOf, type KnownShard, type Lift } from './cut.ts';
import type { KnownState } from './known-state.ts';

/**
 * Puts the lifted parts back: the inverse of `cut`.
 *
 * @param skeleton The parsed skeleton; it becomes part of the result.
 * @param textOf Returns the text of a shard by its name.
 * @throws Error when a lift does not fit the skeleton, SyntaxError when a shard is not JSON: the stored data is damaged.
 */
export function fill(skeleton: Json, lifts: readonly Lift[], textOf: (name: string) => string): KnownState {
  const memory = new Map<string, readonly KnownShard[]>();
  // The root itself may be a lifted part, so it needs a holder too.
  const holder: Json = { root: skeleton };
  let length = 0;
  for (const lift of lifts) {
    const parts = lift.shards.map((name) => ({ name, text: textOf(name) }));
    const values = parts.map(({ text }) => parseJson(text));
    put(holder, ['root', ...lift.path], lift.holds === 'elements' ? elementsOf(values) : (values[0] ?? null));
    memory.set(
      placeOf(lift.path),
      parts.map(({ name, text }, index) => {
        const value = values[index]!;
        const isLast = index === parts.length - 1;
        const held = lift.holds === 'elements' ? (value as Json[]) : [value];
        return { name, values: held, length: text.length, isEnded: lift.holds === 'value' || !isLast };
      }),
    );
    for (const { text } of parts) length += text.length;
  }
  return { state: holder['root']!, memory, length };
}

function elementsOf(runs: readonly Json[]): Json[] {
  const elements: Json[] = [];
  for (const run of runs) {
    if (!Array.isArray(run)) throw new Error('a shard that should hold elements holds something else');
    for (const element of run) elements.push(element);
  }
  return elements;
}

function put(root: Json, path: readonly string[], value: Json): void {
  let at: Json = root;
  for (const key of path.slice(0, -1)) at = member(at, key);
  const key = path.at(-1)!;
  member(at, key);
  setMember(at as object, key, value);
}

function member(container: Json, key: string): Json {
  if (typeof container !== 'object' || container === null || Array.isArray(container) || !isOwn(container, key)) {
    throw new Error('a lifted part has no place in the skeleton');
  }
  return container[key]!;
}
