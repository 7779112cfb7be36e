import { closeQuietly, codeOf, READ, type FileSystem } from './file-system.ts';

/** Up to this size reading a file at once takes less than handing it to another thread. */
const SMALL = 64 * 1024;

/** Something that is no file has the name of one. */
const NO_FILE = new Set(['ELOOP', 'EISDIR', 'EMLINK', 'ENOTDIR', 'EFTYPE', 'ENXIO']);

/** A file's content; `missing`: there is none; `no-file`: a folder or a symbolic link is in its place. */
export type FileContent = Buffer | 'missing' | 'no-file';

/** Reads a whole file. */
export async function readWhole(fs: FileSystem, path: string): Promise<FileContent> {
  const content = readSmall(fs, path);
  return typeof content === 'number' ? readLarge(fs, content) : content;
}

/** Reads a file if it is small; else answers it open. */
function readSmall(fs: FileSystem, path: string): FileContent | number {
  let fd: number | undefined;
  try {
    fd = fs.open(path, READ);
    const size = fs.statOpen(fd).size;
    if (size > SMALL) {
      const open = fd;
      fd = undefined;
      return open;
    }
    const bytes = Buffer.allocUnsafe(size);
    return bytes.subarray(0, fs.read(fd, bytes, 0));
  } catch (error) {
    return absence(error);
  } finally {
    if (fd !== undefined) closeQuietly(fs, fd);
  }
}

async function readLarge(fs: FileSystem, fd: number): Promise<Buffer> {
  try {
    const bytes = Buffer.allocUnsafe(fs.statOpen(fd).size);
    let length = 0;
    while (length < bytes.length) {
      const read = await fs.readLater(fd, bytes.subarray(length), length);
      if (read === 0) break;
      length += read;
    }
    return bytes.subarray(0, length);
  } finally {
    closeQuietly(fs, fd);
  }
}

/** The first bytes of a file. */
export function readBeginning(fs: FileSystem, path: string, length: number): FileContent {
  // Nearly always there is none, and a failed call costs much more than a look.
  if (!fs.stat(path)) return 'missing';
  let fd: number | undefined;
  try {
    fd = fs.open(path, READ);
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, fs.read(fd, bytes, 0));
  } catch (error) {
    return absence(error);
  } finally {
    if (fd !== undefined) closeQuietly(fs, fd);
  }
}

function absence(error: unknown): 'missing' | 'no-file' {
  if (codeOf(error) === 'ENOENT') return 'missing';
  if (NO_FILE.has(codeOf(error) ?? '')) return 'no-file';
  throw error;
}
