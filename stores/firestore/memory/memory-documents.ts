import { createHash } from 'node:crypto';
import { FieldValue, type DocumentData, type DocumentSnapshot, type VectorValue } from '@google-cloud/firestore';
import { GenkitError } from 'genkit';
import { dataLoss } from '../../../src/errors.ts';
import { freeze } from '../../../src/json/immutable.ts';
import { parseJson, stringifyJson, type Json } from '../../../src/json/value.ts';
import type { Sealer } from '../../../src/store/encryption/encryption.ts';
import { isDerivedKind, type NoteOperation } from '../../../src/store/memory/checks.ts';
import type { Memory, MemoryJob, MemoryNote, MemoryScopeId } from '../../../src/store/memory/contract.ts';
import { memoryJobDueAt } from '../../../src/store/memory/jobs.ts';
import { memorySequenceOf, endMs, type MemoryVersion } from '../../../src/store/memory/version.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';
import { FORMAT, SEALED_FORMAT } from '../format/foreign-layout.ts';
import { packText, packTextNow, unpackJson, unpackText } from '../format/packed-text.ts';

/** The name of a document by an id: 256 bits of a hash. */
export function hashName(id: string): string {
  const bytes = Buffer.from(id, 'utf16le');
  return createHash('sha256').update(`${id.length}:`).update(bytes).digest('base64url');
}

/** A scope's head: every commit reads and writes it. */
export interface ScopeHead {
  /** The scope's key; `undefined` after an erasure, until the next write. */
  readonly key: string | undefined;
  /** Numbers the commits. */
  readonly commit: number;
  readonly revision: number;
  /** The revision in which memories were removed last. */
  readonly reset: number;
  /** The commit of the last erasure. Documents of commits before it are erased. */
  readonly floor: number;
  /** The first revision after the last erasure; `reset` is never smaller. */
  readonly floorRevision: number;
  /** An erasure has not removed all documents yet. */
  readonly isErasing: boolean;
  /** No memory expires before this time, in milliseconds since 1970. */
  readonly expires: number | null;
}

export const NO_HEAD: ScopeHead = {
  key: undefined,
  commit: 0,
  revision: 0,
  reset: 0,
  floor: 0,
  floorRevision: 0,
  isErasing: false,
  expires: null,
};

export function headFields({ key, ...head }: ScopeHead): DocumentData {
  return { v: FORMAT, ...head, ...(key !== undefined && { key: packTextNow(key), isWritten: true }) };
}

/** @throws `FAILED_PRECONDITION` when a newer version of this store wrote it. */
export function readHead(document: DocumentSnapshot): ScopeHead {
  const data = document.data();
  if (!data) return NO_HEAD;
  assertReadable(data['v'], FORMAT, 'The memories of a scope');
  const { key, commit, revision, reset, floor, floorRevision, isErasing, expires } = data;
  const head = { commit, revision, reset, floor, floorRevision, isErasing, expires } as Omit<ScopeHead, 'key'>;
  return { ...head, key: key ? JSON.stringify(unpackJson(key as Buffer)) : undefined };
}

/**
 * Whether the document of a memory or of a revision exists, and was written after the last erasure of its scope. An erasure marks the head
 * first and removes the documents afterwards, so every read of a document needs the head as well, read no earlier than the call began.
 */
export function isKept(document: DocumentSnapshot, { floorRevision }: ScopeHead): boolean {
  return document.exists && (document.get('sequence') as number) >= memorySequenceOf(floorRevision);
}

/** The document of a current or earlier version of a memory. `name` is the memory's. */
export async function versionFields(
  { memory, sequence, contentSequence, vector }: MemoryVersion,
  name: string,
  sealer: Sealer,
): Promise<DocumentData> {
  const { scope: _, ...rest } = memory;
  const cipher = await sealer.cipher();
  const place = placeOf(name, memory.revision);
  return {
    v: cipher ? SEALED_FORMAT : FORMAT,
    memory: await packText(stringifyJson(rest), { cipher, place }),
    revision: memory.revision,
    sequence,
    content: contentSequence,
    // As of now. A query checks `validTo` again, because it may pass later.
    isActive: endMs(memory.validTo) > Date.now(),
    expires: memory.expiresAt === undefined ? null : Date.parse(memory.expiresAt),
    sources: memory.sources.map(({ id }) => hashName(id)),
    ...(vector && { vector: FieldValue.vector(Array.from(vector)) }),
  };
}

