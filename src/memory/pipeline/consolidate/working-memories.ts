import { createHash, randomUUID } from 'node:crypto';
import { jsonBytes } from '../../../json/size.ts';
import type { Memory, MemoryDraft, MemorySource } from '../../../store/memory/contract.ts';
import type { MemoryChangeCounts } from '../../types.ts';
import type { Candidate } from '../extract/candidate.ts';
import { countOf, strongestOf, trustOf, withConfidence, withSources } from './confidence.ts';
import { sameFactKey } from './duplicates.ts';
import { procedureOf } from './procedures.ts';

/** The most sources of a memory, and their bytes. Further ones that say the same are only counted. */
const MAX_SOURCES = 100;
const MAX_SOURCE_BYTES = 128 * 1024;

/** The memories that a job reads and changes, before they are committed. */
export class WorkingMemories {
  readonly #memories = new Map<string, MemoryDraft>();
  readonly #touched = new Set<string>();
  readonly #maxInvalidations: number;
  /** `MemorySource.sha256` of statements whose own source has stated something else since. */
  readonly outdated = new Set<string>();
  readonly counts: MemoryChangeCounts = { created: 0, updated: 0, invalidated: 0, ignored: 0, quarantined: 0 };

  constructor(maxInvalidations: number) {
    this.#maxInvalidations = maxInvalidations;
  }

  /** Adds a memory from the store, unless it was added before. */
  add(memory: Memory): void {
    if (!this.#memories.has(memory.id)) this.#memories.set(memory.id, memory);
  }

  /** The memory, if it holds. */
  active(id: string): MemoryDraft | undefined {
    const memory = this.#memories.get(id);
    return memory?.validTo === undefined ? memory : undefined;
  }

  /** The memories that were changed or created. */
  get changed(): MemoryDraft[] {
    return [...this.#touched].map((id) => this.#memories.get(id)!);
  }

  /** The memory with the same words, in its text or in the statement of a source. */
  sameAs({ text, kind }: Candidate): MemoryDraft | undefined {
    const key = sameFactKey(text);
    const says = (said: string) => sameFactKey(said) === key;
    return [...this.#memories.values()].find(
      (memory) =>
        memory.validTo === undefined &&
        memory.kind === kind &&
        (says(memory.text) || memory.sources.some(({ statement }) => says(statement))),
    );
  }

  create(candidate: Candidate, members: Partial<MemoryDraft> = {}): string {
    const { source, text, key, ...rest } = candidate;
    const id = key === undefined ? randomUUID() : keyedIds(key)[0];
    this.#put({
      ...rest,
      ...(key !== undefined && { key }),
      id,
      text,
      confidence: source.trust,
      validFrom: source.at,
      sources: [source],
      ...(rest.kind === 'procedural' && { successes: 1 }),
      ...members,
    });
    this.counts.created++;
    return id;
  }

  /** Adds a source that says the same. */
  corroborate(memory: MemoryDraft, candidate: Candidate): void {
    if (memory.sources.some((known) => says(known, candidate.source))) this.counts.ignored++;
    else this.#join(memory, candidate, {});
  }

  /** Adds a source that says more. `text` says all of it. */
  update(memory: MemoryDraft, candidate: Candidate, text: string): void {
    const isTrusted = candidate.source.trust >= trustOf(memory);
    const procedure = memory.kind === 'procedural' ? procedureOf([...memory.sources, candidate.source]) : undefined;
    // A source that is not listed could not be forgotten later.
    if (isFull(memory.sources)) this.create(candidate);
    else this.#join(memory, candidate, procedure ?? (isTrusted ? { text, ...dataOf(candidate) } : {}));
  }

  /**
   * Decides between memories and a candidate that contradicts them: by trust, then time, then the number of sources. The loser is kept as a
   * memory that does not hold. Returns false, and does nothing, if too many memories would be invalidated.
   */
  supersede(memories: readonly MemoryDraft[], candidate: Candidate): boolean {
    const stronger = memories.find((memory) => isStronger(memory, candidate.source));
    if (stronger) {
      const { at } = candidate.source;
      this.create(candidate, { validTo: at, supersededBy: stronger.id });
      this.#contradict(stronger);
      return true;
    }
    if (this.counts.invalidated + memories.length > this.#maxInvalidations) return false;
    const id = this.create(candidate, { contradictions: 1 });
    for (const memory of memories) this.#invalidate(memory, id, candidate.source);
    return true;
  }

  /**
   * Adds a fact with a key. Each key has one memory; its text is that of its strongest source. If another memory has replaced it, the
   * stronger of the two holds. Returns false, and does nothing, if too many memories would be invalidated.
   */
  register(candidate: Candidate): boolean {
    const memory = keyedIds(candidate.key!)
      .map((id) => this.#memories.get(id))
      .find(Boolean);
    if (!memory) {
      this.create(candidate);
      return true;
    }
    const { source, importance, schemaId, expiresAt } = candidate;
    const successor = this.#successorOf(memory);
    const isSaid = (text: string) => sameFactKey(text) === sameFactKey(source.statement);
    const last = memory.sources.findLast(({ id }) => id === source.id);
    const isCurrent = memory.validTo === undefined && isSaid(memory.text);
    const isAnew = successor?.sources.some(({ id }) => id === source.id) || isAfter(source, last);
    if (last && says(last, source) && (isCurrent || !isAnew)) {
      this.counts.ignored++;
      return true;
    }
    // What a source says less surely does not replace what it said before.
    const isReplaced = ({ id, trust }: MemorySource) => id === source.id && trust <= source.trust;
    const others = memory.sources.filter((one) => !isReplaced(one));
    const sources = [...(isFull(others) ? others.slice(1) : others), source];
    const strongest = strongestStatement(sources);
    const isStrongest = isSaid(strongest.text);
    const holds = isStrongest && !(successor && isStronger(successor, source));
    if (holds && successor && this.counts.invalidated >= this.#maxInvalidations) return false;
    if (holds && successor) this.#invalidate(successor, memory.id, source);
    this.#outdate(memory.sources.filter(isReplaced));
    const members = isSaid(memory.text)
      ? { ...agreed(memory, candidate), schemaId: schemaId ?? memory.schemaId }
      : { importance, schemaId, expiresAt };
    this.#put({
      ...withSources(holds ? holding(memory) : memory, sources),
      ...strongest,
      ...(isStrongest && members),
    });
    this.counts.updated++;
    return true;
  }

  /** The memory at the end of the chain of memories that replaced this one, if it holds and was added. */
  #successorOf({ supersededBy }: MemoryDraft): MemoryDraft | undefined {
    const memory = supersededBy === undefined ? undefined : this.#memories.get(supersededBy);
    return memory && (memory.validTo === undefined ? memory : this.#successorOf(memory));
  }

  #invalidate(memory: MemoryDraft, supersededBy: string, { id, at }: MemorySource): void {
    const validTo = at > memory.validFrom ? at : memory.validFrom;
    this.#put({ ...memory, validTo, supersededBy });
    this.#outdate(memory.sources.filter((source) => source.id === id));
    this.counts.invalidated++;
  }

