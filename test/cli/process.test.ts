/** The built command in its own process: behaviour that only a process shows. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileSessionStore } from 'genkitx-agents';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { buildPackage, COMMAND, DIST, runBuilt } from './support/built-cli.ts';

beforeAll(buildPackage);

describe('the command', () => {
  it('reads the store that a TypeScript module exports, and ends although the module keeps a timer', async () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, 'app.mts'),
      `import { InMemorySessionStore } from ${JSON.stringify(join(DIST, 'index.mjs'))};
       setInterval(() => {}, 1000);
       const saved: string[] = ['kept'];
       export const store = new InMemorySessionStore();
       for (const sessionId of saved) await store.saveSnapshot('k1', () => ({ sessionId, createdAt: '2026-01-02T03:04:05Z', status: 'completed' as const }));`,
    );
    // In the checkout, where tsx is installed.
    const { out } = await runBuilt(['sessions', 'list', '--json', '--store', `${join(folder, 'app.mts')}#store`]);
    expect(JSON.parse(out)).toMatchObject({ sessionId: 'kept', leafId: 'k1' });
  });

  it('prints its version', async () => {
    const { version } = JSON.parse(readFileSync(join(DIST, '../package.json'), 'utf8')) as { version: string };
    expect((await runBuilt(['--version'])).out).toBe(`${version}\n`);
  });

  it('ends without an error when its reader closes the pipe', async () => {
    const folder = temporaryFolder();
    const store = new FileSessionStore(folder, { durability: 'fast' });
    const text = 'x'.repeat(1_000_000);
    const createdAt = new Date().toISOString();
    await store.saveSnapshot('s1', () => ({
      sessionId: 's',
      createdAt,
      status: 'completed',
      state: { custom: { text } },
    }));
    await store.close();
    const show = [COMMAND, 'sessions', 'show', 's', '--full', '--store', `file:${folder}`];
    const script = '"$0" "$@" | head -c 9';
    const piped = spawnSync('sh', ['-c', script, process.execPath, ...show], { encoding: 'utf8' });
    expect(piped).toMatchObject({ status: 0, stderr: '', stdout: 'session s' });
  });

  it.skipIf(!existsSync('/dev/full'))('says that its output could not be written, and ends with 1', async () => {
    const folder = temporaryFolder();
    await new FileSessionStore(folder, { durability: 'fast' }).close();
    for (const command of ['list', 'export']) {
      const script = '"$0" "$@" > /dev/full';
      const args = ['-c', script, process.execPath, COMMAND, 'sessions', command, '--store', `file:${folder}`];
      const { status, stderr } = spawnSync('sh', args, { encoding: 'utf8' });
      expect(status, command).toBe(1);
      expect(stderr, command).toContain("The output can't be written: ENOSPC");
    }
  });

  it.each([
    ['Ctrl-C', '\u0003', 130],
    ['the end of the input', '\u0004', 0],
  ])('removes nothing when its question is answered by %s', async (_, key, code) => {
    const folder = temporaryFolder();
    const store = new FileSessionStore(folder, { durability: 'fast' });
    await store.saveSnapshot('s1', () => ({ sessionId: 's', createdAt: '2026-01-02T03:04:05Z', status: 'completed' }));
    // Makes the command treat its pipes as a terminal.
    const terminal = 'data:text/javascript,process.stdin.isTTY = process.stderr.isTTY = true';
    const args = ['--import', terminal, COMMAND, 'sessions', 'delete', 's', '--store', `file:${folder}`];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (text.includes('[y/N]')) child.stdin.write(key);
    });
    expect(await once(child, 'close')).toEqual([code, null]);
    expect(said).toContain('1 session, 1 snapshot will be removed');
    expect(await store.getSnapshot({ snapshotId: 's1' })).toBeDefined();
    await store.close();
  });

  it.each([
    ['Ctrl-C', 'SIGINT', 130],
    ['SIGTERM', 'SIGTERM', 143],
  ] as const)(
    'closes its store at %s and ends with the exit code of the signal, despite the listener of Genkit',
    async (_, signal, code) => {
      const folder = temporaryFolder();
      writeFileSync(
        join(folder, 'app.mjs'),
        `import { genkit } from ${JSON.stringify(join(DIST, 'index.mjs'))};
       setInterval(() => {}, 1000);
       export const store = {
         capabilities: { list: true },
         getSnapshot() {},
         saveSnapshot() {},
         listSessions: () => { console.error('listing'); return new Promise(() => {}); },
         close: async () => {
           await new Promise((resolve) => setImmediate(resolve));
           console.error('closed');
         },
       };`,
      );
      const args = [COMMAND, 'sessions', 'list', '--store', `${join(folder, 'app.mjs')}#store`];
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
      let said = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (text.includes('listing')) child.kill(signal);
      });
      expect(await once(child, 'close')).toEqual([code, null]);
      expect(said).toBe('listing\nclosed\n');
    },
  );
});