/**
 * @throws `DATA_LOSS` when it is damaged, `FAILED_PRECONDITION` when a newer version of this store wrote it or the key is missing.
 */
export async function readVersion(
  document: DocumentSnapshot,
  { scope, sealer }: { scope: MemoryScopeId; sealer: Sealer },
): Promise<MemoryVersion> {
  const data = document.data()!;
  assertReadable(data['v'], SEALED_FORMAT, 'A memory');
  const place = placeOf(memoryNameOf(document.id), data['revision'] as number);
  const memory = parseJson(await unpacked(data['memory'] as Buffer, sealer, place)) as unknown as Memory;
  const vector = data['vector'] as VectorValue | undefined;
  return {
    memory: freeze({ ...memory, scope }),
    sequence: data['sequence'] as number,
    contentSequence: data['content'] as number,
    vector: vector && Float32Array.from(vector.toArray()),
  };
}

function placeOf(name: string, revision: number): string {
  return `memory ${name} ${revision}`;
}

const NAME_LENGTH = 43;

/** The name of the document of an earlier version of a memory. */
export function revisionName(name: string, revision: number): string {
  return `${name}-${String(revision).padStart(8, '0')}`;
}

/** The memory's name in the id of a document of its current or an earlier version. */
export function memoryNameOf(documentId: string): string {
  return documentId.slice(0, NAME_LENGTH);
}

/** The names of notes of one kind are a range. */
export function noteRange(kind: string): [start: string, end: string] {
  const start = hashName(kind);
  return [`${start}-`, `${start}.`];
}

export function noteName({ kind, key }: Pick<NoteOperation, 'kind' | 'key'>): string {
  return `${hashName(kind)}-${hashName(key)}`;
}

export async function noteFields(
  { kind, key, value }: NoteOperation,
  commit: number,
  sealer: Sealer,
): Promise<DocumentData> {
  const cipher = await sealer.cipher();
  const place = `note ${noteName({ kind, key })}`;
  return {
    v: cipher ? SEALED_FORMAT : FORMAT,
    note: await packText(stringifyJson([kind, key, value]), { cipher, place }),
    isDerived: isDerivedKind(kind),
    commit,
  };
}

/** @throws as {@link readVersion} does. */
export async function readNote(document: DocumentSnapshot, sealer: Sealer): Promise<MemoryNote> {
  assertReadable(document.get('v'), SEALED_FORMAT, 'A note of a memory store');
  const text = await unpacked(document.get('note') as Buffer, sealer, `note ${document.id}`);
  const [kind, key, value] = parseJson(text) as [string, string, Json];
  return { kind, key, value };
}

/** @param sealer The sealer of the job's scope. */
export async function jobFields(job: MemoryJob, sealer: Sealer): Promise<DocumentData> {
  const cipher = await sealer.cipher();
  const place = `job ${hashName(job.id)}`;
  return {
    v: cipher ? SEALED_FORMAT : FORMAT,
    job: await packText(stringifyJson(job), { cipher, place }),
    scope: hashName(sealer.owner.id),
    key: packTextNow(sealer.owner.id),
    // Dead jobs have no such field.
    ...(job.state !== 'dead' && { ready: memoryJobDueAt(job) }),
  };
}

/** @throws as {@link readVersion} does. */
export async function readJob(document: DocumentSnapshot, sealerOf: (key: string) => Sealer): Promise<MemoryJob> {
  assertReadable(document.get('v'), SEALED_FORMAT, 'A memory job');
  const text = await unpacked(document.get('job') as Buffer, sealerOf(keyIn(document)), `job ${document.id}`);
  return Object.freeze(parseJson(text) as unknown as MemoryJob);
}

/** The key of the scope of a job, or of a queue of jobs. */
export function keyIn(document: DocumentSnapshot): string {
  return JSON.stringify(unpackJson(document.get('key') as Buffer));
}

async function unpacked(bytes: Buffer, sealer: Sealer, place: string): Promise<string> {
  try {
    return await unpackText(bytes, { sealer, place });
  } catch (error) {
    if (error instanceof GenkitError) throw error;
    throw dataLoss('A document of a memory store is damaged. Restore it from a backup, or remove it.');
  }
}
