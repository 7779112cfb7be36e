import { createHash, randomUUID } from 'node:crypto';
import { jsonBytes } from '../../../json/size.ts';
import { jsonEqual } from '../../../json/value.ts';
import type { Memory, MemoryDraft, MemorySource } from '../../../store/memory/contract.ts';
import type { MemoryChangeCounts } from '../../types.ts';
import type { Candidate } from '../records/candidate.ts';
import {
  countOf,
  isLaterPart,
  newestSourceTime,
  strongestOf,
  trustOf,
  withConfidence,
  withSources,
} from './confidence.ts';
import { sameFactKey } from '../../same-fact.ts';
import { procedureOf } from '../extract/procedures.ts';

/** The most sources of a memory, and their bytes. A further one that says the same takes the place of the oldest; those of a procedure count as successes. */
const MAX_SOURCES = 100;
const MAX_SOURCE_BYTES = 128 * 1024;

/** The memories that a job reads and changes, before they are committed. */
export class WorkingMemories {
  readonly #memories = new Map<string, MemoryDraft>();
  readonly #touched = new Set<string>();
  /** By text, its {@link sameFactKey}: each candidate is compared with all memories. */
  readonly #keys = new Map<string, string>();
  readonly #maxInvalidations: number;
  readonly #now: string;
  /** `MemorySource.sha256` of statements whose own source has stated something else since. */
  readonly outdated = new Set<string>();
  readonly counts: MemoryChangeCounts = { created: 0, updated: 0, invalidated: 0, ignored: 0, quarantined: 0 };

  /** @param now ISO 8601, as `Date` writes it. */
  constructor(maxInvalidations: number, now: string) {
    this.#maxInvalidations = maxInvalidations;
    this.#now = now;
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

  /** The memory, or the one at the end of the chain of memories that replaced it, if that one holds and was added. */
  holding(id: string): MemoryDraft | undefined {
    const memory = this.#memories.get(id);
    return memory && (memory.validTo === undefined ? memory : this.#successorOf(memory));
  }

  /** The memories that were changed or created. */
  get changed(): MemoryDraft[] {
    return [...this.#touched].map((id) => this.#memories.get(id)!);
  }

  /**
   * The memory that has the candidate's words as its text, or as the statement of a source; a procedure may not have other data. Of a
   * memory with a key only the text is compared: its sources may state different facts.
   */
  findSame({ text, kind, data }: Candidate): MemoryDraft | undefined {
    const key = this.#keyOf(text);
    const hasOther = (known: unknown) => known !== undefined && data !== undefined && !jsonEqual(known, data);
    const isSame = (statement: string, known: unknown) =>
      this.#keyOf(statement) === key && !(kind === 'procedural' && hasOther(known));
    return [...this.#memories.values()].find(
      (memory) =>
        memory.validTo === undefined &&
        memory.kind === kind &&
        (isSame(memory.text, memory.data) ||
          (memory['key'] === undefined && memory.sources.some((source) => isSame(source.statement, source.data)))),
    );
  }

  #keyOf(text: string): string {
    const key = this.#keys.get(text) ?? sameFactKey(text);
    this.#keys.set(text, key);
    return key;
  }

  create(candidate: Candidate, members: Partial<MemoryDraft> = {}): string {
    const { source, ...rest } = candidate;
    const id = keyedId(rest) ?? rest.id ?? randomUUID();
    const successes = rest.kind === 'procedural' ? 1 : undefined;
    const from = { confidence: source.trust, validFrom: source.at, sources: [source] };
    this.#put({ ...rest, id, ...from, successes, ...members });
    this.counts.created++;
    return id;
  }

  /** Adds the candidate's source to a memory that states the same fact. If it has other data, the stronger of the two counts. */
  corroborate(memory: MemoryDraft, candidate: Candidate): void {
    const { source, data, schemaId } = candidate;
    const isOther = memory.kind !== 'procedural' && data !== undefined && !jsonEqual(memory.data, data);
    const wins = isOther && (memory.data === undefined || !prevailsOver(memory, source));
    const isSameData = (known: unknown) => data === undefined || jsonEqual(known, data);
    if (!wins && memory.sources.some((known) => isRepetition(source, known) && isSameData(known.data))) {
      this.counts.ignored++;
      return;
    }
    if (wins) this.#addOutdated(memory.sources.filter((one) => one.id === source.id && !isSameData(one.data)));
    const contradictions = countOf(memory, 'contradictions') + 1;
    this.#addSource(memory, candidate, {
      ...(isOther && memory.data !== undefined && { contradictions }),
      ...(wins && { data, schemaId }),
    });
  }

