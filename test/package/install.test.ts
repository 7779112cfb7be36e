/** The packed package as applications use it: each import path loads what the README says it needs and nothing else, in both formats. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import ts from 'typescript';
import { compile } from '../support/compile.ts';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { brokenLinks } from '../docs/links.ts';
import { evaluate, neededPackages, Packed, run } from './packed.ts';

/** What a user would write; `IMPORT` is filled in per module format. Prints one line of JSON. */
const PROGRAM = `
async function main() {
  const ai = genkit({ plugins: [agentRuntime({ store: new FileSessionStore(process.argv[2]) })] });
  const model = ai.defineModel({ name: 'echo' }, async (request) => ({
    message: { role: 'model', content: [{ text: 'You said: ' + request.messages.at(-1).content[0].text }] },
    finishReason: 'stop',
  }));
  const agent = defineAgent(ai, { name: 'echoAgent', model });
  const chat = agent.chat({ sessionId: 's1' });
  const reply = await chat.send('hello');
  const again = await agent.loadChat({ sessionId: 's1' });
  const store = new InMemorySessionStore();
  let refused;
  try { await store.getSnapshot({ snapshotId: '' }); } catch (error) { refused = error; }
  console.log(JSON.stringify({
    text: reply.text,
    remembered: again.messages.length,
    isGenkitError: refused instanceof GenkitError,
    status: refused.status,
    stack: store.constructor.name + ' ' + refused.stack,
    conflictKnown: OtherCopy.SessionConflictError.isInstance(
      new SessionConflictError({ sessionId: 's', expectedLeafId: null, actualLeafId: 'x' })),
    handler: typeof agentHandler, remote: typeof remoteAgent, kit: typeof sessionStoreConformance,
  }));
}
main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
`;

const ESM = `
import { createRequire } from 'node:module';
import { GenkitError } from 'genkit';
import { agentRuntime, defineAgent, FileSessionStore, genkit, InMemorySessionStore, SessionConflictError } from 'genkitx-agents';
import { agentHandler } from 'genkitx-agents/server';
import { remoteAgent } from 'genkitx-agents/client';
import { sessionStoreConformance } from 'genkitx-agents/testing';
const OtherCopy = createRequire(import.meta.url)('genkitx-agents');
${PROGRAM}`;

const CJS = `
const { GenkitError } = require('genkit');
const { agentRuntime, defineAgent, FileSessionStore, genkit, InMemorySessionStore, SessionConflictError } = require('genkitx-agents');
const { agentHandler } = require('genkitx-agents/server');
const { remoteAgent } = require('genkitx-agents/client');
const { sessionStoreConformance } = require('genkitx-agents/testing');
let OtherCopy;
const PROGRAM_READY = import('genkitx-agents').then((copy) => { OtherCopy = copy; });
${PROGRAM.replace('async function main() {', 'async function main() {\n  await PROGRAM_READY;')}`;

const TYPES = `
import { genkit, z } from 'genkit';
import { agentRuntime, defineAgent, InMemorySessionStore, type SnapshotStore } from 'genkitx-agents';
import { agentHandler, agentRouter } from 'genkitx-agents/server';
import { remoteAgent } from 'genkitx-agents/client';
import { sessionStoreConformance } from 'genkitx-agents/testing';
const ai = genkit({ plugins: [agentRuntime({ store: new InMemorySessionStore() })] });
export const agent = defineAgent(ai, { name: 'typed', stateSchema: z.object({ step: z.number() }) });
export const step: Promise<number | undefined> = agent.chat().send('x').then((reply) => reply.state?.step);
export const store: SnapshotStore<{ step: number }> = new InMemorySessionStore<{ step: number }>();
export const handler: (request: Request) => Promise<Response> = agentHandler([agent], { anonymous: true });
export const others = [agentRouter, remoteAgent, sessionStoreConformance];
`;

