import { createHash } from 'node:crypto';
import { jsonBytes } from '../../src/json/size.ts';
import { isOwn, stringifyJson } from '../../src/json/value.ts';

/**
 * A whole state in parts, so that unchanged parts are not stored again: long parts are moved into shards, which are named by their
 * content. The rest is the skeleton, which has an empty array or `null` in place of each lifted part.
 */
export interface Cut {
  /** JSON text of the state without the lifted parts. */
  readonly skeleton: string;
  /** The lifted parts, in the order in which `fill` puts them back. */
  readonly lifts: readonly Lift[];
  /** The shards that hold the lifted parts, each once. */
  readonly shards: readonly CutShard[];
  /** Lets the next cut reuse the shards of this one without serializing their content again. */
  readonly memory: CutMemory;
  /** Approximate length of the whole state's JSON text. */
  readonly length: number;
}

/** A part that was taken out of a state. */
export interface Lift {
  /** The keys from the root to the part. All values on the way are objects, never arrays. */
  readonly path: readonly string[];
  /** `elements`: an array, a run of its elements in each shard. `value`: any value, in one shard. */
  readonly holds: 'elements' | 'value';
  /** Names of shards. */
  readonly shards: readonly string[];
}

/** A shard of a cut. */
export interface CutShard {
  /** Depends only on its text; see {@link ShardNames}. */
  readonly name: string;
  /** The JSON text. Serialized by this call, because a shard that is stored already does not need it. */
  text(): string;
}

/** A run of elements, or a lifted value, of an earlier cut or read. */
export interface KnownShard {
  readonly name: string;
  /** The elements of the run; for a lifted value the value alone. */
  readonly values: readonly unknown[];
  /** Length of its JSON text. */
  readonly length: number;
  /** Whether its content or length ended it. `false`: the array ended, and the run grows when elements are appended. */
  readonly isEnded: boolean;
}

/** The shards of a state by the place they were lifted from; see {@link placeOf}. */
export type CutMemory = ReadonlyMap<string, readonly KnownShard[]>;

/** An array is lifted when its text is longer than this. */
const LONGEST_INLINE_ARRAY = 8 * 1024;
/** Any other value is lifted when its text is longer than this. */
const LONGEST_INLINE_VALUE = 32 * 1024;

/** How long runs of elements are, in characters of JSON text. */
export interface RunLengths {
  /** The least length of a run, except the last one of an array. */
  readonly shortest: number;
  /** A run always ends after the element that reaches this length. */
  readonly longest: number;
  /** In between, a run ends after an element whose hash selects it: on average one element in this many characters. */
  readonly distance: number;
}

/** How shards are named. */
export interface ShardNames {
  /** The name for a text: the same for the same text. */
  of(text: string): string;
  /** Whether a name was made by `of`. A known shard with another name is not reused, but stored again. */
  has(name: string): boolean;
}

/** Options of {@link cut}. */
export interface CutOptions {
  /** The lengths of new runs. Known runs are reused whatever their length. Default: 32 to 128 KB. */
  readonly runs?: RunLengths;
  /** Default: shards are named by the SHA-256 of their texts, in hex. */
  readonly names?: ShardNames | undefined;
}

const PLAIN_NAMES: ShardNames = { of: shardName, has: () => true };

const USUAL_RUNS: RunLengths = { shortest: 32 * 1024, longest: 128 * 1024, distance: 32 * 1024 };

/**
 * Cuts a state into parts.
 *
 * The end of a run depends only on its own elements. So when elements are appended, or removed at the beginning, the other runs and the names
 * of their shards stay the same.
 *
 * @param state An immutable JSON value.
 * @param known The memory of an earlier cut of a state that shares structure with this one.
 */
export function cut(
  state: unknown,
  known: CutMemory = new Map(),
  { runs = USUAL_RUNS, names = PLAIN_NAMES }: CutOptions = {},
): Cut {
  const cutter = new Cutter(known, runs, names);
  const skeleton = cutter.walk(state, []);
  return {
    skeleton,
    lifts: cutter.lifts,
    shards: [...cutter.shards.values()],
    memory: cutter.memory,
    length: skeleton.length + cutter.liftedLength,
  };
}

