import type { GenerationUsage } from 'genkit';
import { isMembers } from '../../json/fault.ts';

/** The kind of the session records that hold compactions. */
export const COMPACTION_KIND = 'compaction';
/** The key of the newest compactions; older ones are under `archive-1`, `archive-2` and so on. */
export const CHAIN_KEY = 'chain';

/**
 * A summary of the first messages of a session. It is valid for every branch that begins with exactly these messages.
 *
 * Positions are indexes in the session's messages: `from` inclusive, `to` exclusive.
 */
export interface CompactionRecord {
  /** The first message that the record before does not cover. */
  readonly from: number;
  /** The first message that this record does not cover. */
  readonly to: number;
  /** SHA-256 of the messages before `to`. It also names the record. */
  readonly sha256: string;
  /** `sha256` of the record whose summary this one continues; `null` for the first. */
  readonly previous: string | null;
  /** The summary of all messages before `to`. */
  readonly text: string;
  /** The model that wrote it; `'custom'` for a function of the application. */
  readonly model: string;
  /** Estimated tokens of the text. */
  readonly tokens: number;
  /** The usage of the model call. */
  readonly usage?: GenerationUsage;
  /** The snapshot of whose turns none is left to summarize. Missing if some are. */
  readonly leafId?: string;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** The right to write the next record, until a time. */
export interface Lease {
  readonly owner: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** The record under {@link CHAIN_KEY}. */
export interface Chain {
  readonly version: 1;
  /** The newest records, of all branches, oldest first. */
  readonly records: readonly CompactionRecord[];
  /** Archives written so far. */
  readonly archives: number;
  /** The total usage of all summaries of the session, those that failed included. It never falls. */
  readonly usage?: GenerationUsage;
  readonly lease?: Lease;
  /** Failed attempts since the last record, and when the next may begin (milliseconds since 1970). */
  readonly failure?: { readonly attempts: number; readonly notBefore: number };
}

export const EMPTY_CHAIN: Chain = Object.freeze({ version: 1, records: [], archives: 0 });

/** Characters of a summary at most. */
export const MOST_CHARACTERS = 32_000;

/**
 * Most records in a chain, and most characters of their summaries; beyond that the older half is archived. A chain with one more summary
 * still fits a session record, even if each character takes 6 bytes.
 */
const MOST_RECORDS = 16;
const MOST_CHAIN_CHARACTERS = 48_000;

/** Adds a record, and removes the lease and the failure. `archive` are the records to write to the next archive. */
export function withRecord(chain: Chain, record: CompactionRecord): { chain: Chain; archive: CompactionRecord[] } {
  const all = [...chain.records.filter(({ sha256 }) => sha256 !== record.sha256), record];
  const characters = all.reduce((sum, { text }) => sum + text.length, 0);
  const isFull = all.length > MOST_RECORDS || characters > MOST_CHAIN_CHARACTERS;
  const archive = isFull ? all.slice(0, Math.floor(all.length / 2)) : [];
  const { lease: _lease, failure: _failure, ...rest } = chain;
  const archives = chain.archives + (archive.length > 0 ? 1 : 0);
  return { chain: { ...rest, records: all.slice(archive.length), archives }, archive };
}

/** Parses a chain. A value that is not a chain of version 1 gives an empty chain, so its summaries are made again. */
export function parseChain(value: unknown): Chain {
  if (!isMembers(value) || value['version'] !== 1 || !Array.isArray(value['records'])) return EMPTY_CHAIN;
  const { archives, usage, lease, failure } = value as { [K in keyof Chain]?: unknown };
  return {
    version: 1,
    records: parseRecords(value),
    archives: typeof archives === 'number' ? archives : 0,
    ...(isMembers(usage) && { usage }),
    ...(isMembers(lease) &&
      typeof lease['owner'] === 'string' &&
      typeof lease['until'] === 'number' && { lease: lease as unknown as Lease }),
    ...(isMembers(failure) &&
      typeof failure['attempts'] === 'number' &&
      typeof failure['notBefore'] === 'number' && { failure: failure as unknown as NonNullable<Chain['failure']> }),
  };
}

/** The valid records in a chain or an archive. */
export function parseRecords(value: unknown): CompactionRecord[] {
  const records = isMembers(value) ? (value as { readonly records?: unknown }).records : undefined;
  return Array.isArray(records) ? records.filter(isRecord) : [];
}

function isRecord(value: unknown): value is CompactionRecord {
  if (!isMembers(value)) return false;
  const { from, to, sha256, text } = value;
  return Number.isInteger(from) && Number.isInteger(to) && typeof sha256 === 'string' && typeof text === 'string';
}