const CLIENT = `
import { AgentError, remoteAgent, runFlow, streamFlow, type AgentChat, type Part } from 'genkitx-agents/client';
interface State { step: number }
export const agent = remoteAgent<State>({ url: 'http://127.0.0.1:9/api/support' });
export const chat: AgentChat<State> = agent.chat();
export const step: Promise<number | undefined> = chat.send('hello').then((reply) => reply.state?.step);
export const texts = (parts: Part[]): string[] => parts.flatMap(({ text }) => text ?? []);
export const flows = [runFlow, streamFlow];
// A type that is not found is any, and takes everything.
// @ts-expect-error a number is not a message
void chat.send(42);
// @ts-expect-error a number is not a part
texts([42]);
// @ts-expect-error a text is not a step
void chat.send('hello').then((reply) => { const step: string | undefined = reply.state?.step; return step; });
step.catch((error) => document.body.append(AgentError.isInstance(error) ? error.status : 'untyped'));
`;

const COMPILER_TIMEOUT_MS = 300_000;

/** What the compiler says of the same program as a module of each format, and as bundlers resolve it. */
function typeCheck(home: string, code: string, options: object): string {
  const asNode = { files: ['main.mts', 'main.cts'], module: 'node16' };
  const asBundler = { files: ['main.ts'], module: 'esnext', moduleResolution: 'bundler' };
  return [asNode, asBundler]
    .map(({ files, ...resolution }) => {
      for (const file of files) writeFileSync(join(home, file), code);
      const compilerOptions = { strict: true, noEmit: true, target: 'es2022', ...resolution, ...options };
      writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
      return compile(home);
    })
    .join('');
}

type Conditions = Record<'import' | 'require', { types: string; default: string }>;

const needed = neededPackages();
const entries = [...needed].map(([path, packages]) => ({ path, packages }));
const allPackages = [...new Set([...needed.values()].flat())];
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