  #outdate(sources: readonly MemorySource[]): void {
    for (const { sha256 } of sources) this.outdated.add(sha256);
  }

  ignore(): void {
    this.counts.ignored++;
  }

  #join(memory: MemoryDraft, candidate: Candidate, members: Partial<MemoryDraft>): void {
    const hasAll = isFull(memory.sources);
    this.#put({
      ...withSources(memory, hasAll ? memory.sources : [...memory.sources, candidate.source]),
      ...agreed(memory, candidate),
      ...(hasAll
        ? { furtherSources: countOf(memory, 'furtherSources') + 1 }
        : { topics: union(memory.topics, candidate.topics) }),
      ...members,
    });
    this.counts.updated++;
  }

  #contradict(memory: MemoryDraft): void {
    this.#put({ ...memory, contradictions: countOf(memory, 'contradictions') + 1 });
  }

  #put(memory: MemoryDraft): void {
    this.#memories.set(memory.id, withConfidence(memory));
    this.#touched.add(memory.id);
  }
}

/** The memory, made to hold again. */
export function holding(memory: MemoryDraft): MemoryDraft {
  const { validTo: _, supersededBy: __, ...holds } = memory;
  return holds;
}

/** The two ids for the memory of a key. A commit can't remove and write one id, so a memory that is made again takes the other. */
export function keyedIds(key: string): [string, string] {
  const id = `key-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
  return [id, `${id}-b`];
}

/** What a memory with a key says, from its sources. */
export function strongestStatement(
  sources: readonly MemorySource[],
): Pick<MemoryDraft, 'text' | 'data' | 'topics' | 'validFrom'> & { contradictions: number } {
  const { best, agreeing } = strongestOf(sources);
  const others = sources.filter((one) => !agreeing.includes(one));
  return {
    text: best.statement,
    data: best.data ?? agreeing.findLast(({ data }) => data !== undefined)?.data,
    topics: [...new Set(agreeing.flatMap(({ topics = [] }) => topics))],
    validFrom: agreeing.map(({ at }) => at).toSorted()[0]!,
    contradictions: new Set(others.map(({ statement }) => sameFactKey(statement))).size,
  };
}

/** Whether a statement is known from the same source, which said it at least as surely. */
function says(known: MemorySource, { id, trust, statement }: MemorySource): boolean {
  return known.id === id && known.trust >= trust && sameFactKey(known.statement) === sameFactKey(statement);
}

/** Whether a statement is from later messages than an earlier one of the same session. */
function isAfter({ from }: MemorySource, earlier: MemorySource | undefined): boolean {
  return from !== undefined && earlier?.to !== undefined && from >= earlier.to;
}

/** The members of a memory that a candidate agrees with. */
function agreed(
  memory: MemoryDraft,
  { importance, expiresAt }: Candidate,
): Pick<MemoryDraft, 'importance' | 'expiresAt'> {
  return {
    importance: Math.max(memory.importance, importance),
    expiresAt: laterExpiry(memory.expiresAt, expiresAt),
  };
}

function isFull(sources: readonly MemorySource[]): boolean {
  return sources.length >= MAX_SOURCES || jsonBytes(sources, MAX_SOURCE_BYTES) > MAX_SOURCE_BYTES;
}

/** When a memory expires that two statements support; `undefined`, never, if one of them does not expire. */
function laterExpiry(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return undefined;
  return a > b ? a : b;
}

function isStronger(memory: MemoryDraft, { trust, at }: MemorySource): boolean {
  const known = trustOf(memory);
  if (known !== trust) return known > trust;
  const last = memory.sources
    .map((one) => one.at)
    .toSorted()
    .at(-1)!;
  if (last !== at) return last > at;
  return memory.sources.length > 1;
}

function dataOf({ data, schemaId }: Candidate): Partial<MemoryDraft> {
  return { ...(data !== undefined && { data }), ...(schemaId !== undefined && { schemaId }) };
}

function union(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])];
}
