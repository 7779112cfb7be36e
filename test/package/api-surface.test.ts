import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';
import { describeSurface } from './api-surface.ts';
import { compile, examples, faultsOf, given, root } from './program.ts';

const FILE = 'docs/api-surface.txt';
const path = join(root, FILE);

let program: ts.Program;

beforeAll(() => {
  program = compile();
}, 300_000);

/**
 * What the package exports is a promise: it changes on purpose, and the change is reviewed as the diff of this file. When it is meant, write
 * it again with `npx vitest run test/package/api-surface.test.ts -u` and commit it.
 */
it(`exports what ${FILE} lists`, async () => {
  await expect(describeSurface(program)).toMatchFileSnapshot(path);
});

it('lists every import path of the package', () => {
  const manifest = JSON.parse(readFileSync(join(path, '../../package.json'), 'utf8')) as { exports: object };
  const paths = Object.keys(manifest.exports).filter((name) => !name.endsWith('.json'));
  const listed = readFileSync(path, 'utf8').match(/^== (.*) ==$/gm);
  expect(listed?.toSorted()).toEqual(paths.map((name) => `== genkitx-agents${name.slice(1)} ==`).toSorted());
});

describe('the examples of the docstrings', () => {
  it('are there, and take nothing for granted that is not', () => {
    expect(examples.length).toBeGreaterThan(15);
    expect(faultsOf(program, given)).toEqual([]);
  });

  it.each(examples)('$where is right', ({ file }) => {
    expect(faultsOf(program, file), relative(root, file)).toEqual([]);
  });
});
