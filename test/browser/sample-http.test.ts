import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { remoteAgent, type MessageData } from 'genkitx-agents/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SessionList, SnapshotList } from '../../samples/support/server/api-types.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { runSample, startSample, startWithNpm, withFolder, type Sample } from './sample-process.ts';
import { OTHER_WAY, SCRIPT, type Said } from './script.ts';

const SESSION = 'a customer/1';
const NO_KEYS = { GEMINI_API_KEY: '', GOOGLE_API_KEY: '' };
const run = promisify(execFile);

let sample: Sample | undefined;

afterEach(async () => {
  await sample?.end('SIGKILL');
  sample = undefined;
});

async function start(env: Record<string, string>): Promise<Sample> {
  sample = await startSample(env);
  return sample;
}

function agentOf({ url }: Sample) {
  return remoteAgent<SupportState>({ url: `${url}/api/support` });
}

async function get<T>(url: string): Promise<T> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

async function listSnapshots({ url }: Sample): Promise<SnapshotList['items']> {
  const { items } = await get<SnapshotList>(`${url}/api/snapshots?${new URLSearchParams({ sessionId: SESSION })}`);
  return items;
}

describe('a conversation over HTTP', () => {
  it('goes on after the process is killed in the middle of a turn, and keeps both branches', async () => {
    await withFolder(async (folder) => {
      let server = await start({ DATA_DIR: folder });
      for (const turn of SCRIPT.slice(0, 10)) await say(server, turn, { sessionId: SESSION });
      const before = await listSnapshots(server);
      // One of the ten turns waited for an answer, in a snapshot of its own.
      expect(before).toHaveLength(11);

      await cutOff(server, SCRIPT[10]![0]);
      server = await start({ DATA_DIR: folder });

      // What was acknowledged is as it was; the turn that was cut off is there whole or not at all.
      const after = await listSnapshots(server);
      expect(after.slice(0, 11)).toEqual(before);
      for (const turn of SCRIPT.slice(after.at(-1)?.preview.turn)) await say(server, turn, { sessionId: SESSION });
      const way = await listSnapshots(server);
      expect(way.at(-1)?.preview.turn).toBe(20);

      const snapshotId = await say(server, OTHER_WAY[0]!, {
        snapshotId: way.find(({ preview }) => preview.turn === 17)!.snapshotId,
      });
      const otherLeaf = await say(server, OTHER_WAY[1]!, { snapshotId });
      expect(await server.end('SIGTERM')).toMatchObject({ code: 0 });
      server = await start({ DATA_DIR: folder });

      const one = await agentOf(server).loadChat({ snapshotId: way.at(-1)!.snapshotId });
      expect(asked(one)).toEqual(SCRIPT.map(([said]) => said));
      expect(one.state).toMatchObject({ turns: 20, orderId: '1035', customer: { name: 'Ana Silva' } });
      const two = await agentOf(server).loadChat({ snapshotId: otherLeaf });
      expect(asked(two)).toEqual([...SCRIPT.slice(0, 17), ...OTHER_WAY].map(([said]) => said));
      expect(two.state?.refunds.map(({ orderId }) => orderId)).toEqual(['1035', '1031']);
      expect(two.artifacts.map(({ name }) => name)).toContain('receipt-R-1031.txt');

      const { items } = await get<SessionList>(`${server.url}/api/sessions`);
      expect(items).toMatchObject([
        { sessionId: SESSION, leafId: otherLeaf, leafCount: 2, snapshotCount: 24, title: 'Hello' },
      ]);
    });
  });

  it('streams tool calls, their results and the changing state while the turn runs', async () => {
    await withFolder(async (folder) => {
      const turn = agentOf(await start({ DATA_DIR: folder }))
        .chat()
        .sendStream('Refund 1035, it is late');
      const seen: string[] = [];
      for await (const { raw, custom } of turn.stream) {
        for (const { toolRequest, toolResponse, text } of raw.modelChunk?.content ?? []) {
          if (toolRequest) seen.push(`asks ${toolRequest.name}`);
          if (toolResponse) seen.push(`gets ${toolResponse.name}`);
          if (text && seen.at(-1) !== 'text') seen.push('text');
        }
        if (custom) seen.push(`state ${custom.topic ?? '-'} ${custom.refunds.length}`);
        if (raw.artifact) seen.push(`artifact ${raw.artifact.name}`);
      }
      expect(seen).toEqual([
        'state - 0',
        'asks findOrder',
        'state order 0',
        'gets findOrder',
        'asks requestRefund',
        'state refund 0',
        // Once more, with its question.
        'asks requestRefund',
      ]);
      expect((await turn.response).finishReason).toBe('interrupted');
    });
  });

  it('pays a refund once, whatever branch or conversation asks for it, and remembers it after a restart', async () => {
    await withFolder(async (folder) => {
      let server = await start({ DATA_DIR: folder });
      await say(server, ['Refund 1035, it is late', 'Done'], {});
      await say(server, ['Refund 1035, it is late', 'refunded before'], {});
      await server.end('SIGKILL');
      server = await start({ DATA_DIR: folder });
      await say(server, ['Refund 1035, it is late', 'refunded before'], {});
    });
  });

  it.each(['.', '..', '%', 'a/b?c#d'])('can be about a session with the name %s', async (sessionId) => {
    await withFolder(async (folder) => {
      const server = await start({ DATA_DIR: folder });
      const snapshotId = await say(server, SCRIPT[0]!, { sessionId });
      const query = new URLSearchParams({ sessionId });
      const { items } = await get<SnapshotList>(`${server.url}/api/snapshots?${query}`);
      expect(items).toMatchObject([{ snapshotId, preview: { asked: SCRIPT[0]![0] } }]);
      const deleted = await fetch(`${server.url}/api/sessions?${query}`, { method: 'DELETE' });
      expect(await deleted.json()).toMatchObject({ snapshots: 1 });
    });
  });

  it('deletes a conversation when asked to', async () => {
    await withFolder(async (folder) => {
      const server = await start({ DATA_DIR: folder });
      await say(server, SCRIPT[0]!, { sessionId: SESSION });
      const deleted = await fetch(`${server.url}/api/sessions?${new URLSearchParams({ sessionId: SESSION })}`, {
        method: 'DELETE',
      });
      expect(await deleted.json()).toMatchObject({ snapshots: 1 });
      expect(await listSnapshots(server)).toEqual([]);
    });
  });
});

