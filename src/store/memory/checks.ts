import { invalidArgument, quote } from '../../errors.ts';
import { freeze } from '../../json/immutable.ts';
import { jsonBytes } from '../../json/size.ts';
import { assertId } from '../../snapshot/ids.ts';
import {
  checkOptions,
  isAny,
  isBoolean,
  isObject,
  isOneOf,
  isShare,
  isTime,
  isWhole,
  type OptionCheck,
} from '../check-options.ts';
import { checkPage } from '../list/page.ts';
import { ownJson } from '../parts/own-json.ts';
import { MAX_RECORD_BYTES } from '../records/record-scopes.ts';
import type { Memory, MemoryDraft, MemoryFilter, MemoryOperation, MemoryQuery, WriteMemoryNote } from './contract.ts';

const MAX_OPERATIONS = 100;
const MAX_IDS = 100;
const MAX_MEMORY_BYTES = 256 * 1024;
/** Fits into one request of every database that we know. */
const MAX_COMMIT_BYTES = 2 * 1024 * 1024;
/** The bytes of one number of a vector, as JSON text. */
const VECTOR_NUMBER_BYTES = 12;

const isKind = isOneOf('declarative', 'procedural');

/** A checked put. The draft is a frozen copy. */
export interface PutOperation {
  /** The new memory. */
  readonly memory: MemoryDraft;
  /** Normalized to length 1. `undefined`: the memory keeps its vector if its text is unchanged; otherwise it gets no vector. */
  readonly vector: Float32Array | undefined;
}

/** A checked note. Its value is a frozen copy; `undefined` removes the note. */
export type NoteOperation = Omit<WriteMemoryNote, 'op'>;

/**
 * The checked operations of a commit. A commit may remove and put the same memory, but may not have two puts, two removes or two notes for
 * the same target.
 */
export interface CommitOperations {
  /** Memories to create or replace. */
  readonly puts: readonly PutOperation[];
  /** Ids of memories to remove before the puts. The memories do not have to exist. */
  readonly removes: readonly string[];
  /** Notes to write or remove, after the removals have dropped derived notes. */
  readonly notes: readonly NoteOperation[];
  /** Whether the scope gets a new revision. */
  readonly raisesRevision: boolean;
}

/** Whether notes of a kind are derived from memories. */
export function isDerivedKind(kind: string): boolean {
  return kind.startsWith('index');
}

/** @throws `INVALID_ARGUMENT` */
export function checkOperations(operations: readonly MemoryOperation[], maxDimensions: number): CommitOperations {
  if (!Array.isArray(operations) || operations.length > MAX_OPERATIONS) {
    throw invalidArgument(`operations must be a list of at most ${MAX_OPERATIONS} operations.`);
  }
  const puts: PutOperation[] = [];
  const removes: string[] = [];
  const notes: NoteOperation[] = [];
  let bytes = 0;
  for (const operation of operations as readonly MemoryOperation[]) {
    if (operation?.op === 'put') {
      const memory = checkDraft(operation.memory);
      const vector = operation.vector === undefined ? undefined : checkVector(operation.vector, maxDimensions);
      puts.push({ memory, vector });
      bytes += jsonBytes(memory) + (vector?.length ?? 0) * VECTOR_NUMBER_BYTES;
    } else if (operation?.op === 'remove') {
      assertId(operation.id, 'memory id');
      removes.push(operation.id);
    } else if (operation?.op === 'note') {
      notes.push(checkNote(operation));
      bytes += jsonBytes(notes.at(-1)!.value);
    } else throw invalidArgument("The op of an operation must be 'put', 'remove' or 'note'.");
  }
  const putIds = puts.map(({ memory }) => memory.id);
  const noteNames = notes.map(({ kind, key }) => JSON.stringify([kind, key]));
  assertDifferent(putIds, 'The memory');
  assertDifferent(removes, 'The memory');
  assertDifferent(noteNames, 'The note');
  if (bytes > MAX_COMMIT_BYTES) {
    throw invalidArgument(
      `The operations of a commit take ${bytes} bytes as JSON; at most ${MAX_COMMIT_BYTES} are allowed. Make several commits.`,
    );
  }
  const raisesRevision = puts.length + removes.length > 0 || notes.some(({ kind }) => !isDerivedKind(kind));
  return { puts, removes, notes, raisesRevision };
}

function assertDifferent(names: readonly string[], what: string): void {
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) {
    throw invalidArgument(`${what} ${quote(twice)} is in two operations of a commit. Combine them.`);
  }
}

function checkNote({ kind, key, value }: NoteOperation): NoteOperation {
  assertId(kind, 'kind');
  assertId(key, 'key');
  const what = `The note ${quote(key)} of kind ${quote(kind)}`;
  return { kind, key, value: value === undefined ? value : frozenJson(value, what) };
}

/**
 * Makes the store's own frozen copy of a value.
 *
 * @throws as {@link ownJson}.
 */
export function frozenJson<T>(value: T, what: string, maxBytes = MAX_RECORD_BYTES): T {
  return freeze(ownJson(value, what, maxBytes));
}

