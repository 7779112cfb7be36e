import { open as openFile, unlink } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Option } from 'commander';
import { WrongUse } from '../failures.ts';
import type { Io } from '../io.ts';

/** Options of every command that exports. */
export interface OutFlags {
  readonly out?: string;
}

export function outOption(): Option {
  return new Option('-o, --out <file>', 'writes a new file. Default: the standard output');
}

/** Writes lines to the file of `--out`, or to the standard output. */
export async function writeLines(io: Io, { out }: OutFlags, lines: AsyncIterable<string>): Promise<void> {
  if (out === undefined) for await (const line of lines) await io.print(line);
  else await writeNew(resolve(io.folder, out), lines);
}

/** Writes a new file, and removes it when that fails. If the process is killed, its last line, of kind `end`, is missing. */
async function writeNew(path: string, lines: AsyncIterable<string>): Promise<void> {
  let file;
  try {
    file = await openFile(path, 'wx', 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new WrongUse(`${path} already exists. Name a new file.`);
    if (code === 'ENOENT') throw new WrongUse(`The directory of ${path} does not exist.`);
    throw error;
  }
  try {
    for await (const line of lines) await file.write(line);
    await file.sync();
  } catch (error) {
    await unlink(path);
    throw error;
  } finally {
    await file.close();
  }
}
