import { readdirSync } from 'node:fs';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';
import { oneLine } from '../output/text.ts';

/** The tenant of a store without `snapshotPathPrefix`. */
const DEFAULT_TENANT = 'global';

/**
 * Warns when the directory of a store has folders, but none of the tenant, because "No sessions" would then mislead. An empty directory is a
 * new store.
 *
 * @throws WrongUse for a directory that does not exist, or can't be read.
 */
export function checkDirectory(
  directory: string,
  url: string,
  tenant: string | undefined = DEFAULT_TENANT,
  io: Pick<Io, 'say'>,
): void {
  const tenants = foldersIn(directory, url).map(tenantOf);
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
