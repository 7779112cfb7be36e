import { freeze } from '../../json/immutable.ts';
import { jsonEqual } from '../../json/value.ts';
import { insertBest } from '../parts/insert-best.ts';
import type { QueryAnswer } from './base-memory-store.ts';
import type { PutOperation, QueryRequest } from './checks.ts';
import type { Memory, MemoryHit, MemoryScopeId } from './contract.ts';

/** A memory after a commit. */
export interface MemoryVersion {
  /** Frozen. */
  readonly memory: Memory;
  /** Its position in the order of all versions of its scope; see {@link memorySequenceOf}. */
  readonly sequence: number;
  /** The sequence of the version in which its content last changed. */
  readonly contentSequence: number;
  /** The embedding, normalized to length 1. `undefined`: the memory has no embedding. */
  readonly vector: Float32Array | undefined;
}

/** The number of sequences for each revision. Larger than the limit of 100 operations in a commit. */
const SEQUENCES_A_REVISION = 128;

/**
 * Returns the sequence of the first version that a commit makes, from the scope's revision after the commit. Each further put of the commit
 * adds 1. The sequences of earlier commits are all smaller.
 */
export function memorySequenceOf(revision: number): number {
  return revision * SEQUENCES_A_REVISION;
}

/** Members of a memory from which other data is derived. If one changes, the derived data is outdated. */
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
 * Returns the version that a put makes.
 *
 * @param current The memory's last version; `undefined` if there is none, or if the commit removes it.
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

/** Whether a version meets the conditions of a query. */
export function fits({ memory }: MemoryVersion, { filter, asOf = Date.now() }: QueryRequest): boolean {
  const { kind, topics, includeInvalid } = filter;
  if (kind !== undefined && memory.kind !== kind) return false;
  if (topics && !topics.some((topic) => memory.topics.includes(topic))) return false;
  return includeInvalid === true || holdsAt(memory, asOf);
}

/** Whether a memory is valid and has not expired. */
export function holdsAt(memory: Memory, time: number): boolean {
  return endOf(memory) > time;
}

/** Returns when a memory becomes invalid or expires, in ms since 1970; `Infinity` if never. */
export function endOf({ validTo, expiresAt }: Memory): number {
  return Math.min(endMs(validTo), endMs(expiresAt));
}

/** Returns a time in ms since 1970; `Infinity` for `undefined`. */
export function endMs(end: string | undefined): number {
  return end === undefined ? Infinity : Date.parse(end);
}

/** Whether its `expiresAt` has passed. */
export function isExpired({ expiresAt }: Memory, now: number): boolean {
  return endMs(expiresAt) <= now;
}

/** Returns the last version at a time. `versions` must be sorted, oldest first. */
export function memoryVersionAt(versions: readonly MemoryVersion[], time: number): MemoryVersion | undefined {
  return versions.findLast(({ memory }) => Date.parse(memory.updatedAt) <= time);
}

/** Returns changed memories in the order in which their contents changed. */
export function inOrderOfChange(changed: readonly MemoryVersion[]): Memory[] {
  return changed.toSorted((x, y) => x.contentSequence - y.contentSequence).map(({ memory }) => memory);
}

/**
 * Returns the memories for a query.
 *
 * @param versions The last version of each memory; with `asOf`, the version at that time ({@link memoryVersionAt}). In any order.
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

/** Returns the `k` nearest memories by cosine, nearest first. Skips memories whose vector has another number of dimensions. */
function nearest(versions: readonly MemoryVersion[], vector: Float32Array, k: number): MemoryHit[] {
  const found: Required<MemoryHit>[] = [];
  for (const { memory, vector: own } of versions) {
    if (own?.length !== vector.length) continue;
    insertBest(found, { memory, similarity: cosine(own, vector) }, k, ({ similarity }) => similarity);
  }
  return found;
}

/** Returns the cosine of two vectors of length 1. */
function cosine(x: Float32Array, y: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i]! * y[i]!;
  return Math.max(-1, Math.min(1, sum));
}
