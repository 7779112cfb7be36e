import { GenkitError } from 'genkit';
import { stringifyJson, type Json } from '../../../src/json/value.ts';
import type { SnapshotMetadata, SnapshotStatus } from '../../../src/snapshot/snapshot.ts';
import { SNAPSHOT_STATUSES } from '../../../src/snapshot/status.ts';
import type { SessionDetails } from '../../../src/store/contract.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';
import type { Cut, Lift } from '../../chain/cut.ts';
import type { JsonPatch } from '../../../src/json/patch/diff.ts';
import { divideDetails, divideMetadata } from '../../../src/store/encryption/clear-metadata.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { isPacked, pack, unpack } from './compression.ts';
import { FORMAT, openJson, SEALED_FORMAT, sealText } from './sealable.ts';
import { isObject, jsonObjectOf, jsonOf } from './text.ts';

/** The member of a snapshot's file with the store's own data. All members whose names begin with it are the store's. */
const OWN = 'genkitx-agents';
const LIFTS = `${OWN}/lifts`;
const CHANGES = `${OWN}/changes`;
/** The encrypted part of the first line, and the encrypted second line. */
const SEALED = `${OWN}/sealed`;
const SEALED_BODY = `${OWN}/sealed-state`;

/** Names one state of one snapshot. */
export interface StateRef {
  readonly id: string;
  /** Unique for every state that was ever written. */
  readonly version: string;
  /** The number of diffs from the last checkpoint to it; 0: it is a checkpoint. */
  readonly depth: number;
}

/** The change of records that came with a write; see `ScopeRecords`. */
export interface RecordCommit {
  /** Unique for every write. */
  readonly commit: string;
  /** File names of the records, without extension. */
  readonly names: readonly string[];
}

/** The first line of a snapshot's file: everything except the state. */
export interface SnapshotHead {
  readonly meta: SnapshotMetadata;
  /** The session it belongs to; `null`: none. */
  readonly session: string | null;
  /** Distinguishes the session, or a snapshot without one, from a deleted one with the same id. */
  readonly incarnation: string;
  /** Its place in the session's order of first saves; 0 without a session. */
  readonly place: number;
  /** Counts the writes of the snapshot. */
  readonly write: number;
  readonly state: Omit<StateRef, 'id'>;
  /** The state that this one is a diff from; `undefined` for a checkpoint, or without a state. */
  readonly base?: Omit<StateRef, 'depth'> | undefined;
  /** Parts of the state are in shards. */
  readonly isLifted?: boolean;
  /** Its statuses so far, each with the write that set it, for watchers that missed some of them. */
  readonly statuses: StatusTrail;
  /** Facts about the session, as of this write. */
  readonly details?: SessionDetails | undefined;
  readonly records?: RecordCommit | undefined;
  /** The encrypted part of `meta` and `details`, which are incomplete until {@link openHead}. Default: nothing is encrypted. */
  readonly sealed?: string;
}

/** `null`: no status. */
export type StatusTrail = readonly (readonly [write: number, status: SnapshotStatus | null])[];

/** The most statuses of a snapshot that are kept. */
const LONGEST_TRAIL = 256;

/** The trail after one more write. */
export function nextTrail(trail: StatusTrail, write: number, status: SnapshotStatus | undefined): StatusTrail {
  if (trail.length > 0 && trail.at(-1)![1] === (status ?? null)) return trail;
  return [...trail.slice(1 - LONGEST_TRAIL), [write, status ?? null]];
}

/** A state as a file has it: none, a checkpoint, or the patch from the state `base`. */
export type WrittenState<Ref = StateRef> =
  | { readonly kind: 'none' }
  | { readonly kind: 'whole'; readonly skeleton: Json; readonly lifts: readonly Lift[] }
  | { readonly kind: 'diff'; readonly base: Ref; readonly patch: JsonPatch };

/** A file that was read. */
export interface SnapshotFile {
  readonly head: SnapshotHead;
  readonly written: WrittenState;
  /** Its second line, to write it again unchanged. */
  readonly body: string;
  readonly isSealed: boolean;
}

/** `foreign`: a JSON object that this store did not write; `broken`: anything else. */
export type UnreadableFile = 'foreign' | 'broken';

/**
 * The text of a snapshot's file: a JSON object in two lines. The first has the store's own member and the snapshot's fields, the second the
 * state. Fields of the snapshot that are named like the store's members are kept inside the store's own member.
 *
 * @param cipher Encrypts the first line, except ids, statuses, times and counts. The second line is `body`, unchanged.
 */
