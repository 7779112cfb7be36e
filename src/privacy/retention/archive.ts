import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ArchivedSession } from './apply-retention.ts';

/** The part of an object of `@google-cloud/storage` that {@link archiveToBucket} needs. */
export interface ArchiveObject {
  /** Writes the object; it exists when the stream has finished. */
  createWriteStream(options: { resumable: boolean; metadata: { contentType: string } }): Writable;
}

/** The part of a bucket of `@google-cloud/storage` that {@link archiveToBucket} needs. */
export interface ArchiveBucket {
  /** The object of a name. */
  file(name: string): ArchiveObject;
}

/** Options of {@link archiveToDirectory} and {@link archiveToBucket}. */
export interface ArchiveOptions {
  /**
   * The name of a session's file, without the ending `.jsonl`. Sessions must have different names, also those of different tenants.
   * Default: a hash of the session's id and its latest leaf's id, after the session id if that is a plain name.
   */
  nameOf?: (session: ArchivedSession) => string;
}

/**
 * An `archive` for `applyRetention` that writes each session to a file of JSON Lines. The file is on disk before the session is removed. It
 * is replaced when the session is archived again.
 *
 * @param directory Created if it does not exist.
 */
export function archiveToDirectory(
  directory: string,
  { nameOf = defaultName }: ArchiveOptions = {},
): (session: ArchivedSession) => Promise<void> {
  return async (session) => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const path = join(directory, `${nameOf(session)}.jsonl`);
    const draft = `${path}.${process.pid}.draft`;
    try {
      await pipeline(Readable.from(session.lines()), createWriteStream(draft, { mode: 0o600, flush: true }));
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    await flushFolder(directory);
  };
}

/**
 * An `archive` for `applyRetention` that writes each session to an object of a bucket of Cloud Storage, as JSON Lines.
 *
 * @example
 * const archive = archiveToBucket(new Storage().bucket('agent-archive'));
 */
export function archiveToBucket(
  bucket: ArchiveBucket,
  { nameOf = defaultName }: ArchiveOptions = {},
): (session: ArchivedSession) => Promise<void> {
  return async (session) => {
    const object = bucket.file(`${nameOf(session)}.jsonl`);
    const metadata = { contentType: 'application/x-ndjson' };
    await pipeline(Readable.from(session.lines()), object.createWriteStream({ resumable: false, metadata }));
  };
}

/** Sessions that had the same id one after another have different names, because their leaves differ. */
function defaultName({ summary }: ArchivedSession): string {
  const { sessionId, leafId } = summary;
  const hash = createHash('sha256')
    .update(JSON.stringify([sessionId, leafId]))
    .digest('hex')
    .slice(0, 32);
  return /^[\w-]{1,100}$/.test(sessionId) ? `${sessionId}-${hash}` : hash;
}

/** Makes a new name in a folder durable. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
