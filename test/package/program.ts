/** The package's sources and the examples in their docstrings (`@example`), each a module of its own, as one program of the compiler. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const folders = ['src', 'stores', 'plugins', 'test/conformance', 'test/support'];

/** The import path of each of the package's functions and classes; of those of one name the first path's is meant. */
function exportedNames(): Map<string, string> {
  const paths = new Map<string, string>();
  for (const entry of [
    'index',
    'client',
    'context',
    'inspector',
    'memory',
    'privacy',
    'server',
    'google-cloud',
    'firebase',
    'testing',
  ]) {
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
declare const records: import('genkitx-agents').RecordStore;
declare const request: Request;
declare const state: import('genkitx-agents').ScopedState<{ step: string }, { orders: number }>;
declare const store: import('genkitx-agents').SnapshotStore;
declare const support: import('genkitx-agents').Agent;
declare function retryLater(): void;
`;

export interface Example {
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

export const examples = folders.flatMap(sourcesBelow).flatMap(examplesOf);
export const given = join(root, 'given.example.ts');

export const entryFiles: readonly string[] = readdirSync(join(root, 'entries'))
  .toSorted()
  .map((name) => join(root, 'entries', name));

/** Reads all of Genkit's types: it takes a while. */
export function compile(): ts.Program {
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
  return ts.createProgram(
    [...entryFiles, ...texts.keys()],
    {
      ...options,
      // Without modules of its own the names of `given` are known everywhere.
      moduleDetection: ts.ModuleDetectionKind.Auto,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      removeComments: true,
    },
    host,
  );
}

/** What the compiler says of a file. */
export function faultsOf(program: ts.Program, file: string): string[] {
  const source = program.getSourceFile(file);
  const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}