/** Members that the store sets. */
const OWN_MEMBERS = new Set(['scope', 'revision', 'createdAt', 'updatedAt']);

function checkDraft(given: MemoryDraft): MemoryDraft {
  assertId(given?.id, 'memory id');
  const what = `The memory ${quote(given.id)}`;
  const members = Object.entries(given).filter(([name]) => !OWN_MEMBERS.has(name));
  const draft = frozenJson(Object.fromEntries(members) as unknown as MemoryDraft, what, MAX_MEMORY_BYTES);
  const fault = faultOf(draft);
  if (fault !== undefined) throw invalidArgument(`${what} can't be saved: ${fault}.`);
  return draft;
}

function faultOf(draft: MemoryDraft): string | undefined {
  const { kind, text, topics, importance, confidence, validFrom, validTo, lastUsedAt, expiresAt, sources } = draft;
  if (isKind(kind)) return `its kind must be ${isKind(kind)}`;
  if (typeof text !== 'string') return 'its text must be a string';
  if (!Array.isArray(topics) || !topics.every((topic) => typeof topic === 'string'))
    return 'its topics must be strings';
  if ([importance, confidence].some(isShare)) return 'its importance and confidence must be numbers from 0 to 1';
  for (const [name, time] of Object.entries({ validFrom, validTo, lastUsedAt, expiresAt })) {
    if ((time !== undefined || name === 'validFrom') && isTime(time)) return `its ${name} must be ${isTime(time)}`;
  }
  const isSource = (source: Memory['sources'][number]): boolean => typeof source?.id === 'string' && source.id !== '';
  if (!Array.isArray(sources) || sources.length === 0 || !sources.every(isSource)) {
    return 'its sources must be a list of at least one source, each with an id';
  }
  return undefined;
}

/** @throws `INVALID_ARGUMENT` unless `value` is a whole number of at least `least`. */
export function checkWhole(value: unknown, name: string, least = 0): number {
  if (!Number.isSafeInteger(value) || (value as number) < least) {
    throw invalidArgument(`${name} must be a whole number of at least ${least}.`);
  }
  return value as number;
}

/**
 * Returns the vector, normalized to length 1.
 *
 * @throws `INVALID_ARGUMENT`
 */
function checkVector(given: readonly number[], maxDimensions: number): Float32Array {
  if (!Array.isArray(given) && !(given instanceof Float32Array))
    throw invalidArgument('A vector must be a list of numbers.');
  if (given.length === 0 || given.length > maxDimensions) {
    throw invalidArgument(
      maxDimensions === 0
        ? 'This store does not support vectors.'
        : `A vector has ${given.length} dimensions; this store takes 1 to ${maxDimensions}. Set the dimensions of the embedder, for example { outputDimensionality: 768 } in its configuration.`,
    );
  }
  const length = Math.hypot(...given);
  if (!Number.isFinite(length) || length === 0) {
    throw invalidArgument('A vector must have finite numbers that are not all 0.');
  }
  return Float32Array.from(given, (number) => number / length);
}

/** @throws `INVALID_ARGUMENT` */
export function checkIds(ids: readonly string[], kind: 'memory id' | 'key'): readonly string[] {
  if (!Array.isArray(ids) || ids.length > MAX_IDS)
    throw invalidArgument(`${kind}s must be a list of at most ${MAX_IDS}.`);
  for (const id of ids as readonly unknown[]) assertId(id, kind);
  return ids;
}

/** A checked {@link MemoryQuery}. */
export interface QueryRequest {
  /** Normalized: its length is 1. */
  readonly vector: Float32Array | undefined;
  /** The conditions that memories must meet. */
  readonly filter: MemoryFilter;
  /** Milliseconds since 1970; `undefined`: now. */
  readonly asOf: number | undefined;
  /** The most memories of the page. */
  readonly k: number;
  /** The `last` of the previous part. */
  readonly before: number | undefined;
}

const isTopics: OptionCheck = (value) =>
  Array.isArray(value) && value.length > 0 ? undefined : 'a list of at least one topic';
const FILTER: Readonly<Record<keyof MemoryFilter, OptionCheck>> = {
  kind: isKind,
  topics: isTopics,
  includeInvalid: isBoolean,
};
const QUERY: Readonly<Record<keyof MemoryQuery, OptionCheck>> = {
  context: isAny,
  vector: isAny,
  filter: isObject,
  asOf: isTime,
  k: isWhole(1, 1000),
  cursor: isAny,
};

/** @throws `INVALID_ARGUMENT` */
export function checkQuery(query: MemoryQuery, maxDimensions: number): QueryRequest {
  checkOptions('query', query, QUERY);
  checkOptions('query: filter', query.filter, FILTER);
  const { vector, filter = {}, asOf, k, cursor } = query;
  if (vector !== undefined && cursor !== undefined) {
    throw invalidArgument('A query by vector has only one page. Use a larger k for more memories.');
  }
  const { limit, after } = checkPage({ limit: k, cursor }, ['number']);
  return {
    vector: vector === undefined ? undefined : checkVector(vector, maxDimensions),
    filter,
    asOf: asOf === undefined ? undefined : Date.parse(asOf),
    k: limit,
    before: after?.[0],
  };
}
