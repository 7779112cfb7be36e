import { freeze } from '../../json/immutable.ts';
import { jsonEqual } from '../../json/value.ts';
import { insertBest } from '../parts/insert-best.ts';
import type { QueryAnswer } from './base-memory-store.ts';
import type { PutOperation, QueryRequest } from './checks.ts';
import type { Memory, MemoryHit, MemoryScopeId } from './contract.ts';

/** A memory as one commit left it. */
export interface MemoryVersion {
  /** Frozen. */
  readonly memory: Memory;
  /** Its place in the order of all versions of its scope: see {@link memorySequenceOf}. */
  readonly sequence: number;
  /** The sequence of the version in which its content changed last. */
  readonly contentSequence: number;
  /** The embedding, normalized: its length is 1. `undefined`: it has none. */
  readonly vector: Float32Array | undefined;
}

/** More than the most operations of a commit, which are 100. */
const SEQUENCES_A_REVISION = 128;

/**
 * The sequence of the first version that a commit makes, by the scope's revision after it. Each further put of the commit has one more; all
 * of earlier commits are smaller.
 */
export function memorySequenceOf(revision: number): number {
  return revision * SEQUENCES_A_REVISION;
}

/** Members of a memory from which other data is derived: when one changes, the derived data is outdated. */
const CONTENT = [
  'text',
  'data',
  'schemaId',
  'topics',
  'kind',
  'validFrom',
  'validTo',
  'supersededBy',
  'expiresAt',
] as const;

/**
 * The version that a put makes.
 *
 * @param current The last one of the memory; `undefined` if there is none, or the commit removes it.
 */
export function nextMemoryVersion(
  { memory: draft, vector: given }: PutOperation,
  current: MemoryVersion | undefined,
  { scope, sequence, now }: { scope: MemoryScopeId; sequence: number; now: number },
): MemoryVersion {
  const at = new Date(now).toISOString();
  const was = current?.memory;
  const memory: Memory = freeze({
    ...draft,
    scope,
    revision: (was?.revision ?? 0) + 1,
    createdAt: was?.createdAt ?? at,
    updatedAt: at,
  });
  const vector = given ?? (was?.text === memory.text ? current?.vector : undefined);
  const isSame =
    was && !given && vector === current.vector && CONTENT.every((name) => jsonEqual(was[name], memory[name]));
  return { memory, sequence, contentSequence: isSame ? current.contentSequence : sequence, vector };
}

/** Whether a query asks for it. */
export function fits({ memory }: MemoryVersion, { filter, asOf = Date.now() }: QueryRequest): boolean {
  const { kind, topics, includeInvalid } = filter;
  if (kind !== undefined && memory.kind !== kind) return false;
  if (topics && !topics.some((topic) => memory.topics.includes(topic))) return false;
  return includeInvalid === true || holdsAt(memory, asOf);
}

/** Whether a memory holds and is not to be removed. */
export function holdsAt(memory: Memory, time: number): boolean {
  return endOf(memory) > time;
}

/** When a memory ceases to hold or is to be removed, in ms since 1970: `Infinity` if never. */
export function endOf({ validTo, expiresAt }: Memory): number {
  return Math.min(endMs(validTo), endMs(expiresAt));
}

/** The end in ms since 1970; `Infinity` if there is none. */
export function endMs(end: string | undefined): number {
  return end === undefined ? Infinity : Date.parse(end);
}

/** Whether its `expiresAt` has passed. */
export function isExpired({ expiresAt }: Memory, now: number): boolean {
  return endMs(expiresAt) <= now;
}

/** The last version at a time. `versions` are in order, oldest first. */
export function memoryVersionAt(versions: readonly MemoryVersion[], time: number): MemoryVersion | undefined {
  return versions.findLast(({ memory }) => Date.parse(memory.updatedAt) <= time);
}

/** Changed memories in the order in which their contents changed. */
export function inOrderOfChange(changed: readonly MemoryVersion[]): Memory[] {
  return changed.toSorted((x, y) => x.contentSequence - y.contentSequence).map(({ memory }) => memory);
}

/**
 * The answer to a query.
 *
 * @param versions Of each memory the last one, or with `asOf` the one of that time ({@link memoryVersionAt}). In any order.
 */
export function queryMemoryVersions(versions: readonly MemoryVersion[], request: QueryRequest): QueryAnswer {
  const { vector, k, before = Infinity } = request;
  const fitting = versions.filter((version) => version.sequence < before && fits(version, request));
  if (vector) return { items: nearest(fitting, vector, k) };
  return firstOf(
    fitting.toSorted((x, y) => y.sequence - x.sequence),
    k,
  );
}

/** The first `k` versions. */
export function firstOf(versions: readonly MemoryVersion[], k: number): QueryAnswer {
  const items = versions.slice(0, k).map(({ memory }) => ({ memory }));
  return { items, last: versions.length > k ? versions[k - 1]!.sequence : undefined };
}

/** The `k` nearest memories by cosine, nearest first; those without a vector of as many dimensions are left out. */
function nearest(versions: readonly MemoryVersion[], vector: Float32Array, k: number): MemoryHit[] {
  const found: Required<MemoryHit>[] = [];
  for (const { memory, vector: own } of versions) {
    if (own?.length !== vector.length) continue;
    insertBest(found, { memory, similarity: cosine(own, vector) }, k, ({ similarity }) => similarity);
  }
  return found;
}

/** Of vectors of length 1. */
function cosine(x: Float32Array, y: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i]! * y[i]!;
  return Math.max(-1, Math.min(1, sum));
}
