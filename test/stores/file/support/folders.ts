import { readdirSync, readFileSync, readlinkSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

/** Another path to the folder, with which a store does not share the queues of this process, as if it were in another one. */
export function otherPathTo(folder: string): string {
  const link = join(temporaryFolder(), 'link');
  symlinkSync(folder, link);
  return link;
}

/** Paths of all files and folders below a folder, relative to it, sorted. */
export function entriesBelow(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[]).toSorted();
}

/** The files in `below`, a folder inside of `folder`, and their contents; symbolic links are not followed. */
export function contentsBelow(folder: string, below = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (entry.isDirectory()) Object.assign(found, contentsBelow(folder, path));
    else if (entry.isSymbolicLink()) found[path] = `-> ${readlinkSync(join(folder, path))}`;
    else found[path] = readFileSync(join(folder, path), 'latin1');
  }
  return found;
}

/** Makes the files of this process those of a dead process: no process has such a high id. */
export function killOwners(folder: string): void {
  const dead = (text: string): string => text.replace(`.${process.pid}.`, '.4194305.');
  for (const name of readdirSync(join(folder, '.locks'))) {
    const path = join(folder, '.locks', name);
    writeFileSync(path, dead(readFileSync(path, 'latin1')));
  }
  for (const name of ['.locks', '.tmp'].flatMap((below) =>
    readdirSync(join(folder, below)).map((one) => join(below, one)),
  )) {
    renameSync(join(folder, name), join(folder, dead(name)));
  }
}

/** Leftover temporary files of a store. */
export function leftovers(folder: string): string[] {
  return entriesBelow(folder).filter((path) => /(?:^|\/)\.tmp\/./.test(path));
}

export function readJson(path: string): Record<string, unknown> {
  return JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
}

/** Changes the byte in the middle of a file. */
export function flip(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1]! ^= 0xff;
  writeFileSync(path, bytes);
}
