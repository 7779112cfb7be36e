import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, get as httpGet, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { InMemorySessionStore, SessionService } from 'genkitx-agents';
import { remoteAgent, type MessageData } from 'genkitx-agents/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { SessionList, SnapshotList } from '../../samples/support/server/api-types.ts';
import { customerId } from '../../samples/support/agent/customer.ts';
import { FileOrderBook } from '../../samples/support/agent/file-order-book.ts';
import type { SupportState } from '../../samples/support/agent/state.ts';
import { prepareFolder, readConfig } from '../../samples/support/config.ts';
import { chooseModel, offlineModel } from '../../samples/support/models/choose-model.ts';
import { listen } from '../../samples/support/server/listen.ts';
import type { RunningServer } from '../../samples/support/server/start-server.ts';
import { SetupError } from '../../samples/support/setup-error.ts';
import { serve } from './support/sample-in-process.ts';
import { runSample, startSample, startWithNpm, type Sample } from './support/sample-process.ts';
import { OTHER_WAY, SCRIPT, type Said } from './support/script.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SESSION = 'a customer/1';
const LOOK_UP: Said = ['Where is order 1042?', 'shipped'];
const run = promisify(execFile);

const atEnd: (() => unknown)[] = [];

afterEach(async () => {
  for (const work of atEnd.splice(0).toReversed()) await work();
});

/** The sample as a process of its own. */
async function start(env: Record<string, string>): Promise<Sample> {
  const sample = await startSample(env);
  atEnd.push(() => sample.end('SIGKILL'));
  return sample;
}

/** The same in this process, where no test needs another. */
async function open(folder: string): Promise<RunningServer> {
  const server = await serve(folder, offlineModel(0));
  atEnd.push(() => server.stop());
  return server;
}

function agentOf({ url }: { url: string }) {
  return remoteAgent<SupportState>({ url: `${url}/api/support` });
}

async function get<T>(url: string): Promise<T> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

async function listSnapshots({ url }: { url: string }): Promise<SnapshotList['items']> {
  const { items } = await get<SnapshotList>(`${url}/api/snapshots?${new URLSearchParams({ sessionId: SESSION })}`);
  return items;
}

