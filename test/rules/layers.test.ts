import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Each folder and what it may import from; a folder may always import from itself. */
const LAYERS: Record<string, string[]> = {
  'src/error-kind.ts': [],
  'src/errors.ts': ['src/error-kind.ts'],
  'src/error-status.ts': [],
  'src/option-names.ts': [],
  'src/json': ['src/error-kind.ts'],
  // Types alone, which clients read as well.
  'src/snapshot/context-report.ts': [],
  'src/snapshot': ['src/json', 'src/errors.ts'],
  'src/store': ['src/snapshot', 'src/json', 'src/errors.ts', 'src/option-names.ts'],
  // Types alone: a window asks for an agent's memory by them.
  'src/session/turn-memory.ts': ['src/session', 'src/snapshot/context-report.ts'],
  // The types of a window extend its type.
  'src/session/running-window.ts': [],
  'src/session': [
    'src/store',
    'src/snapshot/context-report.ts',
    'src/snapshot',
    'src/json',
    'src/errors.ts',
    'src/error-status.ts',
  ],
  'src/client': [
    'src/json',
    'src/error-kind.ts',
    'src/error-status.ts',
    'src/option-names.ts',
    'src/snapshot/context-report.ts',
  ],
  // The agent knows the window by its types only, so that it loads none of it.
  'src/context/types.ts': [
    'src/session/running-window.ts',
    'src/session/turn-memory.ts',
    'src/store',
    'src/snapshot/context-report.ts',
    'src/snapshot',
  ],
  'src/context': [
    'src/context/types.ts',
    'src/session/running-window.ts',
    'src/session/turn-memory.ts',
    'src/session',
    'src/store',
    'src/snapshot',
    'src/json',
    'src/errors.ts',
    'src/option-names.ts',
  ],
  // The agent knows a memory by its types only, as it does a window; a memory is a source of a window, by the types of that.
  'src/memory/attach/types.ts': [
    'src/memory',
    'src/context/types.ts',
    'src/session/turn-memory.ts',
    'src/session',
    'src/store',
    'src/snapshot/context-report.ts',
  ],
  'src/memory': [
    'src/memory/attach/types.ts',
    'src/session/turn-memory.ts',
    'src/session',
    'src/store',
    'src/snapshot/context-report.ts',
    'src/snapshot',
    'src/json',
    'src/errors.ts',
  ],
  'src/react': ['src/client', 'src/json'],
  'src/privacy': ['src/session', 'src/store', 'src/snapshot', 'src/json', 'src/errors.ts'],
  'src/agent': [
    'src/client',
    'src/context/types.ts',
    'src/memory/attach/types.ts',
    'src/session/running-window.ts',
    'src/session/turn-memory.ts',
    'src/session',
    'src/store',
    'src/snapshot',
    'src/json',
    'src/errors.ts',
    'src/error-status.ts',
  ],
  // Types alone: the page reads them.
  'src/inspector/api.ts': ['src/memory', 'src/store', 'src/snapshot/context-report.ts', 'src/snapshot', 'src/json'],
  'src/inspector': [
    'src/inspector/api.ts',
    'src/server',
    'src/agent',
    'src/client',
    'src/context',
    'src/memory',
    'src/session',
    'src/store',
    'src/snapshot',
    'src/json',
    'src/errors.ts',
    'src/error-status.ts',
  ],
  'src/server': [
    'src/agent',
    'src/client',
    'src/session',
    'src/store',
    'src/snapshot',
    'src/json',
    'src/errors.ts',
    'src/error-status.ts',
    'src/option-names.ts',
  ],
  'stores/chain': ['src/store', 'src/snapshot', 'src/json', 'src/errors.ts'],
  'stores/genkit': ['src/store', 'src/snapshot', 'src/json', 'src/errors.ts'],
  'stores/in-memory': ['src/store', 'src/snapshot', 'src/json', 'src/errors.ts'],
  'stores/file': ['stores/chain', 'src/store', 'src/snapshot', 'src/json', 'src/errors.ts'],
  'stores/firestore': ['stores/chain', 'src/store', 'src/snapshot', 'src/json', 'src/errors.ts'],
  plugins: [
    'stores/firestore',
    'src/agent',
    'src/inspector',
    'src/server',
    'src/session',
    'src/store',
    'src/snapshot',
    'src/json',
    'src/errors.ts',
  ],
};

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)\s*import\s*['"]([^'"]+)['"]/g;

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(IMPORT)].map((match) => (match[1] ?? match[2] ?? match[3])!);
}

function layerOf(file: string): string | undefined {
  return Object.keys(LAYERS).find((layer) => file === layer || file.startsWith(`${layer}/`));
}

