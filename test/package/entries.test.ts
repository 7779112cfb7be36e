/** Each import path of the packed package loads what the README says it needs and nothing else, in both formats. */
import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { evaluate, neededPackages, Packed } from './packed.ts';

type Conditions = Record<'import' | 'require', { types: string; default: string }>;

const needed = neededPackages();
const entries = [...needed].map(([path, packages]) => ({ path, packages }));
let packed: Packed;
let unpacked: string;
let exported: Record<string, Conditions>;

beforeAll(() => {
  packed = new Packed();
  unpacked = join(packed.project('unpacked', []), 'node_modules', 'genkitx-agents');
  exported = (JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')) as { exports: typeof exported }).exports;
});
afterAll(() => packed.remove());

/** The packages that a file and all the files of ours that it imports name. */
function packagesOf(file: string, seen = new Set<string>()): Set<string> {
  if (seen.has(file)) return new Set();
  seen.add(file);
  const specifiers = ts.preProcessFile(readFileSync(file, 'utf8'), true, true).importedFiles.map((it) => it.fileName);
  return new Set(
    specifiers.flatMap((specifier) => {
      if (specifier.startsWith('.')) return [...packagesOf(declared(file, specifier), seen)];
      return isBuiltin(specifier) ? [] : [/^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0]];
    }),
  );
}

/** The file that an import leads to: that of a declaration names the JavaScript beside it. */
function declared(from: string, specifier: string): string {
  const file = join(dirname(from), specifier);
  const types = file.replace(/\.([mc])js$/, '.d.$1ts');
  return /\.d\.[mc]ts$/.test(from) && existsSync(types) ? types : file;
}

const conditionsOf = (path: string) => exported[path.replace('genkitx-agents', '.')]!;

describe('the packed files', () => {
  it('have a row in the README for each import path', () => {
    const paths = Object.keys(exported).filter((path) => !path.endsWith('.json'));
    expect([...needed.keys()].toSorted()).toEqual(paths.map((path) => path.replace('.', 'genkitx-agents')).toSorted());
  });

  it.each(entries)('of $path name what the README says, in code and types of both formats', ({ path, packages }) => {
    for (const { types, default: code } of [conditionsOf(path).import, conditionsOf(path).require]) {
      const all = [code, types].flatMap((file) => [...packagesOf(join(unpacked, file))]);
      expect([...new Set(all)].toSorted()).toEqual(packages.toSorted());
    }
  });
});

describe('a project with nothing but what the README names', () => {
  it.each(entries)('loads $path', async ({ path, packages }) => {
    const home = packed.project(path.replace('/', '-'), packages);
    const names = await Promise.all([
      evaluate(home, 'module', `import * as all from '${path}'; console.log(Object.keys(all).toSorted().join());`),
      evaluate(home, 'commonjs', `console.log(Object.keys(require('${path}')).toSorted().join());`),
    ]);
    expect(names[0]).not.toBe('');
    expect(names[1]).toBe(names[0]);
  });

  it('is told the name of the package that is missing', async () => {
    const home = packed.project('lacking', []);
    const missing = /Cannot find (?:package|module) 'genkit/;
    await expect(evaluate(home, 'module', `import 'genkitx-agents';`)).rejects.toThrow(missing);
    await expect(evaluate(home, 'commonjs', `require('genkitx-agents');`)).rejects.toThrow(missing);
  });
});
