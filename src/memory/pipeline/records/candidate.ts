import type { MessageData } from 'genkit';
import { beginning } from '../../../session/log/transcript.ts';
import type { Memory, MemorySource } from '../../../store/memory/contract.ts';
import type { IngestSource, MemoryFact, MemoryTrust } from '../../types.ts';

/** The source of a job's facts. */
export type JobSource = IngestSource & { readonly at: string };

/** A fact with its source, before it is compared with the known memories. Plain JSON. */
export interface Candidate extends Omit<MemoryFact, 'messages' | 'isExplicit' | 'topics' | 'importance' | 'kind'> {
  readonly kind: Memory['kind'];
  readonly topics: readonly string[];
  readonly importance: number;
  readonly source: MemorySource;
  /** When a person approved it, ISO 8601. */
  readonly approvedAt?: string;
  /** The id of the memory, if the candidate is a whole message (`verbatim`). */
  readonly id?: string;
  /** The role of that message. */
  readonly role?: MessageData['role'];
}

const MAX_TEXT = 2_000;
/** The most characters of a procedure whose text contains the steps of its data. Procedures that a model distills are shorter. */
const MAX_PROCEDURE = 21_000;
/** The most characters of a candidate that is a whole message. */
export const MAX_VERBATIM = 8_000;

/** The common origin of a job's candidates. */
export interface Origin {
  readonly source: JobSource;
  readonly sha256: string;
  readonly trust: Required<MemoryTrust>;
  readonly toolTtlMs: number;
  /** When a tool's fact became valid, in ms since 1970: when it was said or approved. */
  readonly from: number;
}

/** Makes a candidate from a checked fact. */
export function candidateOf(
  fact: MemoryFact,
  type: MemorySource['type'],
  range: { readonly from?: number; readonly to?: number },
  { source, sha256, trust, toolTtlMs, from }: Origin,
  maxText = fact.kind === 'procedural' && fact.data !== undefined ? MAX_PROCEDURE : MAX_TEXT,
): Candidate {
  const { messages: _, isExplicit: __, kind = 'declarative', topics = [], importance = 0.5, ...rest } = fact;
  const text = beginning(fact.text.trim(), maxText);
  const { id, sessionId, snapshotId, at } = source;
  const ttlEnd = type === 'tool' ? from + toolTtlMs : undefined;
  const expiry = fact.expiresAt === undefined ? ttlEnd : Date.parse(fact.expiresAt);
  // Times are compared as strings, so all have the same format.
  const expiresAt = expiry === undefined ? undefined : new Date(expiry).toISOString();
  return {
    ...rest,
    text,
    kind,
    topics,
    importance,
    expiresAt,
    source: {
      id,
      type,
      trust: source.trust ?? trust[type],
      statement: text,
      data: fact.data,
      topics: topics.length > 0 ? topics : undefined,
      sessionId,
      snapshotId,
      ...range,
      sha256,
      at,
    },
  };
}