/** The imports of a file that go against the arrows. */
function trespasses(file: string, specifiers: string[]): string[] {
  const layer = layerOf(file);
  if (!layer) return [];
  return specifiers
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => relative(root, join(root, dirname(file), specifier)))
    .filter((target) => {
      const targetLayer = layerOf(target);
      return targetLayer !== layer && !(targetLayer && LAYERS[layer]!.includes(targetLayer));
    })
    .map((target) => `${file} -> ${target}`);
}

/** The folders from which imports between folders that lie side by side lead back to them. */
function circles(imports: readonly (readonly [file: string, target: string])[]): string[] {
  const arrows = new Map<string, Set<string>>();
  for (const [file, target] of imports) {
    const [from, to] = [dirname(file).split('/'), dirname(target).split('/')];
    const i = from.findIndex((part, at) => part !== to[at]);
    if (i < 0 || i >= to.length) continue;
    const [folder, other] = [from, to].map((path) => path.slice(0, i + 1).join('/')) as [string, string];
    arrows.set(folder, (arrows.get(folder) ?? new Set()).add(other));
  }
  const leadsBack = (folder: string): boolean => {
    const reached = new Set(arrows.get(folder));
    for (const one of reached) for (const next of arrows.get(one) ?? []) reached.add(next);
    return reached.has(folder);
  };
  return [...arrows.keys()].filter(leadsBack).sort();
}

function sourcesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name));
}

const sources = ['src', 'stores', 'plugins'].flatMap(sourcesBelow);

describe('the layers of the house', () => {
  it('import one way only', () => {
    expect(sources.length).toBeGreaterThan(20);
    expect(sources.flatMap((file) => trespasses(file, importsOf(file)))).toEqual([]);
  });

  it('have no folders side by side whose imports go in a circle', () => {
    const imports = sources.flatMap((file) =>
      importsOf(file)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => [file, relative(root, join(root, dirname(file), specifier))] as const),
    );
    expect(imports.length).toBeGreaterThan(1000);
    expect(circles(imports)).toEqual([]);
  });

  it('leave no source file outside every layer', () => {
    expect(sources.filter((file) => !layerOf(file))).toEqual([]);
  });

  it('have no folder with more than twelve files', () => {
    const counts = new Map<string, number>();
    for (const file of sources) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > 12)).toEqual([]);
  });

  it('keep Node and Genkit out of what runs in a browser', () => {
    const files = sources.filter((file) =>
      ['src/client/', 'src/json/', 'src/error-kind.ts', 'src/error-status.ts', 'src/option-names.ts'].some((path) =>
        file.startsWith(path),
      ),
    );
    const foreign = files.flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8').replaceAll(/(?:^|\n)\s*(?:import|export) type\b[^;]*;/g, '');
      return [...text.matchAll(IMPORT)]
        .map((match) => (match[1] ?? match[2] ?? match[3])!)
        .filter((specifier) => !specifier.startsWith('.'))
        .map((specifier) => `${file} -> ${specifier}`);
    });
    expect(foreign).toEqual([]);
  });

  it.each([
    ['samples', /^(samples|ui)\//],
    ['cli', /^cli\//],
  ])('let %s import the package by its public name, and of the repository nothing but its own', (folder, own) => {
    const inside = sourcesBelow(folder).flatMap((file) =>
      importsOf(file)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => relative(root, join(root, dirname(file), specifier)))
        .filter((target) => !own.test(target))
        .map((target) => `${file} -> ${target}`),
    );
    expect(inside).toEqual([]);
  });

  it('are enforced: an import against the arrows is found', () => {
    expect(trespasses('src/json/diff.ts', ['../snapshot/ids.ts', './value.ts'])).toEqual([
      'src/json/diff.ts -> src/snapshot/ids.ts',
    ]);
    expect(trespasses('stores/in-memory/in-memory-session-store.ts', ['../file/disk/lock-folder.ts'])).toHaveLength(1);
    const there = ['m/jobs/worker.ts', 'm/commit/run-job.ts'] as const;
    expect(circles([there, ['m/commit/parts/plan.ts', 'm/jobs/job.ts'], ['m/jobs/job.ts', 'm/types.ts']])).toEqual([
      'm/commit',
      'm/jobs',
    ]);
    expect(circles([there, ['m/commit/plan.ts', 'm/guard/rules.ts'], ['m/guard/rules.ts', 'm/jobs/job.ts']])).toEqual([
      'm/commit',
      'm/guard',
      'm/jobs',
    ]);
    expect(circles([there, ['m/jobs/worker.ts', 'm/jobs/parts/timer.ts']])).toEqual([]);
  });
});
