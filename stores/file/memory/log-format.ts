import { freeze } from '../../../src/json/immutable.ts';
import { stringifyJson, type Json } from '../../../src/json/value.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import type { Memory, MemoryScopeId } from '../../../src/store/memory/contract.ts';
import type { MemoryVersion } from '../../../src/store/memory/version.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';
import { hashOf } from '../format/names.ts';
import { FORMAT, openJson, SEALED_FORMAT, sealText } from '../format/sealable.ts';
import { jsonObjectOf } from '../format/text.ts';

/** The part of a file's name that stands for an id or a scope's key. */
export function shortHashOf(text: string): string {
  return hashOf(text).slice(0, 32);
}

/**
 * The last line of a commit in a log, which makes it valid. The line before it has the memories that the commit put, if any.
 */
export interface LogTail {
  /** Numbers the commits of the scope. */
  readonly commit: number;
  readonly revision: number;
  /** The revision in which memories were removed last. */
  readonly reset: number;
  /** Derived notes of commits before this one are no longer valid. */
  readonly derived: number;
  /** All notes of commits up to this one are no longer valid. */
  readonly cleared: number;
  /** Bytes of the line before; 0 without such a line. */
  readonly block: number;
  /** Commits since the log was created that put nothing. */
  readonly idle: number;
  /** No memory expires before this time, in milliseconds since 1970. */
  readonly expires?: number | undefined;
  /** The job that was done by the last commit on behalf of a job. */
  readonly job?: string | undefined;
  /** The scope was erased; only this line is left of it. */
  readonly isErased?: boolean;
}

/** The tail of a scope without a log. */
export const NO_TAIL: LogTail = { commit: 0, revision: 0, reset: 0, derived: 0, cleared: 0, block: 0, idle: 0 };

const TAIL_BEGINNING = '{"commit":';
/** More than the bytes of a tail. */
export const LONGEST_TAIL = 512;
/** More than the bytes of a header: an id has 1,024 characters, each of up to 6 bytes. */
export const LONGEST_HEADER = 16 * 1024;

/** @param key The scope; `undefined`: it was erased. */
export function formatHeader(key: string | undefined): string {
  return `{"format":${FORMAT},"scope":${key ?? 'null'}}\n`;
}

/**
 * The scope in a log's first line; `null` for an erased scope; `undefined` for an invalid line.
 *
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseHeader(line: Buffer): string | null | undefined {
  const header = jsonObjectOf(line);
  if (!header) return undefined;
  assertReadable(header['format'], FORMAT, 'The memories of a scope');
  const { format, scope } = header;
  if (format !== FORMAT || (scope !== null && !Array.isArray(scope))) return undefined;
  return scope === null ? null : JSON.stringify(scope);
}

export function formatTail(tail: LogTail): string {
  return `${JSON.stringify(tail)}\n`;
}

/** `undefined` for any other line. */
export function parseTail(line: Buffer): LogTail | undefined {
  if (line.length > LONGEST_TAIL || line.toString('latin1', 0, TAIL_BEGINNING.length) !== TAIL_BEGINNING)
    return undefined;
  return jsonObjectOf(line) as LogTail | undefined;
}

/** A version as JSON: the memory without its scope, its sequences, and its vector as 32-bit numbers in base64. */
interface StoredVersion {
  readonly m: Json;
  readonly s: number;
  readonly c: number;
  readonly v?: string;
}

/** The line with the memories that a commit puts. */
export async function formatBlock(
  versions: readonly MemoryVersion[],
  commit: number,
  cipher: Cipher | undefined,
): Promise<string> {
  const stored = versions.map(({ memory, sequence, contentSequence, vector }): StoredVersion => {
    const { scope: _, ...m } = memory;
    return { m: m as Json, s: sequence, c: contentSequence, ...(vector && { v: encodeVector(vector) }) };
  });
  const text = stringifyJson(stored);
  if (!cipher) return `{"put":${text}}\n`;
  return `{"format":${SEALED_FORMAT},"sealed":"${await sealText(text, cipher, placeOf(commit))}"}\n`;
}

/** @throws Error for damage, and what {@link Sealer.open} throws. */
export async function parseBlock(
  line: Buffer,
  commit: number,
  { scope, sealer }: { scope: MemoryScopeId; sealer: Sealer },
): Promise<MemoryVersion[]> {
  const block = jsonObjectOf(line);
  if (!block) throw new Error('not a line of a log');
  const { put, sealed } = block;
  const stored = typeof sealed === 'string' ? await openJson(sealed, sealer, placeOf(commit)) : put;
  if (!Array.isArray(stored) || !stored.every(isVersion)) throw new Error('not a line of a log');
  return (stored as unknown as StoredVersion[]).map(({ m, s, c, v }) => ({
    memory: freeze({ ...(m as unknown as Memory), scope }),
    sequence: s,
    contentSequence: c,
    vector: v === undefined ? undefined : decodeVector(v),
  }));
}

/** Without these members each search would fail. */
function isVersion(stored: unknown): boolean {
  const { text, id, sources } = ((stored as StoredVersion | null)?.m ?? {}) as { [name: string]: unknown };
  return typeof text === 'string' && typeof id === 'string' && Array.isArray(sources);
}

function placeOf(commit: number): string {
  return `memories ${commit}`;
}

function encodeVector({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}

function decodeVector(text: string): Float32Array {
  return new Float32Array(Uint8Array.from(Buffer.from(text, 'base64')).buffer);
}
