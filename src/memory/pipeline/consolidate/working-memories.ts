import { createHash, randomUUID } from 'node:crypto';
import { jsonBytes } from '../../../json/size.ts';
import type { Json } from '../../../json/value.ts';
import type { Memory, MemoryDraft, MemorySource } from '../../../store/memory/contract.ts';
import type { MemoryChangeCounts } from '../../types.ts';
import type { Candidate } from '../extract/candidate.ts';
import { confidenceOf, trustOf } from './confidence.ts';
import { sameFactKey } from './duplicates.ts';
import { mergeSteps, procedureText } from './procedures.ts';

/** The most sources of a memory, and their bytes. Further ones that say the same are only counted. */
const MAX_SOURCES = 100;
const MAX_SOURCE_BYTES = 128 * 1024;

/** The memories that a job reads and changes, before they are committed. */
export class WorkingMemories {
  readonly #memories = new Map<string, MemoryDraft>();
  readonly #touched = new Set<string>();
  readonly #maxInvalidations: number;
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
      confidence: confidenceOf([source], 0),
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
    const { source } = candidate;
    const key = sameFactKey(source.statement);
    const isKnown = memory.sources.some(({ id, statement }) => id === source.id && sameFactKey(statement) === key);
    if (isKnown) this.counts.ignored++;
    else this.#join(memory, candidate, {});
  }

  /** Adds a source that says more. `text` says all of it. */
  update(memory: MemoryDraft, candidate: Candidate, text: string): void {
    const isTrusted = candidate.source.trust >= trustOf(memory);
    // A source that is not listed could not be forgotten later.
    if (isFull(memory.sources)) this.create(candidate);
    else if (memory.kind === 'procedural') this.#joinSteps(memory, candidate);
    else this.#join(memory, candidate, isTrusted ? { text, ...dataOf(candidate) } : {});
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
    const id = this.create(candidate);
    const created = this.#memories.get(id)!;
    this.#put({ ...created, contradictions: 1, confidence: confidenceOf(created.sources, 1) });
    for (const memory of memories) this.#invalidate(memory, id, candidate.source.at);
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
    const { source } = candidate;
    const others = memory.sources.filter(({ id }) => id !== source.id);
    const known = memory.sources.find(({ id }) => id === source.id);
    if (known && sameFactKey(known.statement) === sameFactKey(source.statement)) {
      this.counts.ignored++;
      return true;
    }
    const sources = [...(isFull(others) ? others.slice(1) : others), source];
    const strongest = strongestStatement(sources);
    const isStrongest = sameFactKey(strongest.text) === sameFactKey(source.statement);
    const successor = isStrongest ? this.#successorOf(memory) : undefined;
    const holds = isStrongest && !(successor && isStronger(successor, source));
    if (holds && successor && this.counts.invalidated >= this.#maxInvalidations) return false;
    if (holds && successor) this.#invalidate(successor, memory.id, source.at);
    const { expiresAt, ...kept } = holds ? holding(memory) : memory;
    const isSame = sameFactKey(memory.text) === sameFactKey(source.statement);
    const stated = isSame ? laterExpiry(expiresAt, candidate.expiresAt) : candidate.expiresAt;
    const expiry = isStrongest ? stated : expiresAt;
    const topics = union(memory.topics, candidate.topics);
    this.#put({
      ...(kept as MemoryDraft),
      ...strongest,
      sources,
      topics,
      ...(expiry !== undefined && { expiresAt: expiry }),
    });
    this.counts.updated++;
    return true;
  }

  /** The memory at the end of the chain of memories that replaced this one, if it holds and was added. */
  #successorOf({ supersededBy }: MemoryDraft): MemoryDraft | undefined {
    const memory = supersededBy === undefined ? undefined : this.#memories.get(supersededBy);
    return memory && (memory.validTo === undefined ? memory : this.#successorOf(memory));
  }

  #invalidate(memory: MemoryDraft, supersededBy: string, at: string): void {
    const validTo = at > memory.validFrom ? at : memory.validFrom;
    this.#put({ ...memory, validTo, supersededBy, confidence: memory.confidence / 2 });
    this.counts.invalidated++;
  }

  ignore(): void {
    this.counts.ignored++;
  }

  #joinSteps(memory: MemoryDraft, candidate: Candidate): void {
    const { task } = memory.data as { task: string };
    const steps = mergeSteps(stepsOf(memory.data), stepsOf(candidate.data));
    const successes = ((memory['successes'] as number | undefined) ?? 0) + 1;
    this.#join(memory, candidate, { text: procedureText(task, steps), data: { task, steps }, successes });
  }

  #join(memory: MemoryDraft, candidate: Candidate, members: Partial<MemoryDraft>): void {
    const { source, topics, importance, expiresAt } = candidate;
    const hasAll = isFull(memory.sources);
    const sources = hasAll ? memory.sources : [...memory.sources, source];
    const { expiresAt: before, ...kept } = memory;
    const expiry = laterExpiry(before, expiresAt);
    this.#put({
      ...(kept as MemoryDraft),
      ...(expiry !== undefined && { expiresAt: expiry }),
      sources,
      topics: hasAll ? memory.topics : union(memory.topics, topics),
      importance: Math.max(memory.importance, importance),
      confidence: confidenceOf(sources, contradictionsOf(memory)),
      ...(hasAll && { furtherSources: ((memory['furtherSources'] as number | undefined) ?? 0) + 1 }),
      ...members,
    });
    this.counts.updated++;
  }

  #contradict(memory: MemoryDraft): void {
    const contradictions = contradictionsOf(memory) + 1;
    this.#put({ ...memory, contradictions, confidence: confidenceOf(memory.sources, contradictions) });
  }

  #put(memory: MemoryDraft): void {
    this.#memories.set(memory.id, memory);
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

/** Text, data and confidence of a memory with a key, from its sources. */
export function strongestStatement(
  sources: readonly MemorySource[],
): Pick<MemoryDraft, 'text' | 'data' | 'confidence' | 'validFrom'> & { contradictions: number } {
  const [best] = sources.toSorted((a, b) => b.trust - a.trust || (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
  const key = sameFactKey(best!.statement);
  const agreeing = sources.filter(({ statement }) => sameFactKey(statement) === key);
  const contradictions = new Set(
    sources.filter((one) => !agreeing.includes(one)).map((one) => sameFactKey(one.statement)),
  ).size;
  return {
    text: best!.statement,
    data: best!.data,
    confidence: confidenceOf(agreeing, contradictions),
    validFrom: agreeing.map(({ at }) => at).toSorted()[0]!,
    contradictions,
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

function contradictionsOf(memory: MemoryDraft): number {
  return (memory['contradictions'] as number | undefined) ?? 0;
}

function dataOf({ data, schemaId }: Candidate): Partial<MemoryDraft> {
  return { ...(data !== undefined && { data }), ...(schemaId !== undefined && { schemaId }) };
}

function stepsOf(data: Json | undefined): readonly string[] {
  return (data as { steps: string[] } | undefined)?.steps ?? [];
}

function union(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])];
}
