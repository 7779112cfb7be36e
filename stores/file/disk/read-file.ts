import type { Stats } from 'node:fs';
import { closeQuietly, codeOf, READ, type FileSystem } from './file-system.ts';

/** Up to this size a synchronous read is faster than one in another thread. */
const SMALL = 64 * 1024;

/** The most that Node reads at once. The store does not write larger files. */
const LARGEST = 2 ** 31 - 1;

/** Codes for a path that is not a file's. */
const NO_FILE = new Set(['ELOOP', 'EISDIR', 'EMLINK', 'ENOTDIR', 'EFTYPE', 'ENXIO']);

/** The content of a file; `missing`: it does not exist; `no-file`: a folder, a link, or a file larger than the store writes is in its place. */
export type FileContent = { readonly bytes: Buffer; readonly stats: Stats } | 'missing' | 'no-file';

/** Reads a file from `start` to its end. */
export async function readFrom(fs: FileSystem, path: string, start = 0): Promise<FileContent> {
  const opened = openFile(fs, path);
  if (typeof opened === 'string') return opened;
  const { fd, stats } = opened;
  try {
    return { bytes: await readPart(fs, fd, start, Math.max(start, stats.size)), stats };
  } finally {
    closeQuietly(fs, fd);
  }
}

/** Reads an open file from `start` to `end`, or to the file's end. */
export async function readPart(fs: FileSystem, fd: number, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(end - start);
  if (bytes.length <= SMALL) return bytes.subarray(0, fs.read(fd, bytes, start));
  let length = 0;
  while (length < bytes.length) {
    const count = await fs.readLater(fd, bytes.subarray(length), start + length);
    if (count === 0) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

/** Reads the first bytes of a file, up to `length`. */
export function readBeginning(fs: FileSystem, path: string, length: number): FileContent {
  // Often there is no file, and a failed `open` costs much more than a `stat`.
  if (!fs.stat(path)) return 'missing';
  const opened = openFile(fs, path);
  if (typeof opened === 'string') return opened;
  const { fd, stats } = opened;
  try {
    const bytes = Buffer.allocUnsafe(Math.min(length, stats.size));
    return { bytes: bytes.subarray(0, fs.read(fd, bytes, 0)), stats };
  } finally {
    closeQuietly(fs, fd);
  }
}

/** Opens a file for reading. */
export function openFile(fs: FileSystem, path: string): { fd: number; stats: Stats } | 'missing' | 'no-file' {
  let fd: number;
  try {
    fd = fs.open(path, READ);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'missing';
    if (NO_FILE.has(codeOf(error) ?? '')) return 'no-file';
    throw error;
  }
  try {
    const stats = fs.statOpen(fd);
    if (stats.isFile() && stats.size <= LARGEST) return { fd, stats };
  } catch (error) {
    closeQuietly(fs, fd);
    throw error;
  }
  closeQuietly(fs, fd);
  return 'no-file';
}
