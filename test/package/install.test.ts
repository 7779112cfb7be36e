/** Uses the packed package as applications do: agents in projects of ES modules and of CommonJS, and a client without Genkit. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { brokenLinks } from '../docs/links.ts';
import { neededPackages, Packed, root, run } from './packed.ts';

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
  let refused;
  try { await new InMemorySessionStore().getSnapshot({ snapshotId: '' }); } catch (error) { refused = error; }
  console.log(JSON.stringify({
    text: reply.text,
    remembered: again.messages.length,
    isGenkitError: refused instanceof GenkitError,
    status: refused.status,
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
// @ts-expect-error a number is no message
void chat.send(42);
// @ts-expect-error a number is no part
texts([42]);
// @ts-expect-error a text is no step
void chat.send('hello').then((reply) => { const step: string | undefined = reply.state?.step; return step; });
step.catch((error) => document.body.append(AgentError.isInstance(error) ? error.status : 'untyped'));
`;

/** What type-checks a project: as Node resolves and as bundlers do. */
const RESOLUTIONS = [
  { module: 'node16', type: 'module' },
  { module: 'node16', type: 'commonjs' },
  { module: 'esnext', moduleResolution: 'bundler', type: 'module' },
] as const;

function typeCheck(home: string, code: string, options: object): void {
  writeFileSync(join(home, 'main.ts'), code);
  const compilerOptions = { strict: true, noEmit: true, target: 'es2022', ...options };
  writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
  run(home, process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.json']);
}

let packed: Packed;
beforeAll(() => {
  packed = new Packed();
});
afterAll(() => packed.remove());

describe('the packed tarball', () => {
  const allPackages = [...new Set([...neededPackages().values()].flat())];

  const works = {
    text: 'You said: hello',
    remembered: 2,
    isGenkitError: true,
    status: 'INVALID_ARGUMENT',
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

  it.each(RESOLUTIONS)('has types that a strict project compiles against: $module, $type', ({ type, ...options }) => {
    const home = packed.project(`types-${options.module}-${type}`, [...allPackages, '@types/node'], type);
    typeCheck(home, TYPES, { ...options, skipLibCheck: true, types: ['node'] });
  });

  it('holds what users need and nothing else', () => {
    const files = packed.files();
    const kinds = new Set(files.map((file) => (file.includes('/') ? file.replace(/[^/]*(\.\w+)$/, '*$1') : file)));
    expect([...kinds].toSorted().join(' ')).toBe(
      'CHANGELOG.md CONTRIBUTING.md LICENSE README.md bench/results/*.svg dist/*.cjs dist/*.cts dist/*.mjs dist/*.mts ' +
        'docs/*.md docs/*.rules docs/decisions/*.md docs/images/*.png firestore.indexes.json firestore.rules package.json',
    );
  });

  it('holds all that its pages link to', () => {
    const unpacked = join(packed.project('pages', []), 'node_modules', 'genkitx-agents');
    const pages = packed.files().filter((file) => file.endsWith('.md'));
    expect(pages).toContain('docs/migrating.md');
    expect(pages.flatMap((page) => brokenLinks(unpacked, page).map((link) => `${page}: ${link}`))).toEqual([]);
  });
});

describe('a client without Genkit', () => {
  let home: string;

  beforeAll(() => {
    home = join(packed.folder, 'client');
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), JSON.stringify({ name: 'client', private: true, type: 'module' }));
    run(home, 'npm', ['install', packed.tarball, '--offline', '--no-audit', '--no-fund', '--loglevel=error']);
    writeFileSync(join(home, 'main.ts'), CLIENT);
  });

  it('is all that npm installs', () => {
    const installed = readdirSync(join(home, 'node_modules')).filter((name) => !name.startsWith('.'));
    expect(installed).toEqual(['genkitx-agents']);
  });

  it.each(RESOLUTIONS)('has types that compile without skipLibCheck: $module, $type', ({ type, ...options }) => {
    writeFileSync(join(home, 'package.json'), JSON.stringify({ name: 'client', private: true, type }));
    typeCheck(home, CLIENT, { ...options, lib: ['ES2022', 'DOM', 'DOM.Iterable'], types: [] });
  });

  it('is bundled for browsers, with nothing left to load', async () => {
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
});