describe('the server', () => {
  let folder: string;
  let server: Sample;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'support-sample-'));
    server = await startSample({ DATA_DIR: folder });
  });

  afterAll(async () => {
    await server.end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  });

  it('answers the curl that it prints', async (context) => {
    const curl = await run('curl', ['--version']).catch(() => undefined);
    if (!curl) context.skip('There is no curl here.');
    const { stdout } = await run('sh', ['-c', /curl .*/.exec(server.stdout)?.[0] ?? '']);
    expect(JSON.parse(stdout)).toMatchObject({ result: { finishReason: 'stop' } });
    expect(stdout).toContain('Order **1042** for Ana Silva');
  });

  it('says plainly that the offline model is one', () => {
    expect(server.stdout).toMatch(/Model +offline model \(It is a set of rules, not a language model/);
  });

  it('refuses pages of other origins, and names that are not this machine', async () => {
    const { url, port } = server;
    const status = async (headers: Record<string, string>) => (await rawGet(`${url}/api/sessions`, headers)).status;
    expect(await status({})).toBe(200);
    expect(await status({ host: `localhost:${port}`, origin: `http://localhost:${port}` })).toBe(200);
    expect(await status({ host: `[::1]:${port}` })).toBe(200);
    expect(await status({ host: 'evil.example' })).toBe(403);
    expect(await status({ origin: 'http://evil.example' })).toBe(403);
    expect(await status({ origin: 'null' })).toBe(403);
  });

  it('allows the page to load nothing from elsewhere', async () => {
    const policy = (await fetch(`${server.url}/`)).headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
  });

  it('answers what it does not know with JSON', async () => {
    const missing = await fetch(`${server.url}/api/nothing`);
    expect(missing.status).toBe(404);
    expect(await missing.json()).toEqual({ status: 'NOT_FOUND', message: 'There is nothing at GET /api/nothing.' });
  });
});