/** The key of a place in a {@link CutMemory}. */
export function placeOf(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** The name of a shard with this text, or with these bytes of it in UTF-8. */
export function shardName(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

class Cutter {
  readonly lifts: Lift[] = [];
  readonly shards = new Map<string, CutShard>();
  readonly memory = new Map<string, readonly KnownShard[]>();
  liftedLength = 0;
  readonly #known: CutMemory;
  readonly #lengths: RunLengths;
  readonly #names: ShardNames;

  constructor(known: CutMemory, lengths: RunLengths, names: ShardNames) {
    this.#known = known;
    this.#lengths = lengths;
    this.#names = names;
  }

  /** The text of `value` without its lifted parts. */
  walk(value: unknown, path: readonly string[]): string {
    if (Array.isArray(value)) return this.#array(value, path);
    if (typeof value === 'object' && value !== null) return this.#object(value, path);
    if (typeof value !== 'string' || value.length <= LONGEST_INLINE_VALUE) return stringifyJson(value);
    const same = this.#knownAt(path).find((shard) => shard.values[0] === value);
    this.#lift(path, 'value', [same ?? this.#newShard([value], stringifyJson(value))], this.lifts.length);
    return 'null';
  }

  #object(value: object, path: readonly string[]): string {
    const at = this.lifts.length;
    const members: string[] = [];
    let length = 2;
    for (const key in value) {
      if (!isOwn(value, key)) continue;
      const text = `${JSON.stringify(key)}:${this.walk((value as Record<string, unknown>)[key], [...path, key])}`;
      members.push(text);
      length += text.length + 1;
    }
    const text = `{${members.join(',')}}`;
    if (length <= LONGEST_INLINE_VALUE) return text;
    // Inserted before the lifts from inside this object, because it must be put back first.
    this.#lift(path, 'value', [this.#newShard([value], text)], at);
    return 'null';
  }

  #array(value: readonly unknown[], path: readonly string[]): string {
    if (jsonBytes(value, LONGEST_INLINE_ARRAY) <= LONGEST_INLINE_ARRAY) return stringifyJson(value);
    this.#lift(path, 'elements', this.#runs(value, this.#knownAt(path)), this.lifts.length);
    return '[]';
  }

  #knownAt(path: readonly string[]): KnownShard[] {
    return (this.#known.get(placeOf(path)) ?? []).filter(({ name }) => this.#names.has(name));
  }

  #runs(array: readonly unknown[], known: readonly KnownShard[]): KnownShard[] {
    const byFirst = new Map(known.map((run) => [run.values[0], run]));
    const runs: KnownShard[] = [];
    for (let start = 0; start < array.length;) {
      const same = byFirst.get(array[start]);
      const run = same && continuesWith(array, start, same) ? same : this.#run(array, start);
      runs.push(run);
      start += run.values.length;
    }
    return runs;
  }

  #run(array: readonly unknown[], start: number): KnownShard {
    const { shortest, longest, distance } = this.#lengths;
    const texts: string[] = [];
    let length = 1;
    let isEnded = false;
    for (let index = start; index < array.length && !isEnded; index++) {
      const text = stringifyJson(array[index]);
      texts.push(text);
      length += text.length + 1;
      isEnded = length >= longest || (length >= shortest && isPicked(text, distance));
    }
    return this.#newShard(array.slice(start, start + texts.length), `[${texts.join(',')}]`, isEnded);
  }

  #newShard(values: readonly unknown[], text: string, isEnded = true): KnownShard {
    const name = this.#names.of(text);
    this.shards.set(name, { name, text: () => text });
    return { name, values, length: text.length, isEnded };
  }

  #lift(path: readonly string[], holds: Lift['holds'], parts: readonly KnownShard[], at: number): void {
    this.lifts.splice(at, 0, { path, holds, shards: parts.map((part) => part.name) });
    this.memory.set(placeOf(path), parts);
    for (const part of parts) {
      this.liftedLength += part.length;
      if (!this.shards.has(part.name)) this.shards.set(part.name, { name: part.name, text: () => textOf(part, holds) });
    }
  }
}

/** Whether the array has the elements of the run at `start`. */
function continuesWith(array: readonly unknown[], start: number, { values, isEnded }: KnownShard): boolean {
  const end = start + values.length;
  if (end > array.length || (!isEnded && end < array.length)) return false;
  return values.every((value, index) => Object.is(value, array[start + index]));
}

/** Whether a run may end after the element with this text. Depends only on the text; a longer text is more likely to be picked. */
function isPicked(text: string, distance: number): boolean {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash >>> 0) / 0x1_0000_0000 < text.length / distance;
}

function textOf(part: KnownShard, holds: Lift['holds']): string {
  return stringifyJson(holds === 'elements' ? part.values : part.values[0]);
}
