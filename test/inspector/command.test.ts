/** `genkitx-agents inspect`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { buildPackage, COMMAND, DIST } from '../cli/support/built-cli.ts';
import { runCli } from '../cli/support/run-cli.ts';
import { Visitor } from './support/open.ts';

let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-inspect-test-'));
  buildPackage();
  const store = new FileSessionStore(folder, { durability: 'fast' });
  await store.saveSnapshot('a', () => ({ sessionId: 's', createdAt: new Date().toISOString(), status: 'completed' }));
  await store.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

/** The command in its own process, with NODE_ENV=production: the command shows the page anyway. */
async function inspecting(...args: string[]) {
  const command = [COMMAND, 'inspect', ...args, '--port', '0'];
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(process.execPath, command, { cwd: dirname(DIST), env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  const [printed] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const address = printed.trim();
  const end = () => {
    child.kill('SIGTERM');
    return exited;
  };
  return { visitor: await Visitor.open(address), address, end };
}

describe('inspect', () => {
  it('shows a file store on the loopback interface, read-only with --read-only, and ends at SIGTERM', async () => {
    const { visitor, address, end } = await inspecting(`file:${folder}`, '--read-only');
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{43}$/);
    const start = await visitor.get('start', {});
    expect(start.items).toMatchObject([{ sessionId: 's', leafId: 'a' }]);
    expect(start.info).toMatchObject({ store: `file:${folder}`, readOnly: true, agents: [] });
    // An open event stream does not keep it alive.
    const live = visitor.raw('api/live').catch(() => {});
    await visitor.get('sessions', {});
    expect(await end()).toEqual([143, null]);
    await live;
  });

  it('takes agents and memories of a module', async () => {
    writeFileSync(
      join(folder, 'app.mts'),
      `import { defineCustomAgent, genkit, InMemorySessionStore } from ${JSON.stringify(join(DIST, 'index.mjs'))};
       import { InMemoryMemoryStore } from ${JSON.stringify(join(DIST, 'memory.mjs'))};
       export const store = new InMemorySessionStore();
       export const memory = new InMemoryMemoryStore();
       export const ai = genkit();
       export const echo = defineCustomAgent(ai, { name: 'echo', store }, async (session) => {
         await session.run(async () => {});
         return {};
       });`,
    );
    const app = join(folder, 'app.mts');
    for (const agents of ['ai', 'echo']) {
      const { visitor, end } = await inspecting(
        `${app}#store`,
        '--agents',
        `${app}#${agents}`,
        '--memory',
        `${app}#memory`,
      );
      const { info } = await visitor.get('start', {});
      expect(info).toMatchObject({ agents: ['echo'], memoryStore: 'InMemoryMemoryStore', readOnly: false });
      const scope = { scope: 'app', appName: 'shop' } as const;
      expect((await visitor.get('memory/search', { scope, query: 'tea' })).memories).toEqual([]);
      const { snapshotId } = await visitor.post('fork', { agent: 'echo', text: 'hello' });
      expect((await visitor.get('snapshot', { snapshotId: snapshotId! })).messages).toHaveLength(1);
      expect(await end()).toEqual([143, null]);
    }
  });

  it('says what to do when the port is in use, without a store, or with a value that is not an export', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const ran = await runCli(['inspect', `file:${folder}`, '--port', String(port)]);
    expect(ran).toMatchObject({
      code: 1,
      err: expect.stringContaining(`Port ${port} is in use. Choose another: --port`),
    });
    taken.close();
    expect(await runCli(['inspect'])).toMatchObject({ code: 2, err: expect.stringContaining('Name the store') });
    expect(await runCli(['inspect', 'file:nowhere'])).toMatchObject({ code: 2 });
    expect(await runCli(['inspect', `file:${folder}`, '--port', 'x'])).toMatchObject({ code: 2 });
    const noExport = await runCli(['inspect', `file:${folder}`, '--agents', 'file:x']);
    expect(noExport).toMatchObject({ code: 2, err: expect.stringContaining('--agents takes an export of a module') });
    // If the command starts by mistake, it is aborted as soon as it prints its address.
    const refused = (...args: string[]) => {
      const started = new AbortController();
      return runCli(['inspect', `file:${folder}`, ...args], { signal: started.signal, onText: () => started.abort() });
    };
    const two = await refused('--store', 'file:other');
    expect(two).toMatchObject({ code: 2, err: expect.stringContaining('Name one store') });
    writeFileSync(
      join(folder, 'other.mjs'),
      'export const number = 5; export const object = {}; export const tool = { run() {}, __action: { name: "tool" } };',
    );
    for (const name of ['number', 'object', 'tool']) {
      const agents = `${join(folder, 'other.mjs')}#${name}`;
      const ran = await refused('--port', '0', '--agents', agents);
      const err = expect.stringContaining(`'${agents}' is neither a Genkit instance nor an agent`);
      expect(ran).toMatchObject({ code: 2, err });
    }
  });
});