export async function formatFile(head: SnapshotHead, body: string, cipher: Cipher | undefined): Promise<Buffer> {
  if (!cipher) return Buffer.from(`${headLine(head, FORMAT)}\n${body}`);
  const { clear, secret } = divided(head);
  const line = headLine(clear, SEALED_FORMAT);
  return Buffer.from(`${line},"${SEALED}":"${await sealText(secret, cipher, line)}"\n${body}`);
}

/** The clear text of the first line. The encrypted part is bound to it, so the members are always in this order. */
function headLine({ meta, ...head }: SnapshotHead, format: number): string {
  const { session, incarnation, place, write, statuses, details, base, records, isLifted } = head;
  const own = JSON.stringify({
    format,
    session,
    incarnation,
    place,
    write,
    statuses,
    details,
    base,
    records,
    state: [head.state.version, head.state.depth],
    ...(isLifted && { isLifted }),
  });
  const names = Object.keys(meta);
  if (!names.some(isOwnName)) return `{"${OWN}":${own},${stringifyJson(meta).slice(1, -1)}`;
  const entries = Object.entries(meta);
  const fields = stringifyJson(Object.fromEntries(entries.filter(([name]) => isOwnName(name))));
  const free = stringifyJson(Object.fromEntries(entries.filter(([name]) => !isOwnName(name))));
  return `{"${OWN}":${own.slice(0, -1)},"fields":${fields}},${free.slice(1, -1)}`;
}

function isOwnName(name: string): boolean {
  return name.startsWith(OWN);
}

/** The encrypted part is bound to the clear one, so that neither can be changed alone. */
function divided(head: SnapshotHead): { readonly clear: SnapshotHead; readonly secret: string } {
  const meta = divideMetadata(head.meta);
  const details = divideDetails(head.details);
  const secret = stringifyJson({ meta: meta.secret, ...(details.secret && { details: details.secret }) });
  return { clear: { ...head, meta: meta.clear, details: details.clear }, secret };
}

/**
 * The head with its encrypted part decrypted.
 *
 * @throws `FAILED_PRECONDITION` without the key, `UNAVAILABLE` when it can't be reached, any other error for damage.
 */
export async function openHead(head: SnapshotHead, sealer: Sealer): Promise<SnapshotHead> {
  const { sealed, ...clear } = head;
  if (sealed === undefined) return head;
  const { meta, details } = (await openJson(sealed, sealer, headLine(clear, SEALED_FORMAT))) as unknown as {
    meta: object;
    details?: SessionDetails;
  };
  return {
    ...clear,
    meta: { ...clear.meta, ...meta },
    details: details ? { ...clear.details, ...details } : clear.details,
  };
}

/** The second line of a snapshot without a state. */
export const NO_STATE = '}\n';

/** The second line for a whole state. */
export function wholeBody({ skeleton, lifts }: Pick<Cut, 'skeleton' | 'lifts'>): string {
  const lifted = lifts.length === 0 ? '' : `,"${LIFTS}":${JSON.stringify(lifts)}`;
  return `${lifted},"state":${skeleton}}\n`;
}

/** Smaller files take one block of the disk anyway, so packing them saves nothing. */
const ONE_BLOCK = 4096;
/** The usual size of a file without the patch. */
const USUAL_REST = 700;

/** The second line for a change of another state. */
export function changeBody(patch: string): string {
  return `,"${CHANGES}":${patch}}\n`;
}

/** {@link changeBody} without encryption. A patch that would take more than one block is deflated, as base64, if that is much smaller. */
export async function packedChangeBody(patch: string): Promise<string> {
  if (patch.length >= ONE_BLOCK - USUAL_REST) {
    const packed = (await pack(patch)).toString('base64');
    if (packed.length < 0.8 * patch.length) return `,"${CHANGES}":"${packed}"}\n`;
  }
  return changeBody(patch);
}

