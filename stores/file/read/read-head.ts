import { parseHead, type SnapshotHead, type UnreadableFile } from '../format/snapshot-file.ts';
import { stampOf, type FileSystem } from '../disk/file-system.ts';
import { readBeginning } from '../disk/read-file.ts';
import type { SeenHead } from '../session-index.ts';

/** Nearly all heads are shorter. */
const USUAL_HEAD = 4096;

/**
 * Reads the first line of a snapshot's file.
 *
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function readHead(fs: FileSystem, path: string): SeenHead | UnreadableFile | 'missing' {
  for (let length = USUAL_HEAD; ; length *= 8) {
    const content = readBeginning(fs, path, length);
    if (content === 'no-file') return 'broken';
    if (content === 'missing') return content;
    const { bytes, stats } = content;
    const end = bytes.indexOf(10);
    if (end === -1 && length < stats.size) continue;
    const head = parseHead(end === -1 ? bytes : bytes.subarray(0, end));
    return typeof head === 'string' ? head : { head, stamp: stampOf(stats), isWhole: false };
  }
}

/** The head, if the file exists and this store wrote it. */
export function readOwnHead(fs: FileSystem, path: string): SnapshotHead | undefined {
  const found = readHead(fs, path);
  return typeof found === 'string' ? undefined : found.head;
}
