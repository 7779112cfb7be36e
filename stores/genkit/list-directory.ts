import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { dataLoss, notFound } from '../../src/errors.ts';
import { sessionOf } from '../../src/snapshot/snapshot.ts';
import type { ListedSession, SessionLister } from '../../src/store/migrate/copy-sessions.ts';
import { DEFAULT_TENANT } from '../../src/store/name-tenant.ts';

/** Options of {@link listGenkitDirectory}. */
export interface ListGenkitDirectoryOptions {
  /** The result of the store's `snapshotPathPrefix` for the tenant. Default: `'global'`. */
  prefix?: string;
}

/**
 * Finds the sessions in a directory that Genkit's own `FileSessionStore` wrote, for `copySessions`. Reads each file once; snapshots without a
 * session are left out.
 *
 * @param directory The store's directory.
 * @throws When iterated: `NOT_FOUND` when the directory can't be read, `DATA_LOSS` for a file that is not JSON.
 */
export function listGenkitDirectory(
  directory: string,
  { prefix = DEFAULT_TENANT }: ListGenkitDirectoryOptions = {},
): SessionLister {
  return async function* sessions() {
    const folder = join(directory, prefix);
    const names = await readdir(folder).catch((cause: NodeJS.ErrnoException) => {
      throw notFound(
        `The directory of snapshots '${prefix}' can't be read (${cause.code}). Check the directory and the prefix.`,
      );
    });
    const found = new Map<string, string[]>();
    for (const name of names) {
      if (!name.endsWith('.json')) continue;
      const snapshot = await readSnapshot(folder, name);
      const sessionId = snapshot && sessionOf(snapshot);
      if (sessionId === undefined) continue;
      const snapshotIds = found.get(sessionId) ?? [];
      found.set(sessionId, snapshotIds);
      snapshotIds.push(name.slice(0, -'.json'.length));
    }
    for (const [sessionId, snapshotIds] of found) yield { sessionId, snapshotIds } satisfies ListedSession;
  };
}

async function readSnapshot(folder: string, name: string): Promise<{ sessionId?: string } | undefined> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(join(folder, name), 'utf8'));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw dataLoss(`The file '${name}' can't be read as a snapshot. Move it away, then list again.`);
  }
  return typeof value === 'object' && value !== null ? value : undefined;
}
