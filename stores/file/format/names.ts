import { createHash } from 'node:crypto';

/** Longer names are cut: file systems allow 255 bytes, and the store adds extensions. */
const LONGEST_NAME = 180;
const HEAD_OF_CUT_NAME = 80;

/** Names that Windows reserves for devices, with or without an extension. */
const DEVICE_NAME = /^(?:con|prn|aux|nul|com\d|lpt\d)$/;

/**
 * The file name, without extension, for an id. Different ids have different names, even if the file system ignores case or normalizes
 * Unicode. A name is never hidden, special, or a path. Lower-case letters, digits, `_` and `-` are used unchanged; any other
 * UTF-16 code unit becomes `%` and four hex digits. A name that gets too long is cut, and `~` and the SHA-256 of the id are appended.
 */
export function fileNameOf(id: string): string {
  const name = DEVICE_NAME.test(id) ? escapeUnit(id[0]!) + id.slice(1) : id.replaceAll(/[^a-z0-9_-]/g, escapeUnit);
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, HEAD_OF_CUT_NAME)}~${hashOf(id)}`;
}

/** Whether {@link fileNameOf} may return this name. */
export function isFileName(name: string): boolean {
  return /^[a-z0-9_%-][a-z0-9_%~-]*$/.test(name);
}

/** SHA-256 of the UTF-16 code units of ids, in hex. UTF-8 has no lone surrogates, and would make them all equal. */
export function hashOf(...ids: string[]): string {
  const hash = createHash('sha256');
  for (const id of ids) hash.update(`${id.length}:`).update(Buffer.from(id, 'utf16le'));
  return hash.digest('hex');
}

/** The name of a snapshot's file. */
export function snapshotName(snapshotId: string): string {
  return `${fileNameOf(snapshotId)}.json`;
}

function escapeUnit(unit: string): string {
  return `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
