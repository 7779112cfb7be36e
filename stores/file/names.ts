import { createHash } from 'node:crypto';

/** Longer names are cut: file systems allow 255 bytes, and the store adds endings. */
const LONGEST_NAME = 180;
const HEAD_OF_CUT_NAME = 80;

/** Names that Windows keeps for devices, with or without an ending. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)$/;

/**
 * The file name, without ending, for an id: two ids never have the same, not even where the file system ignores case or normalises
 * Unicode, and no name is hidden, special, or leads anywhere. Lower-case letters, digits, `_` and `-` stand for themselves; any other
 * UTF-16 code unit is `%` and four hex digits. A name that gets too long is cut, and `~` and the SHA-256 of the id are appended.
 */
export function fileNameOf(id: string): string {
  const name = DEVICE_NAME.test(id) ? escapeUnit(id[0]!) + id.slice(1) : id.replaceAll(/[^a-z0-9_-]/g, escapeUnit);
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, HEAD_OF_CUT_NAME)}~${hashOf(id)}`;
}

/** SHA-256 of an id, in hex; taken from its UTF-16 code units, because UTF-8 has no lone surrogates and would make them all the same. */
export function hashOf(...ids: string[]): string {
  const hash = createHash('sha256');
  for (const id of ids) hash.update(`${id.length}:`).update(Buffer.from(id, 'utf16le'));
  return hash.digest('hex');
}

/**
 * Whether an id could be a file's name as it is: Genkit's own store names files so. Only those are looked for under their raw name that
 * can't lead out of the folder, and can't be a file of this store.
 */
export function isPlainName(id: string): boolean {
  return Buffer.byteLength(id) <= LONGEST_NAME && !/[/\\\0%~]/.test(id) && !id.startsWith('.');
}

/** The name of a snapshot's file. */
export function snapshotName(snapshotId: string): string {
  return `${fileNameOf(snapshotId)}.json`;
}

/** What a session is called in file names. */
export type SessionName = string;

/** Stands for the session of the snapshots that have none. No id has this name. */
export const NO_SESSION = '~';

/** The file name of a session; `null`: of those without one. */
export function sessionNameOf(sessionId: string | null): SessionName {
  return sessionId === null ? NO_SESSION : fileNameOf(sessionId);
}

/** Whether a text, read from a note say, is the name of a session and leads nowhere else. */
export function isSessionName(text: string): boolean {
  return text === NO_SESSION || (/^[a-z0-9_%-][a-z0-9_%~-]*$/.test(text) && text.length <= 255);
}

/** Whether a file is called as the log of a session is. */
export function isLogName(fileName: string): boolean {
  return fileName.endsWith('.jsonl') && isSessionName(fileName.slice(0, -'.jsonl'.length));
}

function escapeUnit(unit: string): string {
  return `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
