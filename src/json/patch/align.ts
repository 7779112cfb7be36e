import { jsonEqual } from '../value.ts';

/** Places `i` of one list and `j` of another that hold equal elements. */
interface Match {
  readonly i: number;
  readonly j: number;
}

/** Alignment stops above this number of insertions and deletions among the common elements, because its cost is quadratic in them. */
const MOST_EDITS = 1000;
/** How many different elements may share a fingerprint. Further ones count as unequal to all others. */
const LONGEST_BUCKET = 8;
const FINGERPRINT_DEPTH = 5;
const FINGERPRINT_ELEMENTS = 16;
const FINGERPRINT_CHARACTERS = 48;

/**
 * Finds as many equal elements as possible that occur in both lists in the same order. Returns them in increasing order,
 * or none when the lists are reordered too much.
 *
 * The work is linear in the lists, except for common elements that moved or occur several times.
 */
export function alignEqual(from: readonly unknown[], to: readonly unknown[]): Match[] {
  const classOf = classifier();
  const fromClasses = from.map(classOf);
  const toClasses = to.map(classOf);
  // An element of only one list can't match. Without such elements, two lists that differ only by removed, added or
  // replaced elements are equal.
  const i = indicesOfShared(fromClasses, new Set(toClasses));
  const j = indicesOfShared(toClasses, new Set(fromClasses));
  const matches = longestCommon(
    i.map((index) => fromClasses[index]!),
    j.map((index) => toClasses[index]!),
  );
  return matches.map((match) => ({ i: i[match.i]!, j: j[match.j]! }));
}

function indicesOfShared(classes: readonly number[], others: ReadonlySet<number>): number[] {
  const indices: number[] = [];
  for (const [index, name] of classes.entries()) if (others.has(name)) indices.push(index);
  return indices;
}

/** Makes a function that returns equal numbers for equal values. */
function classifier(): (value: unknown) => number {
  const buckets = new Map<number, { value: unknown; name: number }[]>();
  let names = 0;
  return (value) => {
    const key = fingerprint(value, 0);
    let bucket = buckets.get(key);
    if (bucket === undefined) buckets.set(key, (bucket = []));
    const known = bucket.find((entry) => jsonEqual(entry.value, value));
    if (known !== undefined) return known.name;
    const name = names++;
    if (bucket.length < LONGEST_BUCKET) bucket.push({ value, name });
    return name;
  };
}

/** A 32-bit hash, the same for equal values. Reads only a sample of large values. */
function fingerprint(value: unknown, depth: number): number {
  if (typeof value === 'string') return mix(1, sampleString(value));
  if (typeof value === 'number') return mix(2, Math.trunc(value) ^ ((value % 1) * 0x7fffffff));
  if (typeof value !== 'object' || value === null) return value === null ? 3 : value ? 4 : 5;
  if (Array.isArray(value)) {
    let hash = mix(6, value.length);
    if (depth >= FINGERPRINT_DEPTH) return hash;
    for (let index = 0; index < Math.min(value.length, FINGERPRINT_ELEMENTS); index++) {
      hash = mix(hash, fingerprint(value[index], depth + 1));
    }
    return hash;
  }
  if (depth >= FINGERPRINT_DEPTH) return 7;
  let sum = 7;
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    // A sum, because the order of members does not matter.
    if (member !== undefined) sum = (sum + mix(sampleString(key), fingerprint(member, depth + 1))) | 0;
  }
  return sum;
}

function sampleString(text: string): number {
  const step = Math.max(1, text.length / FINGERPRINT_CHARACTERS);
  let hash = text.length;
  for (let at = 0; at < text.length; at += step) hash = mix(hash, text.charCodeAt(Math.trunc(at)));
  return hash;
}

function mix(hash: number, value: number): number {
  const mixed = Math.imul(hash ^ value, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

/**
 * A longest common subsequence, by E. Myers' greedy O(ND) algorithm ("An O(ND) difference algorithm and its
 * variations", 1986); none when it needs more than {@link MOST_EDITS} insertions and deletions.
 */
function longestCommon(a: readonly number[], b: readonly number[]): Match[] {
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const origin = most + 1;
  // furthest[origin + k]: the position in `a` that the best path on diagonal k (i - j) has reached.
  const furthest = new Int32Array(2 * most + 3);
  const history: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits++) {
    history.push(furthest.slice(origin - edits - 1, origin + edits + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const down = k === -edits || (k !== edits && furthest[origin + k - 1]! < furthest[origin + k + 1]!);
      let i = down ? furthest[origin + k + 1]! : furthest[origin + k - 1]! + 1;
      while (i < a.length && i - k < b.length && a[i] === b[i - k]) i++;
      furthest[origin + k] = i;
      if (i >= a.length && i - k >= b.length) return matchesOnPath(history, a.length, b.length);
    }
  }
  return [];
}

/** Walks the path back from its end: in each round a run of matches, then the edit before it. */
function matchesOnPath(history: readonly Int32Array[], aLength: number, bLength: number): Match[] {
  const matches: Match[] = [];
  let i = aLength;
  let j = bLength;
  for (let edits = history.length - 1; edits >= 0; edits--) {
    const furthest = history[edits]!;
    const middle = edits + 1;
    const k = i - j;
    const down = k === -edits || (k !== edits && furthest[middle + k - 1]! < furthest[middle + k + 1]!);
    const start = edits === 0 ? 0 : down ? furthest[middle + k + 1]! : furthest[middle + k - 1]! + 1;
    while (i > start) matches.push({ i: --i, j: --j });
    if (down) j--;
    else i--;
  }
  return matches.toReversed();
}
