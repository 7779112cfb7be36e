import { isUtf8 } from 'node:buffer';
import { inflateSync } from 'node:zlib';
import type { JsonPatch } from '../../src/json/diff.ts';
import { parseJson, stringifyJson, type Json } from '../../src/json/value.ts';
import { quote } from '../../src/errors.ts';
import type { SnapshotMetadata } from '../../src/snapshot/snapshot.ts';
import { assertReadable } from '../../src/store/format.ts';
import type { Lift } from '../chain/cut.ts';
import type { WrittenState } from '../chain/written-state.ts';
import { patchText } from '../chain/written-state.ts';
import { pack } from './compression.ts';

/** The version of what this store writes. A file of a higher one is refused. */
export const FORMAT = 1;

/** The member of a snapshot's file that holds what the store itself needs to know. */
const OWN_MEMBER = 'genkitx-agents';

/** Names a snapshot's state in the file store: the snapshot by its place in the session's order of first saves, and its state's revision. */
export interface Version {
  readonly seq: number;
  readonly stateRev: number;
}

/** What a snapshot's file holds beside the state. */
export interface SnapshotHeader extends Version {
  readonly meta: SnapshotMetadata;
  /** The session it belongs to; `null`: none. */
  readonly session: string | null;
  /** Counts the writes of the snapshot. */
  readonly rev: number;
  /** Tells the save from every other, when it changed records; see `ScopeRecords`. */
  readonly mark?: string | undefined;
}

/** A file of this store. */
export interface SnapshotFile extends SnapshotHeader {
  readonly written: WrittenState<Version>;
}

/** The state's part of a file, as text. */
export interface StateText {
  readonly skeleton?: string;
  readonly lifts?: readonly Lift[];
  readonly base?: Version;
  /** Patches, oldest first: each as text, or all of them as {@link packPatches} answered. */
  readonly patches?: readonly string[];
  readonly packed?: string;
}

/** A file of up to so many bytes takes one block on the disk however small it is, so there is nothing to win by packing. */
const ONE_BLOCK = 4096;
/** What is in a file beside patches, about. */
const USUAL_REST = 700;

/** Packs patches that would make their file larger than need be: deflated, as base64. `undefined`: they are better left as they are. */
export async function packPatches(patches: readonly string[]): Promise<string | undefined> {
  const text = `[${patches.join(',')}]`;
  if (text.length < ONE_BLOCK - USUAL_REST) return undefined;
  const packed = (await pack(text)).toString('base64');
  return packed.length < 0.8 * text.length ? packed : undefined;
}

function unpackPatches(packed: string): Json {
  return parseJson(inflateSync(Buffer.from(packed, 'base64')).toString('utf8'));
}

/** What a file turned out to be. */
export type ParsedFile =
  | { readonly kind: 'own'; readonly file: SnapshotFile }
  /** A full snapshot of another writer, Genkit's own store say. */
  | { readonly kind: 'foreign'; readonly meta: SnapshotMetadata; readonly state: Json | undefined }
  | { readonly kind: 'broken' };

/**
 * The text of a snapshot's file: a JSON object with one member of the store's own, then the snapshot's fields, then the state where it is
 * whole (without what is in shards). A field of the snapshot that has the own member's name is kept inside that.
 */
export function formatSnapshot(header: SnapshotHeader, state: StateText): string {
  const { [OWN_MEMBER]: field, ...meta } = header.meta as SnapshotMetadata & { [OWN_MEMBER]?: unknown };
  const { seq, rev, stateRev, session, mark } = header;
  const own = [
    `"format":${FORMAT},"seq":${seq},"rev":${rev},"stateRev":${stateRev},"session":${JSON.stringify(session)}`,
  ];
  if (mark !== undefined) own.push(`"mark":"${mark}"`);
  if (field !== undefined) own.push(`"field":${stringifyJson(field)}`);
  if (state.base) own.push(`"base":${JSON.stringify([state.base.seq, state.base.stateRev])}`);
  if (state.lifts && state.lifts.length > 0) own.push(`"lifts":${JSON.stringify(state.lifts)}`);
  if (state.packed !== undefined) own.push(`"packed":"${state.packed}"`);
  else if (state.patches && state.patches.length > 0) own.push(`"patches":[${state.patches.join(',')}]`);
  const whole = state.skeleton === undefined ? '' : `,"state":${state.skeleton}`;
  return `{"${OWN_MEMBER}":{${own.join(',')}},${stringifyJson(meta).slice(1, -1)}${whole}}\n`;
}