describe('the packed tarball', () => {
  const works = {
    text: 'You said: hello',
    remembered: 2,
    isGenkitError: true,
    status: 'INVALID_ARGUMENT',
    // Names of functions and classes.
    stack: expect.stringMatching(
      /^InMemorySessionStore (?:.*\n)*? +at (?:Object\.)?assertId \(.*\n(?:.*\n)*? +at [\w$]+\.getSnapshot \(/,
    ),
    conflictKnown: true,
    handler: 'function',
    remote: 'function',
    kit: 'function',
  };

  it.each([
    ['module', ESM],
    ['commonjs', CJS],
  ] as const)('runs an agent in a project of type %s', (type, program) => {
    const home = packed.project(type, allPackages, type);
    writeFileSync(join(home, 'main.js'), program);
    const printed = run(home, 'node', ['main.js', join(home, 'data')]);
    expect(JSON.parse(printed.trim().split('\n').at(-1)!)).toEqual(works);
  });

  it(
    'has types that a strict project compiles against, in both formats and as bundlers resolve',
    () => {
      const home = packed.project('types', [...allPackages, '@types/node']);
      expect(typeCheck(home, TYPES, { skipLibCheck: true, types: ['node'] })).toBe('');
    },
    COMPILER_TIMEOUT_MS,
  );

  it('holds what users need and nothing else', () => {
    const files = packed.contents.map(({ path }) => path);
    const kinds = new Set(files.map((file) => (file.includes('/') ? file.replace(/[^/]*(\.\w+)$/, '*$1') : file)));
    expect([...kinds].toSorted().join(' ')).toBe(
      'CHANGELOG.md LICENSE README.md bench/results/*.svg dist/*.cjs dist/*.cts dist/*.mjs dist/*.mts ' +
        'dist/inspector/*.br dist/inspector/assets/*.br ' +
        'docs/*.md docs/*.rules docs/images/*.webp firestore.indexes.json firestore.rules package.json',
    );
  });

  it('is smaller than 3 MB', () => {
    const largest = packed.contents.slice(0, 15).map(({ path, size }) => `${size} ${path}`);
    expect(packed.bytes, `the largest files:\n${largest.join('\n')}\n`).toBeLessThan(3_000_000);
  });

  it('has lines that can be shown', () => {
    const code = packed.contents.filter(({ path }) => /^dist\/[^/]*\.[mc]js$/.test(path));
    const lines = code.flatMap(({ path }) => readFileSync(join(unpacked, path), 'utf8').split('\n'));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(1000);
  });

  it('holds all that its pages link to', () => {
    const pages = packed.contents.map(({ path }) => path).filter((path) => path.endsWith('.md'));
    expect(pages).toContain('docs/migrating.md');
    expect(pages.flatMap((page) => brokenLinks(unpacked, page).map((link) => `${page}: ${link}`))).toEqual([]);
  });

  it('has a row in the README for each import path', () => {
    const paths = Object.keys(exported).filter((path) => !path.endsWith('.json'));
    expect([...needed.keys()].toSorted()).toEqual(paths.map((path) => path.replace('.', 'genkitx-agents')).toSorted());
  });

  it.each(entries)('names in $path what the README says, in code and types of both formats', ({ path, packages }) => {
    for (const { types, default: code } of Object.values(exported[path.replace('genkitx-agents', '.')]!)) {
      const all = [code, types].flatMap((file) => [...packagesOf(join(unpacked, file))]);
      expect([...new Set(all)].toSorted()).toEqual(packages.toSorted());
    }
  });
});

describe('a project with nothing but what the README names', () => {
  it.each(entries)('loads $path', async ({ path, packages }) => {
    const home = packed.project(path.replace('/', '-'), packages);
    const code = `
      import { createRequire } from 'node:module';
      import * as all from '${path}';
      const copies = [all, createRequire(import.meta.url)('${path}')];
      console.log(JSON.stringify(copies.map((copy) => Object.keys(copy).toSorted())));`;
    const [names, namesOfCopy] = JSON.parse(await evaluate(home, 'module', code)) as string[][];
    expect(names).not.toEqual([]);
    expect(namesOfCopy).toEqual(names);
  });

  it('is told the name of the package that is missing', async () => {
    const home = packed.project('lacking', []);
    const missing = /Cannot find (?:package|module) '@?genkit/;
    await expect(evaluate(home, 'module', `import 'genkitx-agents';`)).rejects.toThrow(missing);
    await expect(evaluate(home, 'commonjs', `require('genkitx-agents');`)).rejects.toThrow(missing);
  });
});

describe('a client without Genkit', () => {
  let home: string;

  beforeAll(() => {
    home = join(packed.folder, 'client');
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), JSON.stringify({ name: 'client', private: true, type: 'module' }));
    run(home, 'npm', ['install', packed.tarball, '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']);
  });

  it('is all that npm installs', () => {
    const installed = readdirSync(join(home, 'node_modules')).filter((name) => !name.startsWith('.'));
    // The parser of the command line, and 2 kB which the context window and memories load.
    expect(installed).toEqual(['commander', 'genkitx-agents', 'tokenx']);
  });

  it('has types that compile without skipLibCheck, in both formats and as bundlers resolve', () => {
    const lib = ['es2022', 'dom', 'dom.iterable'];
    expect(typeCheck(home, CLIENT, { lib, types: [] })).toBe('');
  });

  it('is bundled for browsers, with nothing left to load', async () => {
    writeFileSync(join(home, 'main.ts'), CLIENT);
    const built = await build({
      root: home,
      configFile: false,
      logLevel: 'silent',
      build: { write: false, minify: false, lib: { entry: join(home, 'main.ts'), formats: ['es'] } },
    });
    const [{ output }] = built as [Rolldown.RolldownOutput];
    expect(output[0].code).toContain('x-genkit-stream-id');
    expect(output[0].imports).toEqual([]);
  });

  it.each([
    ['client', 10_240],
    ['react', 20_480],
  ])('is small for a page: %s in at most %i bytes, compressed', async (entry, limit) => {
    const main = join(home, `${entry}.ts`);
    writeFileSync(main, `export * from 'genkitx-agents/${entry}';`);
    const built = await build({
      root: home,
      configFile: false,
      logLevel: 'silent',
      build: {
        write: false,
        rolldownOptions: { input: main, external: 'react', preserveEntrySignatures: 'strict' },
      },
    });
    const { output } = built as Rolldown.RolldownOutput;
    expect(gzipSync(output[0].code).length).toBeLessThan(limit);
  });
});
