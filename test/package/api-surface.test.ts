import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { describeSurface } from './api-surface.ts';

const FILE = 'docs/api-surface.txt';
const path = join(fileURLToPath(new URL('../..', import.meta.url)), FILE);

/** The compiler reads all of Genkit's types, on a machine that may have other work. */
const COMPILER_TIMEOUT_MS = 300_000;

/**
 * What the package exports is a promise: it changes on purpose, and the change is reviewed as the diff of this file. When it is meant, write
 * it anew by `npx vitest run test/package/api-surface.test.ts -u` and commit it.
 */
it(
  `exports what ${FILE} lists`,
  async () => {
    await expect(describeSurface()).toMatchFileSnapshot(path);
  },
  COMPILER_TIMEOUT_MS,
);

it('lists every import path of the package', () => {
  const manifest = JSON.parse(readFileSync(join(path, '../../package.json'), 'utf8')) as { exports: object };
  const paths = Object.keys(manifest.exports).filter((name) => !name.endsWith('.json'));
  const listed = readFileSync(path, 'utf8').match(/^== (.*) ==$/gm);
  expect(listed?.toSorted()).toEqual(paths.map((name) => `== genkitx-agents${name.slice(1)} ==`).toSorted());
});