/** Encrypts a second line. */
export async function sealBody(body: string, state: Omit<StateRef, 'depth'>, cipher: Cipher): Promise<string> {
  return `,"${SEALED_BODY}":"${await sealText(`{${body.replace(/^,/, '')}`, cipher, placeOf(state))}"}\n`;
}

/** The place that an encrypted state is bound to: one version of one snapshot. */
function placeOf({ id, version }: Omit<StateRef, 'depth'>): string {
  return JSON.stringify(['state', id, version]);
}

/**
 * Reads the first line of a snapshot's file.
 *
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseHead(line: Buffer): SnapshotHead | UnreadableFile {
  const json = jsonObjectOf(line, '}');
  return json ? headOf(json) : 'broken';
}

/**
 * Reads a snapshot's file.
 *
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it, or without the encryption key; `UNAVAILABLE` when that can't be reached.
 */
export async function parseFile(content: Buffer, sealer: Sealer): Promise<SnapshotFile | UnreadableFile> {
  const json = jsonObjectOf(content);
  const end = content.indexOf(10) + 1;
  if (!json || end === 0) return 'broken';
  const stored = headOf(json);
  if (typeof stored === 'string') return stored;
  try {
    const head = await openHead(stored, sealer);
    const written = await writtenOf(head, head === stored ? json : await openBody(head, json, sealer));
    return { head, written, body: content.toString('utf8', end), isSealed: head !== stored };
  } catch (error) {
    if (error instanceof GenkitError) throw error;
    return 'broken';
  }
}

async function openBody(
  { meta, state }: SnapshotHead,
  json: Record<string, Json>,
  sealer: Sealer,
): Promise<Record<string, Json>> {
  const sealed = json[SEALED_BODY];
  if (typeof sealed !== 'string') throw new Error('the state is not encrypted');
  const place = placeOf({ id: meta.snapshotId, version: state.version });
  return (await openJson(sealed, sealer, place)) as Record<string, Json>;
}

function headOf(json: Record<string, Json>): SnapshotHead | UnreadableFile {
  const {
    [OWN]: own,
    [LIFTS]: _lifts,
    [CHANGES]: _changes,
    [SEALED]: sealed,
    [SEALED_BODY]: _body,
    state: _state,
    ...rest
  } = json;
  if (!isObject(own)) return 'foreign';
  const { format, fields, session, incarnation, place, write, state, base, isLifted, statuses, details, records } = own;
  const meta = isObject(fields) ? { ...rest, ...fields } : rest;
  assertReadable(format, SEALED_FORMAT, `Snapshot ${JSON.stringify(meta['snapshotId'])}`);
  const head = {
    meta: meta as unknown as SnapshotMetadata,
    session,
    incarnation,
    place,
    write,
    state: Array.isArray(state) ? { version: state[0], depth: state[1] } : undefined,
    base,
    isLifted: isLifted === true,
    statuses,
    details,
    records,
    ...(typeof sealed === 'string' && { sealed }),
  };
  return format === (head.sealed === undefined ? FORMAT : SEALED_FORMAT) && isHead(head) ? head : 'broken';
}

function isHead(head: { [K in keyof SnapshotHead]: unknown }): head is SnapshotHead {
  const { meta, session, incarnation, place, write, state, base, statuses, details, records } = head;
  const { snapshotId, parentId, createdAt } = meta as Record<string, unknown>;
  return (
    typeof snapshotId === 'string' &&
    isOptional(parentId, 'string') &&
    typeof createdAt === 'string' &&
    (session === null || typeof session === 'string') &&
    typeof incarnation === 'string' &&
    isCount(place) &&
    isCount(write) &&
    isObject(state) &&
    typeof state['version'] === 'string' &&
    isCount(state['depth']) &&
    (base === undefined || (isObject(base) && typeof base['id'] === 'string' && typeof base['version'] === 'string')) &&
    Array.isArray(statuses) &&
    statuses.every(isStep) &&
    isOptional(details, 'object') &&
    (records === undefined ||
      (isObject(records) && typeof records['commit'] === 'string' && Array.isArray(records['names'])))
  );
}

function isStep(step: unknown): boolean {
  return Array.isArray(step) && isCount(step[0]) && (step[1] === null || SNAPSHOT_STATUSES.includes(step[1]));
}

async function writtenOf(head: SnapshotHead, json: Record<string, Json>): Promise<WrittenState> {
  const { state, [LIFTS]: lifts, [CHANGES]: changes } = json;
  if (head.base)
    return { kind: 'diff', base: { ...head.base, depth: head.state.depth - 1 }, patch: await patchOf(changes) };
  if (state === undefined) return { kind: 'none' };
  return { kind: 'whole', skeleton: state, lifts: (lifts ?? []) as unknown as Lift[] };
}

async function patchOf(changes: Json | undefined): Promise<JsonPatch> {
  const packed = typeof changes === 'string' ? Buffer.from(changes, 'base64') : undefined;
  if (packed && !isPacked(packed)) throw new Error('not packed');
  const patch = packed ? jsonOf(await unpack(packed)) : changes;
  if (!Array.isArray(patch)) throw new Error('not a patch');
  return patch as unknown as JsonPatch;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isOptional(value: unknown, type: 'string' | 'object'): boolean {
  return value === undefined || (type === 'object' ? isObject(value) : typeof value === type);
}