/** How much of a file {@link parseHeader} needs: the longest session id, all escaped, and what stands before it. */
export const HEADER_LENGTH = 8192;

const HEADER = new RegExp(
  `^\\{"${OWN_MEMBER}":\\{"format":${FORMAT},"seq":(-?\\d+),"rev":(\\d+),"stateRev":(\\d+),"session":("(?:[^"\\\\]|\\\\.)*"|null)(?:,"mark":"([0-9a-f]+)")?[,}]`,
);

/** The header of a file of this store, from its beginning; `undefined`: it is something else, or can't be told from that. */
export function parseHeader(beginning: string): Omit<SnapshotHeader, 'meta'> | undefined {
  const match = HEADER.exec(beginning);
  if (!match) return undefined;
  const [, seq, rev, stateRev, session, mark] = match as unknown as [string, string, string, string, string, string?];
  return {
    seq: Number(seq),
    rev: Number(rev),
    stateRev: Number(stateRev),
    session: parseJson(session) as string | null,
    mark,
  };
}

/** The state's part of a file that was read, for writing it again as it is. */
export function stateTextOf(written: WrittenState<Version>): StateText {
  if (written.kind === 'none') return {};
  const patches = written.patches.map(patchText);
  if (written.kind === 'base') return { base: written.base, patches };
  return { skeleton: stringifyJson(written.skeleton), lifts: written.lifts, patches };
}

/**
 * Reads a snapshot's file.
 *
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseSnapshot(content: Buffer): ParsedFile {
  if (!isUtf8(content)) return { kind: 'broken' };
  const text = content.toString('utf8');
  let json: Json;
  try {
    json = parseJson(text);
  } catch {
    return { kind: 'broken' };
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return { kind: 'broken' };
  const { state, [OWN_MEMBER]: own, ...meta } = json;
  if (typeof meta['snapshotId'] !== 'string') return { kind: 'broken' };
  const format = isRecord(own) ? own['format'] : undefined;
  if (!isRecord(own) || typeof format !== 'number') return foreignFile(meta, own, state);
  assertReadable(format, FORMAT, `Snapshot ${quote(meta['snapshotId'])}`);
  // Another writer that rewrites a full snapshot of ours passes on the member that it does not know.
  const isRewritten = !HEADER.test(text) && !['base', 'lifts', 'patches', 'packed'].some((name) => name in own);
  return isRewritten ? foreignFile(meta, own['field'], state) : ownFile(meta, own, state);
}

function foreignFile(meta: Record<string, Json>, field: Json | undefined, state: Json | undefined): ParsedFile {
  if (state !== undefined && !isRecord(state)) return { kind: 'broken' };
  const metadata = field === undefined ? meta : { ...meta, [OWN_MEMBER]: field };
  return { kind: 'foreign', meta: metadata as unknown as SnapshotMetadata, state };
}

function ownFile(meta: Record<string, Json>, own: Record<string, Json>, state: Json | undefined): ParsedFile {
  const { seq, rev, stateRev, session, base, lifts = [], field } = own;
  const areCounts = [seq, rev, stateRev].every((count) => Number.isInteger(count));
  const patches = patchesOf(own);
  if (!areCounts || !(typeof session === 'string' || session === null) || !Array.isArray(lifts) || !patches) {
    return { kind: 'broken' };
  }
  if (field !== undefined) meta[OWN_MEMBER] = field;
  const written = writtenState(state, base, lifts as unknown as Lift[], patches);
  if (!written) return { kind: 'broken' };
  return {
    kind: 'own',
    file: { meta: meta as unknown as SnapshotMetadata, session, seq, rev, stateRev, written } as SnapshotFile,
  };
}

function patchesOf({ patches = [], packed }: Record<string, Json>): JsonPatch[] | undefined {
  try {
    const all = typeof packed === 'string' ? unpackPatches(packed) : patches;
    return Array.isArray(all) ? (all as unknown as JsonPatch[]) : undefined;
  } catch {
    return undefined;
  }
}

function writtenState(
  state: Json | undefined,
  base: Json | undefined,
  lifts: readonly Lift[],
  patches: readonly JsonPatch[],
): WrittenState<Version> | undefined {
  if (state !== undefined) return { kind: 'whole', skeleton: state, lifts, patches };
  if (base === undefined) return patches.length === 0 ? { kind: 'none' } : undefined;
  if (!Array.isArray(base) || base.length !== 2 || !base.every((count) => Number.isInteger(count))) return undefined;
  return { kind: 'base', base: { seq: base[0] as number, stateRev: base[1] as number }, patches };
}

function isRecord(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