describe('a conversation over HTTP', () => {
  it('goes on after the process is killed in the middle of a turn, and keeps both branches', async () => {
    const folder = temporaryFolder();
    const killed = await start({ DATA_DIR: folder });
    for (const turn of SCRIPT.slice(0, 10)) await say(killed, turn, { sessionId: SESSION });
    const before = await listSnapshots(killed);
    // One of the ten turns waited for an answer, in a snapshot of its own.
    expect(before).toHaveLength(11);

    await cutOff(killed, SCRIPT[10]![0]);
    let server = await open(folder);

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
    await server.stop();
    server = await open(folder);

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

  it("are the caller's own in the list, however many others were written later, and under a name that is free", async () => {
    const folder = temporaryFolder();
    const store = new InMemorySessionStore<SupportState>();
    const sessions = new SessionService(store);
    const save = (sessionId: string, customer: string) =>
      sessions.createSession({ appName: 'support', userId: customerId(customer), sessionId });
    await save('mine', 'ana@example.com');
    for (let i = 0; i < 51; i++) await save(`bens-${i}`, 'ben@example.com');
    const firstOf = async (sessionId: string) => (await store.getSnapshotMetadata({ sessionId }))!.snapshotId;
    const server = await serve(folder, offlineModel(0), { store });
    atEnd.push(() => server.stop());
    const list = await get<SessionList>(`${server.url}/api/sessions`);
    expect(list.items.map(({ sessionId }) => sessionId)).toEqual(['mine']);
    expect(list.nextCursor).toBeUndefined();

    const begin = (sessionId: string) =>
      fetch(`${server.url}/api/sessions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ sessionId }),
      });
    expect(await (await begin('mine')).json()).toEqual({ snapshotId: await firstOf('mine') });
    const taken = await begin('bens-0');
    expect(taken.status).toBe(409);
    expect(await taken.text()).not.toContain(await firstOf('bens-0'));
  });

  it('streams tool calls, their results and the changing state while the turn runs', async () => {
    const folder = temporaryFolder();
    const turn = agentOf(await open(folder))
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

  it('pays a refund once, whatever branch or conversation asks for it, and remembers it after a restart', async () => {
    const folder = temporaryFolder();
    let server = await open(folder);
    await say(server, ['Refund 1035, it is late', 'Done'], {});
    await say(server, ['Refund 1035, it is late', 'refunded before'], {});
    await server.stop();
    server = await open(folder);
    await say(server, ['Refund 1035, it is late', 'refunded before'], {});
  });

  it.each([SESSION, '.', '..', '%', 'a/b?c#d'])('can have the name %s, and is deleted by it', async (sessionId) => {
    const folder = temporaryFolder();
    const server = await open(folder);
    const snapshotId = await say(server, SCRIPT[0]!, { sessionId });
    const query = new URLSearchParams({ sessionId });
    const list = () => get<SnapshotList>(`${server.url}/api/snapshots?${query}`);
    expect((await list()).items).toMatchObject([{ snapshotId, preview: { asked: SCRIPT[0]![0] } }]);
    const deleted = await fetch(`${server.url}/api/sessions?${query}`, { method: 'DELETE' });
    expect(await deleted.json()).toMatchObject({ snapshots: 1 });
    expect((await list()).items).toEqual([]);
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
  const [said, answered] = LOOK_UP;

  // Some shells let the server hear Ctrl-C from the terminal and from npm.
  it.each<NodeJS.Signals[]>([['SIGTERM'], ['SIGINT', 'SIGINT']])(
    'ends cleanly on %s with a page connected, and the reply that is being streamed arrives whole and is kept',
    async (...signals) => {
      const folder = temporaryFolder();
      const server = await start({ DATA_DIR: folder });
      const events = await fetch(`${server.url}/api/events`);
      const turn = agentOf(server).chat({ sessionId: SESSION }).sendStream(said);
      let chunks = 0;
      for await (const _ of turn.stream) if (chunks++ === 0) signals.forEach((signal) => void server.end(signal));
      expect((await turn.response).text).toContain(answered);
      expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(await events.text()).toContain('"kind":"offline"');
      expect(await listSnapshots(await open(folder))).toMatchObject([{ status: 'completed' }]);
    },
  );

  it('warns that there is no log-in when others can reach it', async () => {
    const folder = temporaryFolder();
    const { stdout } = await start({ DATA_DIR: folder, HOST: '0.0.0.0' });
    expect(stdout).toContain('WARNING: HOST is 0.0.0.0 and there is no log-in');
  });

  it('that can not start says why in one sentence, and ends', async () => {
    const sentence = "'--prot' is not understood; 'npm start -- --help' lists the settings.";
    expect(await runSample({}, ['--prot'])).toMatchObject({ code: 1, stdout: '', stderr: `${sentence}\n` });
  });
});

// Windows has neither signals nor groups of processes.
describe.skipIf(process.platform === 'win32')('npm start', () => {
  it('leaves no server behind when npm gets SIGTERM', async () => {
    const folder = temporaryFolder();
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

describe('a start that can not work gets one sentence', () => {
  /** Starts it as the program does, and answers why that can't be. */
  async function refusal(env: Record<string, string>): Promise<string> {
    try {
      const config = readConfig(env);
      prepareFolder(join(config.dataDir, 'sessions'));
      await FileOrderBook.open(config.dataDir);
      await chooseModel(config);
      await listen(createHttpServer(), config);
    } catch (error) {
      expect(error).toBeInstanceOf(SetupError);
      return (error as Error).message;
    }
    throw new Error('It started.');
  }

  it.each<[what: string, env: Record<string, string>, sentence: string]>([
    ['a port that is not a number', { PORT: 'http' }, "PORT must be a whole number from 0 to 65535, not 'http'."],
    ['a port out of range', { PORT: '70000' }, "PORT must be a whole number from 0 to 65535, not '70000'."],
    [
      'a pace that is not a number',
      { OFFLINE_PACE_MS: 'slow' },
      "OFFLINE_PACE_MS must be a whole number of milliseconds, not 'slow'.",
    ],
    ['an unknown model', { MODEL: 'gpt' }, "MODEL must be one of auto, gemini, ollama, offline, not 'gpt'."],
    ['Gemini without a key', { MODEL: 'gemini' }, 'MODEL is gemini, but GEMINI_API_KEY is not set.'],
    ['a host that is not here', { HOST: '192.0.2.1' }, "HOST '192.0.2.1' is not an address of this machine."],
  ])('%s', async (_what, env, sentence) => {
    const folder = temporaryFolder();
    expect(await refusal({ MODEL: 'offline', PORT: '0', DATA_DIR: folder, ...env })).toBe(sentence);
  });

  it('a port in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const folder = temporaryFolder();
    const sentence = `Port ${port} on 127.0.0.1 is in use; stop what runs there, or name another with PORT.`;
    expect(await refusal({ MODEL: 'offline', PORT: String(port), DATA_DIR: folder })).toBe(sentence);
    other.close();
  });

  it.each([
    ['a file', 'orders', 'there is a file of that name'],
    ['below a file', 'orders/data', 'a part of the path is a file'],
    ['behind a broken link', 'dangling', 'a link in the path leads nowhere'],
    ['in a circle of links', 'circle', 'the links in the path lead in a circle'],
    ['of too long a name', 'x'.repeat(300), 'the name is too long'],
  ])('a data folder that is %s', async (_what, name, why) => {
    const folder = temporaryFolder();
    await writeFile(join(folder, 'orders'), '');
    await symlink('nowhere', join(folder, 'dangling'));
    await symlink('circle', join(folder, 'circle'));
    expect(() => prepareFolder(join(folder, name))).toThrow(
      `The folder '${join(folder, name)}' can't be used: ${why}; name another with DATA_DIR.`,
    );
  });

  // Node's own recursive mkdir never comes back from there.
  it.runIf(process.platform === 'linux')('a data folder below one that takes no folders', () => {
    expect(() => prepareFolder('/proc/nope/sessions')).toThrow(
      "The folder '/proc/nope/sessions' can't be used: no folder can be made there; name another with DATA_DIR.",
    );
  });

  it('orders that can not be read, which stay as they are', async () => {
    const folder = temporaryFolder();
    const file = join(folder, 'orders.json');
    await writeFile(file, '{"orders": [');
    const sentence = `'${file}' does not contain a list of orders; delete it to start again with the orders of the sample.`;
    expect(await refusal({ MODEL: 'offline', PORT: '0', DATA_DIR: folder })).toBe(sentence);
    expect(await readFile(file, 'utf8')).toBe('{"orders": [');
  });
});

/** Begins a turn and kills the server while it is being answered. */
async function cutOff(server: Sample, text: string): Promise<void> {
  const turn = agentOf(server).chat({ sessionId: SESSION }).sendStream(text);
  turn.response.catch(() => {});
  for await (const { custom } of turn.stream) if (custom) break;
  await server.end('SIGKILL');
}

/** Says something from a point of a conversation, and answers the new snapshot. */
async function say(server: { url: string }, [said, answered]: Said, init: { sessionId?: string; snapshotId?: string }) {
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
