/** Installs the packed tarball into scratch projects, one of ES modules and one of CommonJS, and runs an agent in each. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

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

let folder: string;

function run(cwd: string, command: string, args: string[]): string {
  return execFileSync(command, args, { cwd, encoding: 'utf8', env: { ...process.env, GENKIT_ENV: 'prod' } });
}

/** A project that npm installed the tarball into. The peers come from this checkout, so that no registry is asked. */
function project(name: string, type: string, tarball: string): string {
  const home = join(folder, name);
  mkdirSync(home);
  writeFileSync(join(home, 'package.json'), JSON.stringify({ name, version: '1.0.0', private: true, type }));
  run(home, 'npm', [
    'install',
    tarball,
    '--offline',
    '--legacy-peer-deps',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ]);
  for (const dependency of ['genkit', '@genkit-ai', 'zod', '@types', 'fast-check', 'undici-types']) {
    symlinkSync(join(root, 'node_modules', dependency), join(home, 'node_modules', dependency));
  }
  return home;
}

describe('the packed tarball', () => {
  let tarball: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-install-'));
    run(root, 'node', ['scripts/setup.mjs', '--build']);
    const [packed] = JSON.parse(
      run(root, 'npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]),
    ) as [{ filename: string }];
    tarball = join(folder, packed.filename);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

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

  it('runs an agent in a project of ES modules', () => {
    const home = project('esm', 'module', tarball);
    writeFileSync(join(home, 'main.js'), ESM);
    const printed = run(home, 'node', ['main.js', join(home, 'data')]);
    expect(JSON.parse(printed.trim().split('\n').at(-1)!)).toEqual(works);
  });

  it('runs an agent in a project of CommonJS', () => {
    const home = project('cjs', 'commonjs', tarball);
    writeFileSync(join(home, 'main.js'), CJS);
    const printed = run(home, 'node', ['main.js', join(home, 'data')]);
    expect(JSON.parse(printed.trim().split('\n').at(-1)!)).toEqual(works);
  });

  it.each(['module', 'commonjs'])('has types that a strict project of type %s compiles against', (type) => {
    const home = project(`types-${type}`, type, tarball);
    writeFileSync(join(home, 'main.ts'), TYPES);
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: 'es2022',
      module: 'nodenext',
      skipLibCheck: true,
      types: ['node'],
    };
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
    run(home, process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.json']);
  });

  it('holds what users need and nothing else', () => {
    const files = run(folder, 'tar', ['-tzf', tarball])
      .trim()
      .split('\n')
      .map((file) => file.replace('package/', ''));
    expect(files.filter((file) => !file.startsWith('dist/')).toSorted()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'package.json',
    ]);
    expect(files.filter((file) => file.startsWith('dist/support-page'))).toEqual([]);
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
    };
    expect(Object.keys(manifest.exports)).toContain('./testing');
  });
});
