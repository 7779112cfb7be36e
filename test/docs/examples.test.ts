/** Runs every TypeScript example of the README and of `docs/`, and compiles it with the settings that `tsc --init` would write. What an example says
 * it prints (`// -> text`) must be what it prints. A block whose first line names a file (`// support.ts`) can be imported by the page's other blocks. */
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compile } from '../support/compile.ts';

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
  return [...text.matchAll(/^```(tsx?)\n([\s\S]*?)^```$/gm)].map((match) => {
    const line = text.slice(0, match.index).split('\n').length;
    const [, kind, code = ''] = match;
    return { page, line, code, file: /^\/\/ ([\w-]+\.ts)\n/.exec(code)?.[1] ?? `line-${line}.${kind}` };
  });
}

const examples = pages.flatMap(examplesOf);

/**
 * Runs the files that it is given, each as `<page>/<file>`, one after the other, each in its page's folder with its own copies of all, and
 * says what each of them printed.
 */
const RUNNER = `
import { AsyncLocalStorage } from 'node:async_hooks';
import { copyFileSync, mkdirSync, readdirSync, writeSync } from 'node:fs';
const home = process.cwd();
const printed = {};
const running = new AsyncLocalStorage();
process.stdout.write = (text) => { printed[running.getStore()] += text; return true; };
process.once('exit', () => writeSync(1, JSON.stringify(printed)));
for (const place of process.argv.slice(2)) {
  printed[place] = '';
  const [page, file] = place.split('/');
  process.chdir(home + '/' + page);
  const own = process.cwd() + '/copies-for-' + file.slice(0, -3);
  mkdirSync(own);
  for (const name of readdirSync('.')) if (name.endsWith('.js')) copyFileSync(name, own + '/' + name);
  await running.run(place, () => import(own + '/' + file));
}
`;

/** For the compiler, which reads all of Genkit's types, and for the examples of a page, on a machine that may have other work. */
const TIMEOUT_MS = 300_000;

describe('the examples of the docs', () => {
  let folder: string;
  let complaints: string;
  let printed: Promise<Record<string, string>>;
  const folderOf = (page: string) => page.replaceAll(/\W/g, '-');
  const placeOf = ({ page, file }: Example) => `${folderOf(page)}/${file.replace(/tsx?$/, 'js')}`;

  // Inside the checkout, so that they import the package by its name.
  beforeAll(() => {
    mkdirSync(join(root, '.tmp'), { recursive: true });
    folder = mkdtempSync(join(root, '.tmp', 'docs-'));
    for (const { page, file, code } of examples) {
      mkdirSync(join(folder, folderOf(page)), { recursive: true });
      writeFileSync(join(folder, folderOf(page), file), code);
    }
    writeFileSync(join(folder, 'run.js'), RUNNER);
    complaints = compileExamples();
    const options = { cwd: folder, env: { ...process.env, GENKIT_ENV: 'prod' }, timeout: TIMEOUT_MS };
    printed = promisify(execFile)(process.execPath, ['run.js', ...examples.map(placeOf)], options).then(
      ({ stdout }) => JSON.parse(stdout) as Record<string, string>,
    );
    // Each page's test says what is wrong.
    printed.catch(() => {});
  }, TIMEOUT_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Makes JavaScript of them, against the built package and with ordinary settings; what the compiler says to that. */
  function compileExamples(): string {
    const setup = spawnSync(process.execPath, ['scripts/setup.mjs', '--build'], { cwd: root, encoding: 'utf8' });
    expect(setup.status, setup.stderr).toBe(0);
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      lib: ['ES2023'],
      jsx: 'react-jsx',
      types: ['node'],
      strict: true,
      skipLibCheck: true,
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['**/*.ts', '**/*.tsx'] }));
    return compile(folder);
  }

  it('are there', () => {
    expect(examples.length).toBeGreaterThan(5);
  });

  it('compile against the built package, with nothing but ordinary settings', () => {
    expect(complaints).toBe('');
  });

  it.each(pages.filter((page) => examples.some((example) => example.page === page)))(
    'on %s run and print what they say',
    async (page) => {
      const own = examples.filter((example) => example.page === page);
      for (const example of own) {
        const promised = [...example.code.matchAll(/\/\/ (?:->|→) (.*)$/gm)].map((match) => match[1]!.trim());
        const lines = (await printed)[placeOf(example)]!.split('\n').map((text) => text.trim());
        for (const text of promised) expect(lines, `${page}, line ${example.line}`).toContain(text);
      }
    },
    TIMEOUT_MS,
  );
});
