import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';

/** What a folder of a tenant has, by the kind of its store. */
const CONTENT = {
  session: /^\.(?:sessions|scopes|records)$|^[\da-f-]{36}\.json$/,
  memory: /^\.(?:memories|memory-jobs)$/,
};
/** The tenant of a store without `snapshotPathPrefix`. */
const DEFAULT_TENANT = 'global';
const MOST_NAMED = 10;

/**
 * Warns when a directory has nothing of the tenant but something else, because "No sessions" would then mislead. An empty directory is a new
 * store.
 *
 * @throws WrongUse for a directory that is not there, or can't be read.
 */
export function checkFileStore(
  kind: keyof typeof CONTENT,
  { directory, url, tenant = DEFAULT_TENANT }: { directory: string; url: string; tenant?: string | undefined },
  io: Pick<Io, 'say'>,
): void {
  const has = (folder: string, content: RegExp) => namesIn(join(directory, folder)).some((name) => content.test(name));
  const other = kind === 'session' ? 'memory' : 'session';
  const folders = foldersIn(directory, url);
  const own = folders.find((folder) => tenantOf(folder) === tenant);
  if (folders.length === 0) return;
  if (own !== undefined && (has(own, CONTENT[kind]) || !has(own, CONTENT[other]))) return;
  const tenants = folders.filter((folder) => has(folder, CONTENT[kind])).map(tenantOf);
  if (tenants.length === 0) return io.say(`Warning: ${directory} (${url}) holds no data of a ${kind} store.`);
  const more = tenants.length > MOST_NAMED ? `, and ${tenants.length - MOST_NAMED} more` : '';
  const named = tenants.slice(0, MOST_NAMED).join(', ') + more;
  io.say(`Warning: ${directory} has nothing of the tenant '${tenant}'. Choose one with --tenant: ${named}.`);
}

/** None if the folder can't be read: it belongs to something else, such as the file system. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** The tenant of a folder: a character that a file system may not take is `%` and four hex digits in its name. */
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
    const problem = isThere ? `${directory} can't be read (${code})` : `There is no directory ${directory}`;
    throw new WrongUse(`${problem} (${url}). ${isThere ? 'Check its access rights.' : 'Check the path.'}`);
  }
}