describe('the process', () => {
  it('warns that there is no log-in when others can reach it', async () => {
    await withFolder(async (folder) => {
      const { stdout } = await start({ DATA_DIR: folder, HOST: '0.0.0.0' });
      expect(stdout).toContain('WARNING: HOST is 0.0.0.0 and there is no log-in');
    });
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('ends cleanly on %s, with a page connected', async (signal) => {
    await withFolder(async (folder) => {
      const server = await start({ DATA_DIR: folder });
      const events = await fetch(`${server.url}/api/events`);
      expect(await server.end(signal)).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(await events.text()).toContain('"kind":"offline"');
    });
  });
});

const LOOK_UP: Said = ['Where is order 1042?', 'shipped'];

/** Begins a turn of several steps, does `interrupt` when its first chunk is there, and wants the whole reply. */
async function replyDespite(server: Sample, interrupt: () => unknown): Promise<void> {
  const turn = agentOf(server).chat({ sessionId: SESSION }).sendStream(LOOK_UP[0]);
  let chunks = 0;
  for await (const _ of turn.stream) if (chunks++ === 0) interrupt();
  expect((await turn.response).text).toContain(LOOK_UP[1]);
}

describe('a reply that is being streamed', () => {
  // Some shells let the server hear Ctrl-C from the terminal and from npm.
  it.each<NodeJS.Signals[]>([['SIGTERM'], ['SIGINT', 'SIGINT']])(
    'arrives whole when the server is ended by %s, and is kept',
    async (...signals) => {
      await withFolder(async (folder) => {
        const server = await start({ DATA_DIR: folder });
        await replyDespite(server, () => signals.forEach((signal) => void server.end(signal)));
        expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
        expect(await listSnapshots(await start({ DATA_DIR: folder }))).toMatchObject([{ status: 'completed' }]);
      });
    },
  );
});

// Windows has neither signals nor groups of processes.
describe.skipIf(process.platform === 'win32')('npm start', () => {
  it('leaves no server behind when npm gets SIGTERM', async () => {
    await withFolder(async (folder) => {
      const server = await startWithNpm({ DATA_DIR: folder });
      try {
        // What it started has ended too: the output is closed.
        expect(await server.end('SIGTERM')).toMatchObject({ stderr: '' });
        const next = createServer().listen(server.port, '127.0.0.1');
        await once(next, 'listening');
        next.close();
      } finally {
        server.killAll();
      }
    });
  });
});

describe('a start that can not work', () => {
  const cases: [what: string, env: Record<string, string>, sentence: string][] = [
    ['a port that is no number', { PORT: 'http' }, "PORT must be a whole number from 0 to 65535, not 'http'."],
    ['a port out of range', { PORT: '70000' }, "PORT must be a whole number from 0 to 65535, not '70000'."],
    [
      'a pace that is no number',
      { OFFLINE_PACE_MS: 'slow' },
      "OFFLINE_PACE_MS must be a whole number of milliseconds, not 'slow'.",
    ],
    ['an unknown model', { MODEL: 'gpt' }, "MODEL must be one of auto, gemini, ollama, offline, not 'gpt'."],
    ['Gemini without a key', { MODEL: 'gemini', ...NO_KEYS }, 'MODEL is gemini, but GEMINI_API_KEY is not set.'],
    ['a host that is not here', { HOST: '192.0.2.1' }, "HOST '192.0.2.1' is not an address of this machine."],
  ];

  it.each(cases)('%s gets one sentence', async (_what, env, sentence) => {
    await withFolder(async (folder) => {
      expect(await runSample({ PORT: '0', DATA_DIR: folder, ...env })).toMatchObject(failure(sentence));
    });
  });

  it('an argument gets one sentence', async () => {
    const sentence = "'--prot' is not understood; 'npm start -- --help' lists the settings.";
    expect(await runSample({}, ['--prot'])).toMatchObject(failure(sentence));
  });

  // Node's own recursive mkdir never comes back from there.
  it.runIf(process.platform === 'linux')(
    'a data folder below one that takes no folders gets one sentence',
    async () => {
      const sentence =
        "The folder '/proc/nope/sessions' can't be used: no folder can be made there; name another with DATA_DIR.";
      expect(await runSample({ PORT: '0', DATA_DIR: '/proc/nope' })).toMatchObject(failure(sentence));
    },
  );

  it('a port in use gets one sentence', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await withFolder(async (folder) => {
      const sentence = `Port ${port} on 127.0.0.1 is in use; stop what runs there, or name another with PORT.`;
      expect(await runSample({ PORT: String(port), DATA_DIR: folder })).toMatchObject(failure(sentence));
    });
    other.close();
  });

  it('a data folder that is a file, or whose own folder is one, gets one sentence', async () => {
    await withFolder(async (folder) => {
      await writeFile(join(folder, 'sessions'), '');
      const problems: [dataDir: string, why: string][] = [
        [folder, 'there is a file of that name'],
        [join(folder, 'sessions'), 'a part of the path is a file'],
      ];
      for (const [dataDir, why] of problems) {
        const sentence = `The folder '${join(dataDir, 'sessions')}' can't be used: ${why}; name another with DATA_DIR.`;
        expect(await runSample({ PORT: '0', DATA_DIR: dataDir })).toMatchObject(failure(sentence));
      }
    });
  });

  it('a data folder behind a broken link, or with too long a name, gets one sentence', async () => {
    await withFolder(async (folder) => {
      await symlink('nowhere', join(folder, 'dangling'));
      await symlink('circle', join(folder, 'circle'));
      const problems: [dataDir: string, why: string][] = [
        ['dangling', 'a link in the path leads nowhere'],
        ['circle', 'the links in the path lead in a circle'],
        ['x'.repeat(300), 'the name is too long'],
      ];
      for (const [name, why] of problems) {
        const dataDir = join(folder, name);
        const sentence = `The folder '${join(dataDir, 'sessions')}' can't be used: ${why}; name another with DATA_DIR.`;
        expect(await runSample({ PORT: '0', DATA_DIR: dataDir })).toMatchObject(failure(sentence));
      }
    });
  });

  it('orders that can not be read get one sentence, and stay as they are', async () => {
    await withFolder(async (folder) => {
      const file = join(folder, 'orders.json');
      await writeFile(file, '{"orders": [');
      const sentence = `'${file}' holds no list of orders; delete it to start again with the orders of the sample.`;
      expect(await runSample({ PORT: '0', DATA_DIR: folder })).toMatchObject(failure(sentence));
      expect(await readFile(file, 'utf8')).toBe('{"orders": [');
    });
  });
});

function failure(sentence: string) {
  return { code: 1, stdout: '', stderr: `${sentence}\n` };
}

/** Begins a turn and kills the server while it is being answered. */
async function cutOff(server: Sample, text: string): Promise<void> {
  const turn = agentOf(server).chat({ sessionId: SESSION }).sendStream(text);
  turn.response.catch(() => {});
  for await (const { custom } of turn.stream) if (custom) break;
  await server.end('SIGKILL');
}

/** Says something from a point of a conversation, and answers the new snapshot. */
async function say(server: Sample, [said, answered]: Said, init: { sessionId?: string; snapshotId?: string }) {
  const chat = agentOf(server).chat(init);
  let reply = await chat.send(said);
  if (reply.interrupts.length > 0) {
    reply = await chat.resume({ restart: reply.interrupts.map((question) => question.restart()) });
  }
  expect(reply.text).toContain(answered);
  return reply.snapshotId!;
}

/** As `fetch`, which does not let a caller choose `host` and `origin`. */
async function rawGet(url: string, headers: Record<string, string>): Promise<{ status?: number }> {
  const [response] = (await once(httpGet(url, { headers, agent: false }), 'response')) as [IncomingMessage];
  response.resume();
  return { status: response.statusCode };
}

function asked({ messages }: { messages: readonly MessageData[] }): string[] {
  return messages.filter(({ role }) => role === 'user').map(({ content }) => content[0]?.text ?? '');
}
