import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Ran } from './run-cli.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The built package. */
export const DIST = join(root, 'dist');
/** The built command. */
export const COMMAND = join(DIST, 'cli.mjs');

/** Builds outdated files. `npm test` does this before; a single test file does not. */
export function buildPackage(): void {
  const setup = ['scripts/setup.mjs', '--build'];
  const { status, stderr } = spawnSync(process.execPath, setup, { cwd: root, encoding: 'utf8' });
  expect(status, stderr).toBe(0);
}

/** Runs the built command in its own process. */
export async function runBuilt(args: readonly string[], folder = root): Promise<Ran> {
  const child = spawn(process.execPath, [COMMAND, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const [[code], out, err] = await Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)]);
  return { code: code as number, out, err };
}
