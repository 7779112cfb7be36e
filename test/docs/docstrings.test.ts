/** Type-checks the examples in the docstrings (`@example`), each as a module of its own. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folders = ['src', 'stores', 'plugins', 'test/conformance', 'test/support'];

/** The import path of each of the package's functions and classes; of those of one name the first path's is meant. */
function exportedNames(): Map<string, string> {
  const paths = new Map<string, string>();
  for (const entry of ['index', 'client', 'context', 'server', 'google-cloud', 'firebase', 'testing']) {
    const text = readFileSync(join(root, 'entries', `${entry}.ts`), 'utf8');
    for (const [, list] of text.matchAll(/^export \{([^}]*)\}/gm)) {
      const names = list!.split(',').map((name) => name.trim());
      for (const name of names.filter((one) => /^\w+$/.test(one) && !paths.has(one))) {
        paths.set(name, entry === 'index' ? 'genkitx-agents' : `genkitx-agents/${entry}`);
      }
    }
  }
  return paths;
}

/** What a reader takes for granted: the package's names, and things that the example is not about. */
const GIVEN = `
${[...exportedNames()].map(([name, path]) => `declare const ${name}: typeof import('${path}').${name};`).join('\n')}

declare const { z }: typeof import('genkit');
declare const { apiKey }: typeof import('genkit/context');
declare const { googleAI }: typeof import('@genkit-ai/google-genai');

declare const ai: import('genkitx-agents').AgentsGenkit;
declare const app: import('express').Express;
declare const chat: import('genkitx-agents').AgentChat;
declare const context: import('genkit').ActionContext;
declare const leaf: import('genkitx-agents').SessionSnapshot;
declare const lookUp: import('genkit').ToolAction;
declare const model: string;
declare const newStore: import('genkitx-agents').SnapshotStore;
declare const next: import('genkitx-agents').SessionSnapshotInput;
declare const oldStore: import('genkit/beta').SessionStore;
declare const request: Request;
declare const state: import('genkitx-agents').ScopedState<{ step: string }, { orders: number }>;
declare const store: import('genkitx-agents').SnapshotStore;
declare const support: import('genkitx-agents').Agent;
declare function retryLater(): void;
`;

/** The compiler reads all of Genkit's types, on a machine that may have other work. */
const COMPILER_TIMEOUT_MS = 300_000;

interface Example {
  where: string;
  /** The name of a file that only the compiler sees. */
  file: string;
  code: string;
}

function examplesOf(path: string): Example[] {
  const text = readFileSync(join(root, path), 'utf8');
  return [...text.matchAll(/^ *\* @example\n((?: *\*(?! @|\/).*\n)+)/gm)].map((match) => {
    const line = text.slice(0, match.index).split('\n').length;
    const code = match[1]!.replaceAll(/^ *\* ?/gm, '');
    return { where: `${path}:${line}`, file: join(root, `${path}.${line}.example.ts`), code: `${code}export {};\n` };
  });
}

function sourcesBelow(folder: string): string[] {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts')).map((name) => join(folder, name));
}

const examples = folders.flatMap(sourcesBelow).flatMap(examplesOf);
const given = join(root, 'given.example.ts');
let faults: Map<string, string[]>;

/** What the compiler says of each example, by its file. */
function check(): Map<string, string[]> {
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent({ ...config, files: [], include: [] }, ts.sys, root);
  const texts = new Map([[given, GIVEN], ...examples.map(({ file, code }): [string, string] => [file, code])]);
  const disk = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...disk,
    fileExists: (path) => texts.has(path) || disk.fileExists(path),
    readFile: (path) => texts.get(path) ?? disk.readFile(path),
    getSourceFile: (path, version, ...rest) => {
      const text = texts.get(path);
      return text === undefined ? disk.getSourceFile(path, version, ...rest) : ts.createSourceFile(path, text, version);
    },
  };
  // Without modules of its own the file's names are known everywhere.
  const program = ts.createProgram(
    [...texts.keys()],
    { ...options, moduleDetection: ts.ModuleDetectionKind.Auto },
    host,
  );
  return new Map(
    [...texts.keys()].map((file) => {
      const source = program.getSourceFile(file);
      const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
      return [file, found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))];
    }),
  );
}

describe('the examples of the docstrings', () => {
  beforeAll(() => {
    faults = check();
  }, COMPILER_TIMEOUT_MS);

  it('are there, and take nothing for granted that is not', () => {
    expect(examples.length).toBeGreaterThan(15);
    expect(faults.get(given)).toEqual([]);
  });

  it.each(examples)('$where is right', ({ file }) => {
    expect(faults.get(file), relative(root, file)).toEqual([]);
  });
});