  /**
   * Adds the candidate's source to a memory, and replaces the text by one that states both facts. Creates a new memory
   * instead if the source is less trusted than the memory, or if the memory has a key: its text is the statement of one source.
   */
  update(memory: MemoryDraft, candidate: Candidate, text: string): void {
    const { source, data, schemaId } = candidate;
    const sources = [...memory.sources, source];
    // Once the list of sources is full, `forgetSource` would not find what this one adds to the text.
    if (memory['key'] !== undefined || source.trust < trustOf(memory) || exceedsLimits(sources)) {
      this.create(candidate);
      return;
    }
    const procedure = memory.kind === 'procedural' ? procedureOf(sources) : undefined;
    const members = { text, ...(data !== undefined && { data }), ...(schemaId !== undefined && { schemaId }) };
    this.#addSource(memory, candidate, procedure ?? members);
  }

  /**
   * Decides between a candidate and the memories that it contradicts, by {@link prevailsOver}. The loser is kept as a memory that does not
   * hold; but one that expires does not end one that lasts. Returns false, and does nothing, if the job would invalidate too many memories.
   */
  supersede(contradicted: readonly MemoryDraft[], candidate: Candidate): boolean {
    const lasts = candidate.expiresAt === undefined;
    const stronger = contradicted.find(
      (memory) => prevailsOver(memory, candidate.source) && !(lasts && memory.expiresAt !== undefined),
    );
    if (stronger) {
      this.create(candidate, { validTo: this.#endAt(candidate.source.at), supersededBy: stronger.id });
      this.#put({ ...stronger, contradictions: countOf(stronger, 'contradictions') + 1 });
      return true;
    }
    const ended = contradicted.filter(
      (memory) => (lasts || memory.expiresAt !== undefined) && !prevailsOver(memory, candidate.source),
    );
    const known = ended.filter((memory) => !isOfSameJob(memory, candidate.source));
    if (this.counts.invalidated + known.length > this.#maxInvalidations) return false;
    const id = this.create(candidate, { contradictions: 1 });
    for (const memory of ended) this.#invalidate(memory, id, candidate.source);
    return true;
  }

  /**
   * Adds a fact with a key. Each key has one memory, with the text of its strongest source. If another memory has replaced that memory, the
   * stronger of the two holds. Returns false, and does nothing, if the job would invalidate too many memories.
   */
  putKeyed(candidate: Candidate): boolean {
    const memory = this.#memories.get(keyedId(candidate)!);
    if (!memory) {
      this.create(candidate);
      return true;
    }
    const { source, importance, schemaId, expiresAt } = candidate;
    const successor = this.#successorOf(memory);
    if (isKnownFact(memory, source, successor)) {
      this.counts.ignored++;
      return true;
    }
    // A source replaces its earlier statements, except those that it made with more trust.
    const isReplaced = (one: MemorySource) =>
      one.id === source.id && one.trust <= source.trust && !(one.at === source.at && isLaterPart(one, source));
    const others = memory.sources.filter((one) => !isReplaced(one));
    const sources = withinLimits([...others, source]);
    const strongest = strongestStatement(sources);
    const isStrongest = isSameFact(strongest.text, source.statement);
    const holds = isStrongest && !(successor && prevailsOver(successor, source));
    if (holds && successor && this.counts.invalidated >= this.#maxInvalidations) return false;
    if (holds && successor) this.#invalidate(successor, memory.id, source);
    this.#addOutdated(memory.sources.filter(isReplaced));
    const members = isSameFact(memory.text, source.statement)
      ? { ...mergedMembers(memory, candidate), schemaId: schemaId ?? memory.schemaId }
      : { importance, schemaId, expiresAt };
    this.#put({
      ...withSources(holds ? withoutEnd(memory) : memory, sources),
      ...strongest,
      ...(isStrongest && members),
    });
    this.counts.updated++;
    return true;
  }

  #successorOf({ supersededBy }: MemoryDraft): MemoryDraft | undefined {
    return supersededBy === undefined ? undefined : this.holding(supersededBy);
  }

  #invalidate(memory: MemoryDraft, supersededBy: string, said: MemorySource): void {
    const end = this.#endAt(said.at);
    const validTo = end > memory.validFrom ? end : memory.validFrom;
    this.#put({ ...memory, validTo, supersededBy });
    this.#addOutdated(memory.sources.filter((source) => source.id === said.id));
    if (!isOfSameJob(memory, said)) this.counts.invalidated++;
  }

  /** When a memory ends that a statement contradicts. By a wrong clock the statement may be of a later time, until which both would hold. */
  #endAt(saidAt: string): string {
    return saidAt < this.#now ? saidAt : this.#now;
  }

  #addOutdated(sources: readonly MemorySource[]): void {
    for (const { sha256 } of sources) this.outdated.add(sha256);
  }

  /** @param members What follows from the source. Left out if a full list has no place for it: `forgetSource` would not find it. */
  #addSource(memory: MemoryDraft, candidate: Candidate, members: Partial<MemoryDraft>): void {
    const { source } = candidate;
    const next = withSources(memory, [...memory.sources, source]);
    const isFull = exceedsLimits(next.sources);
    const sources = isFull ? withNewest(memory.sources, source, members.data !== undefined) : next.sources;
    const topics = isFull ? memory.topics : [...new Set([...memory.topics, ...candidate.topics])];
    const taken = sources.includes(source) ? members : {};
    this.#put({ ...next, sources, topics, ...mergedMembers(memory, candidate), ...taken });
    this.counts.updated++;
  }

  #put(memory: MemoryDraft): void {
    this.#memories.set(memory.id, withConfidence(memory));
    this.#touched.add(memory.id);
  }
}

