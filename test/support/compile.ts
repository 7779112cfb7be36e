import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const COMPILER = fileURLToPath(new URL('../../node_modules/typescript7/bin/tsc', import.meta.url));

/** Compiles the project of a folder, by its `tsconfig.json`. Returns what the compiler says: nothing, if all is well. */
export function compile(folder: string): string {
  const { stdout, stderr, error } = spawnSync(process.execPath, [COMPILER, '-p', folder], { encoding: 'utf8' });
  if (error) throw error;
  return stdout + stderr;
}
