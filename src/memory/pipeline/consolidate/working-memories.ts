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

/**
 * The most sources of a memory, and their bytes. A further source with the same statement replaces the oldest; a procedure still counts the
 * replaced sources as successes.
 */
const MAX_SOURCES = 100;
const MAX_SOURCE_BYTES = 128 * 1024;

/** The memories that a job reads and changes, before they are committed. */
export class WorkingMemories {
  readonly #memories = new Map<string, MemoryDraft>();
  readonly #touched = new Set<string>();
  /** Caches {@link sameFactKey} by text, because each candidate is compared with all memories. */
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

  /** Returns the memory if it is valid. */
  active(id: string): MemoryDraft | undefined {
    const memory = this.#memories.get(id);
    return memory?.validTo === undefined ? memory : undefined;
  }

  /** Returns the memory, or its last successor if it was replaced; `undefined` if that one is not valid or was not added. */
  holding(id: string): MemoryDraft | undefined {
    const memory = this.#memories.get(id);
    return memory && (memory.validTo === undefined ? memory : this.#successorOf(memory));
  }

  /** Returns the memories that were changed or created. */
  get changed(): MemoryDraft[] {
    return [...this.#touched].map((id) => this.#memories.get(id)!);
  }

  /**
   * Finds the memory whose text, or a source's statement, is equal to the candidate's text; a procedure must also have equal data. For a
   * memory with a key only the text is compared, because its sources may state different facts.
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

  /** Adds the candidate's source to a memory that states the same fact. If their data differ, the data of the stronger source is kept. */
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
   * Adds the candidate's source to a memory, and replaces the memory's text by a text that states both facts. Creates a new memory instead
   * if the source is less trusted than the memory, or if the memory has a key, because then its text is the statement of one source.
   */
  update(memory: MemoryDraft, candidate: Candidate, text: string): void {
    const { source, data, schemaId } = candidate;
    const sources = [...memory.sources, source];
    // A full list of sources has no place for this source, so `forgetSource` would not find the part that it adds to the text.
    if (memory['key'] !== undefined || source.trust < trustOf(memory) || exceedsLimits(sources)) {
      this.create(candidate);
      return;
    }
    const procedure = memory.kind === 'procedural' ? procedureOf(sources) : undefined;
    const members = { text, ...(data !== undefined && { data }), ...(schemaId !== undefined && { schemaId }) };
    this.#addSource(memory, candidate, procedure ?? members);
  }

  /**
   * Decides between a candidate and the memories that it contradicts, by {@link prevailsOver}. The weaker one is stored as a memory that is
   * not valid. A fact that expires never ends a memory that lasts. Returns false, and does nothing, if the job would invalidate too many
   * memories.
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
   * Adds a fact with a key. Each key has one memory, with the text of its strongest source. If another memory has replaced it, the stronger
   * of the two is valid. Returns false, and does nothing, if the job would invalidate too many memories.
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
    // A source replaces its earlier statements, except statements with more trust.
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

  /**
   * Returns when a memory ends that a statement contradicts: now at the latest. A wrong clock may give the statement a later time, and
   * until then both would be valid.
   */
  #endAt(saidAt: string): string {
    return saidAt < this.#now ? saidAt : this.#now;
  }

  #addOutdated(sources: readonly MemorySource[]): void {
    for (const { sha256 } of sources) this.outdated.add(sha256);
  }

  /**
   * @param members The members that follow from the source. Ignored if the full list has no place for the source, because `forgetSource`
   *   would not find them.
   */
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

/** Whether all sources of a memory are from the job that now contradicts it. */
function isOfSameJob({ sources }: MemoryDraft, { id, sha256 }: MemorySource): boolean {
  return sources.every((source) => source.id === id && source.sha256 === sha256);
}

/** Returns the memory without its end, so that it is valid. */
export function withoutEnd(memory: MemoryDraft): MemoryDraft {
  const { validTo: _, supersededBy: __, ...rest } = memory;
  return rest;
}

/** Returns the id of a key's memory; `undefined` without a key. A fact and a procedure with the same key have different ids. */
export function keyedId({ key, kind }: Pick<Candidate, 'key' | 'kind'>): string | undefined {
  if (key === undefined) return undefined;
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 32);
  return kind === 'procedural' ? `procedure-${hash}` : `key-${hash}`;
}

/** Returns the members that follow from the sources of a memory with a key. */
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

/** Whether a source adds nothing to the memory of a key. `successor` is the memory that replaced it. */
function isKnownFact(memory: MemoryDraft, source: MemorySource, successor: MemoryDraft | undefined): boolean {
  const earlier = memory.sources.findLast(({ id }) => id === source.id);
  if (!earlier || !isRepetition(source, earlier)) return false;
  if (memory.validTo === undefined && isSameFact(memory.text, source.statement)) return true;
  // The statement was replaced. It counts as new if the same source replaced it, or if it comes from later messages of the session.
  const isOfSuccessor = successor?.sources.some(({ id }) => id === source.id);
  return !isOfSuccessor && !isLaterPart(source, earlier);
}

/** Whether a source repeats an earlier statement without more trust. */
function isRepetition({ id, trust, statement }: MemorySource, earlier: MemorySource): boolean {
  return earlier.id === id && earlier.trust >= trust && isSameFact(earlier.statement, statement);
}

function isSameFact(a: string, b: string): boolean {
  return sameFactKey(a) === sameFactKey(b);
}

/**
 * Returns the importance and the expiry of a memory to which a source with the same fact is added. The memory expires only if both
 * statements expire.
 */
function mergedMembers(memory: MemoryDraft, candidate: Candidate): Pick<MemoryDraft, 'importance' | 'expiresAt'> {
  const [a, b] = [memory.expiresAt, candidate.expiresAt];
  return {
    importance: Math.max(memory.importance, candidate.importance),
    expiresAt: a === undefined || b === undefined ? undefined : a > b ? a : b,
  };
}

/** Drops the least trusted sources if there are too many; of equally trusted sources, the oldest. */
function withinLimits(sources: readonly MemorySource[]): MemorySource[] {
  const kept = [...sources];
  while (kept.length > 1 && exceedsLimits(kept)) {
    const trusts = kept.map(({ trust }) => trust);
    kept.splice(trusts.indexOf(Math.min(...trusts)), 1);
  }
  return kept;
}

/**
 * Replaces the oldest source that has the same statement and no more trust by a further source. Returns the sources unchanged if none
 * qualifies.
 *
 * @param replacesData Whether the replaced source may have data, because the memory takes the data of the further source.
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

/** Whether a memory may not have so many sources. */
function exceedsLimits(sources: readonly MemorySource[]): boolean {
  return sources.length > MAX_SOURCES || jsonBytes(sources, MAX_SOURCE_BYTES) > MAX_SOURCE_BYTES;
}

/**
 * Whether a memory prevails over a source that contradicts it: by trust, then time, then the number of sources. Statements of one source at
 * the same time are parts of a conversation or items of a list: the last one prevails.
 */
function prevailsOver(memory: MemoryDraft, source: MemorySource): boolean {
  const known = trustOf(memory);
  if (known !== source.trust) return known > source.trust;
  const last = newestSourceTime(memory);
  if (last !== source.at) return last > source.at;
  const own = memory.sources.filter(({ id, at }) => id === source.id && at === last);
  return own.length > 0 ? own.some((one) => isLaterPart(one, source)) : memory.sources.length > 1;
}
