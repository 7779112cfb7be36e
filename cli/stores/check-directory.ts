import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { oneLine } from '../output/text.ts';

/** The tenant of a store without `snapshotPathPrefix`. */
const DEFAULT_TENANT = 'global';

/** Each store makes one of these folders in the folder of a tenant. */
const FOLDERS = { sessions: ['.sessions'], memories: ['.memories', '.memory-jobs'] } as const;

/**
 * Warns when the directory of a store has folders, but none of the tenant, because "No sessions" would then mislead. An empty directory is a
 * new store.
 *
 * @param holds The data that the command reads.
 * @throws WrongUse for a directory that does not exist, can't be read, has stores in it, or has only data of the other kind.
 */
export function checkDirectory(
  directory: string,
  url: string,
  { tenant = DEFAULT_TENANT, holds }: { readonly tenant: string | undefined; readonly holds: keyof typeof FOLDERS },
  io: Pick<Io, 'say'>,
): void {
  const folders = foldersIn(directory, url);
  const stores = folders.filter((name) => existsSync(join(directory, name, '.locks')));
  if (stores.length > 0 && !existsSync(join(directory, '.locks'))) {
    const named = oneLine(stores.map((name) => `${url}/${name}`).join(', '), 200);
    throw new WrongUse(`${directory} is not a store, but has stores in it. Pass one of them: ${named}.`);
  }
  const has = (kind: keyof typeof FOLDERS) =>
    folders.some((tenantFolder) => FOLDERS[kind].some((name) => existsSync(join(directory, tenantFolder, name))));
  if (holds === 'sessions' && has('memories') && !has('sessions'))
    throw new WrongUse(
      `${directory} has memories, not sessions. Pass it to 'memories' commands, or to 'inspect' as --memory.`,
    );
  if (holds === 'memories' && has('sessions') && !has('memories'))
    io.say(`Warning: ${directory} has sessions, but no memories.`);
  const tenants = folders.map(tenantOf);
  if (tenants.length === 0 || tenants.includes(tenant)) return;
  const named = oneLine(tenants.join(', '), 200);
  io.say(`Warning: ${directory} has no data of the tenant '${tenant}'. Choose one with --tenant: ${named}.`);
}

/** The tenant of a folder. In the folder's name, `%` and four hex digits stand for a character that not every file system allows. */
function tenantOf(folder: string): string {
  return folder.replaceAll(/%([\da-f]{4})/g, (_escape, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  );
}

function foldersIn(directory: string, url: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() && !entry.name.startsWith('.') ? [entry.name] : []));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isThere = code !== 'ENOENT' && code !== 'ENOTDIR';
    const problem = isThere ? `${directory} can't be read (${code})` : `The directory ${directory} does not exist`;
    throw new WrongUse(`${problem} (${url}). ${isThere ? 'Check its access rights.' : 'Check the path.'}`);
  }
}
