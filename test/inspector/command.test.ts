/** `genkitx-agents inspect`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FileSessionStore } from 'genkitx-agents';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../cli/support/run-cli.ts';
import { Visitor } from './support/open.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-inspect-test-'));

beforeAll(async () => {
  const store = new FileSessionStore(folder, { durability: 'fast' });
  await store.saveSnapshot('a', () => ({ sessionId: 's', createdAt: new Date().toISOString(), status: 'completed' }));
  await store.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

describe('inspect', () => {
  it('shows a file store on the loopback interface, read-only where asked, and ends at SIGTERM with 0', async () => {
    const args = ['--import', 'tsx', 'cli/main.ts', 'inspect', `file:${folder}`, '--port', '0', '--read-only'];
    // In production too: who types the command wants the page.
    const env = { ...process.env, NODE_ENV: 'production' };
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    try {
      const [printed] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
      expect(printed).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{43}\n$/);
      const visitor = await Visitor.open(printed.trim());
      const start = await visitor.get('start', {});
      expect(start.items).toMatchObject([{ sessionId: 's', leafId: 'a' }]);
      expect(start.info).toMatchObject({ store: `file:${folder}`, readOnly: true, memory: 'none', agents: [] });
      // A page that listens does not keep it alive.
      const live = visitor.raw('api/live').catch(() => {});
      await visitor.get('sessions', {});
      child.kill('SIGTERM');
      expect(await exited).toEqual([0, null]);
      await live;
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('says what to do when the port is in use, without a store, or with what is no export', async () => {
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
    expect(noExport).toMatchObject({ code: 2, err: expect.stringContaining('no export of a module') });
  });
});