/** Whether a memory is known only from the job that states something else now. */
function isOfSameJob({ sources }: MemoryDraft, { id, sha256 }: MemorySource): boolean {
  return sources.every((source) => source.id === id && source.sha256 === sha256);
}

/** The memory as one that holds. */
export function withoutEnd(memory: MemoryDraft): MemoryDraft {
  const { validTo: _, supersededBy: __, ...rest } = memory;
  return rest;
}

/** The id of the memory of a key; a fact and a procedure may have the same key. `undefined` without a key. */
export function keyedId({ key, kind }: Pick<Candidate, 'key' | 'kind'>): string | undefined {
  if (key === undefined) return undefined;
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 32);
  return kind === 'procedural' ? `procedure-${hash}` : `key-${hash}`;
}

/** The members of a memory with a key that follow from its sources. */
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

/** Whether nothing is to be learned from a source about the memory of a key. `successor` is the memory that has replaced it. */
function isKnownFact(memory: MemoryDraft, source: MemorySource, successor: MemoryDraft | undefined): boolean {
  const earlier = memory.sources.findLast(({ id }) => id === source.id);
  if (!earlier || !isRepetition(source, earlier)) return false;
  if (memory.validTo === undefined && isSameFact(memory.text, source.statement)) return true;
  // The statement was replaced. It counts as new if its own source replaced it, or if it comes from later messages of the session.
  const isOfSuccessor = successor?.sources.some(({ id }) => id === source.id);
  return !isOfSuccessor && !isLaterPart(source, earlier);
}

/** Whether a source states what it stated before, with no more trust. */
function isRepetition({ id, trust, statement }: MemorySource, earlier: MemorySource): boolean {
  return earlier.id === id && earlier.trust >= trust && isSameFact(earlier.statement, statement);
}

function isSameFact(a: string, b: string): boolean {
  return sameFactKey(a) === sameFactKey(b);
}

/** The importance and the expiry of a memory to which a source with the same fact is added. It expires only if both statements do. */
function mergedMembers(memory: MemoryDraft, candidate: Candidate): Pick<MemoryDraft, 'importance' | 'expiresAt'> {
  const [a, b] = [memory.expiresAt, candidate.expiresAt];
  return {
    importance: Math.max(memory.importance, candidate.importance),
    expiresAt: a === undefined || b === undefined ? undefined : a > b ? a : b,
  };
}

/** The sources of a memory, without the least trusted ones if they are too many; of equally trusted ones the oldest go. */
function withinLimits(sources: readonly MemorySource[]): MemorySource[] {
  const kept = [...sources];
  while (kept.length > 1 && exceedsLimits(kept)) {
    const trusts = kept.map(({ trust }) => trust);
    kept.splice(trusts.indexOf(Math.min(...trusts)), 1);
  }
  return kept;
}

/**
 * The sources, with a further one in place of the oldest that says the same with no more trust. Without such a one, as they are.
 *
 * @param replacesData Whether the oldest may be one that states data, because the memory takes the data of the further one.
 */
function withNewest(
  sources: readonly MemorySource[],
  source: MemorySource,
  replacesData: boolean,
): readonly MemorySource[] {
  const oldest = sources.findIndex(
    (one) =>
      one.trust <= source.trust &&
      (replacesData || one.data === undefined) &&
      isSameFact(one.statement, source.statement),
  );
  const renewed = oldest < 0 ? sources : [...sources.toSpliced(oldest, 1), source];
  return exceedsLimits(renewed) ? sources : renewed;
}

/** Whether these are more sources than a memory may have. */
function exceedsLimits(sources: readonly MemorySource[]): boolean {
  return sources.length > MAX_SOURCES || jsonBytes(sources, MAX_SOURCE_BYTES) > MAX_SOURCE_BYTES;
}

/**
 * Whether a memory prevails over a source that contradicts it: by trust, then time, then the number of sources. What one source says at one
 * time are parts of a conversation, of which the later one counts, or statements of a list, of which the last one counts.
 */
function prevailsOver(memory: MemoryDraft, source: MemorySource): boolean {
  const known = trustOf(memory);
  if (known !== source.trust) return known > source.trust;
  const last = newestSourceTime(memory);
  if (last !== source.at) return last > source.at;
  const own = memory.sources.filter(({ id, at }) => id === source.id && at === last);
  return own.length > 0 ? own.some((one) => isLaterPart(one, source)) : memory.sources.length > 1;
}
