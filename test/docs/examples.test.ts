/** Runs every TypeScript example of the README and of `docs/`, and compiles it with the settings that `tsc --init` would write. What an example says
 * it prints (`// -> text`) must be what it prints. A block whose first line names a file (`// support.ts`) can be imported by the page's other blocks. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

interface Example {
  page: string;
  line: number;
  file: string;
  code: string;
}

function examplesOf(page: string): Example[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => {
    const line = text.slice(0, match.index).split('\n').length;
    const code = match[1]!;
    return { page, line, code, file: /^\/\/ ([\w-]+\.ts)\n/.exec(code)?.[1] ?? `line-${line}.ts` };
  });
}

const examples = pages.flatMap(examplesOf);
let folder: string;

describe('the examples of the docs', () => {
  // Inside the checkout, so that they import the package by its name.
  beforeAll(() => {
    mkdirSync(join(root, '.tmp'), { recursive: true });
    folder = mkdtempSync(join(root, '.tmp', 'docs-'));
    for (const { page, file, code } of examples) {
      mkdirSync(homeOf(page), { recursive: true });
      writeFileSync(join(homeOf(page), file), code);
    }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it('are there', () => {
    expect(examples.length).toBeGreaterThan(5);
  });

  const homeOf = (page: string) => join(folder, page.replaceAll(/\W/g, '-'));

  it('compile against the built package, with nothing but ordinary settings', () => {
    const setup = spawnSync(process.execPath, ['scripts/setup.mjs', '--build'], { cwd: root, encoding: 'utf8' });
    expect(setup.stderr.includes('failed'), setup.stderr).toBe(false);
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      lib: ['ES2023'],
      types: ['node'],
      strict: true,
      noEmit: true,
      skipLibCheck: true,
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['**/*.ts'] }));
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { cwd: root, encoding: 'utf8' });
    expect(stdout).toBe('');
  });

  it.each(examples)('$page line $line runs and prints what it says', async ({ page, file, code }) => {
    const args = ['--import', 'tsx', join(homeOf(page), file)];
    const env = { ...process.env, GENKIT_ENV: 'prod', TSX_TSCONFIG_PATH: join(root, 'tsconfig.json') };
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: homeOf(page), env, timeout: 60_000 });
    const promised = [...code.matchAll(/\/\/ (?:->|→) (.*)$/gm)].map((match) => match[1]!.trim());
    const lines = stdout.split('\n').map((text) => text.trim());
    for (const text of promised) expect(lines).toContain(text);
  });
});
