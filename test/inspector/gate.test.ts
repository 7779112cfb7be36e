/** Access: requests of a browser, of other pages, of other servers on this machine and of programs. */
import type { RequestListener } from 'node:http';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import express from 'express';
import { genkit, agentRuntime, defineCustomAgent, InMemorySessionStore, type SnapshotStore } from 'genkitx-agents';
import { inspector, nodeListener, type InspectorOptions } from 'genkitx-agents/inspector';
import { agentHandler, agentRouter } from 'genkitx-agents/server';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readPage } from '../../src/inspector/http/page-files.ts';
import { listen } from '../server/support/http.ts';
import { cookieOf, open, send, Visitor, type RawRequest } from './support/open.ts';

const READS = 'start sessions tree snapshot seen diff changes runs live'
  .split(' ')
  .concat(['scopes', 'list', 'search', 'show', 'source', 'quarantine', 'jobs'].map((name) => `memory/${name}`));
const WRITES = [
  'abort',
  'fork',
  'delete-session',
  'memory/remove',
  'memory/approve',
  'memory/discard',
  'memory/replay',
  'memory/discard-job',
];

let store: SnapshotStore;
let ends: (() => Promise<void>)[] = [];

beforeEach(async () => {
  store = new InMemorySessionStore();
  const state = { messages: [{ role: 'user' as const, content: [{ text: 'a secret' }] }] };
  await store.saveSnapshot('snap', () => ({
    sessionId: 's',
    createdAt: new Date().toISOString(),
    status: 'completed',
    state,
  }));
});

afterEach(async () => {
  await Promise.all(ends.map((end) => end()));
  ends = [];
});

async function started(options: Partial<InspectorOptions> = {}) {
  const opened = await open({ store, onAddress: () => {}, ...options });
  ends.push(opened.close);
  return opened;
}

const json = (body: unknown, headers: Record<string, string> = {}): RawRequest => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

describe('the token', () => {
  it('is exchanged for a cookie that scripts and other sites do not get, and that works for reloads', async () => {
    const { address, origin } = await started();
    const { pathname, search } = new URL(address());
    const first = await send(origin, `${pathname}${search}`);
    expect(first.headers['set-cookie']![0]).toMatch(/^inspector-\w{12}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    const visitor = new Visitor(origin, '/', cookieOf(first));
    expect((await visitor.raw('api/sessions')).status).toBe(200);
    // Reloaded, with the used token still in the address.
    expect((await visitor.raw(search)).status).not.toBe(401);
  });

  it('works once', async () => {
    const { address, origin } = await started();
    const { pathname, search } = new URL(address());
    await send(origin, `${pathname}${search}`);
    const again = await send(origin, `${pathname}${search}`);
    expect(again.status).toBe(401);
    expect(again.headers['set-cookie']).toBeUndefined();
  });

  it('is also invalidated by a browser that has a cookie', async () => {
    const { address, visitor } = await started();
    const { pathname, search } = new URL(address());
    expect((await visitor.raw(search)).status).not.toBe(401);
    const copied = await send(visitor.origin, `${pathname}${search}`);
    expect(copied.status).toBe(401);
    expect(copied.headers['set-cookie']).toBeUndefined();
  });

  it('is refused when wrong, empty, cut, in a header, in a body or at another address', async () => {
    const { address, origin } = await started();
    const token = new URL(address()).searchParams.get('token')!;
    for (const path of ['/?token=', '/?token=wrong', `/?token=${token.slice(1)}`, `/index.html?token=${token}`]) {
      expect((await send(origin, path)).status, path).toBe(401);
    }
    expect((await send(origin, `/api/sessions?token=${token}`)).status).toBe(401);
    expect((await send(origin, '/', { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
    expect((await send(origin, `/?token=${token}`, json({ token }))).status).toBe(401);
    // None of these invalidated it.
    expect(cookieOf(await send(origin, `/?token=${token}`))).not.toBe('');
  });

  it('is required by every address and method, and the refusal names no session', async () => {
    const { origin } = await started();
    const paths = ['', 'index.html', 'assets/x.js', 'nowhere', ...[...READS, ...WRITES].map((name) => `api/${name}`)];
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'HEAD', 'DELETE', 'PUT', 'OPTIONS']) {
        const { status, text } = await send(origin, `/${path}`, { method });
        expect(status, `${method} /${path}`).toBe(401);
        expect(text).not.toMatch(/secret|snap/);
      }
    }
  });

  it('goes to onAddress when a browser without a cookie requests the page', async () => {
    const addresses: string[] = [];
    const { origin } = await started({ onAddress: (address) => addresses.push(address) });
    expect((await send(origin, '/')).status).toBe(401);
    expect(addresses).toHaveLength(1);
    const visitor = await Visitor.open(addresses[0]!);
    expect((await visitor.raw('api/sessions')).status).toBe(200);
  });
});

describe('the cookie', () => {
  it('of another inspector of this machine is refused, though browsers send it to all ports', async () => {
    const [one, other] = [await started(), await started()];
    const asOther = { headers: { cookie: other.visitor.cookie } };
    expect((await send(one.origin, '/api/sessions', asOther)).status).toBe(401);
    const both = { headers: { cookie: `${other.visitor.cookie}; ${one.visitor.cookie}` } };
    expect((await send(one.origin, '/api/sessions', both)).status).toBe(200);
    // The name of one cookie with the value of the other.
    const [name] = one.visitor.cookie.split('=');
    const mixed = { headers: { cookie: `${name}=${other.visitor.cookie.split('=')[1]}` } };
    expect((await send(one.origin, '/api/sessions', mixed)).status).toBe(401);
  });
});

describe('other pages', () => {
  it.each([
    'evil.example',
    'evil.example:80',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '127.0.0.2',
    '0.0.0.0',
  ])('that reach the inspector as %j are refused', async (host) => {
    const { visitor } = await started();
    const { status, text } = await visitor.raw('api/sessions', { headers: { host } });
    expect(status).toBe(403);
    expect(text).not.toContain('"s"');
  });

  it('are refused when they name the inspector in the target of the request', async () => {
    const { visitor, origin } = await started();
    const headers = { cookie: visitor.cookie };
    expect((await send(origin, 'http://evil.example/api/sessions', { headers })).status).toBe(403);
    expect((await send(origin, '//evil.example/api/sessions', { headers })).status).toBe(403);
  });

  it.each(['http://evil.example', 'null', 'http://localhost:1', 'https://127.0.0.1', 'file://'])(
    'with the origin %s neither read nor write',
    async (origin) => {
      const { visitor } = await started();
      expect((await visitor.raw('api/sessions', { headers: { origin } })).status).toBe(403);
      const { status } = await visitor.raw('api/delete-session', json({ sessionId: 's', confirm: 's' }, { origin }));
      expect(status).toBe(403);
      expect(await store.getSnapshot({ snapshotId: 'snap' })).toBeDefined();
    },
  );

  it.each(['same-site', 'cross-site'])('that browsers call %s load nothing, but may link to the page', async (site) => {
    const { visitor } = await started();
    const fetched = { 'sec-fetch-site': site, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' };
    expect((await visitor.raw('api/sessions', { headers: fetched })).status).toBe(403);
    expect((await visitor.raw('', { headers: fetched })).status).toBe(403);
    const framed = { ...fetched, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' };
    expect((await visitor.raw('', { headers: framed })).status).toBe(403);
    const linked = { ...fetched, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    expect((await visitor.raw('', { headers: linked })).status).not.toBe(403);
  });

  it('get no CORS permission', async () => {
    const { visitor } = await started();
    for (const path of ['', 'api/sessions', 'api/nothing']) {
      const { headers } = await visitor.raw(path);
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    }
  });

  it('are allowed under a name of hosts', async () => {
    const { visitor } = await started({ hosts: ['dev.internal'] });
    expect((await visitor.raw('api/sessions', { headers: { host: 'dev.internal:8080' } })).status).toBe(200);
  });
});

describe('every answer', () => {
  it('forbids inline scripts, other types, frames and caching', async () => {
    const { visitor, origin } = await started();
    const answers = [
      ...(await Promise.all(['', 'api/sessions', 'api/nothing', 'nowhere'].map((path) => visitor.raw(path)))),
      await send(origin, '/'),
      await send(origin, '/api/sessions', { headers: { host: 'evil.example' } }),
    ];
    for (const { headers } of answers) {
      const policy = headers['content-security-policy'] as string;
      expect(policy).toContain("default-src 'none'");
      expect(policy).toMatch(/script-src 'self'(;|$)/);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
      });
    }
  });
});

describe('files', () => {
  it('are only those of the page', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'genkitx-agents-page-'));
    ends.push(async () => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, 'assets'));
    const put = (name: string, text: string) => writeFileSync(join(folder, `${name}.br`), brotliCompressSync(text));
    put('index.html', '<!doctype html>');
    put('assets/main-DkX3b9aQ.js', 'main();');
    put('notes.txt', '');
    writeFileSync(join(folder, 'other.html'), '');
    const page = readPage(folder);
    expect([...page.keys()].toSorted()).toEqual(['assets/main-DkX3b9aQ.js', 'index.html']);
    expect(page.get('assets/main-DkX3b9aQ.js')).toMatchObject({
      isHashed: true,
      type: 'text/javascript; charset=utf-8',
      bytes: new TextEncoder().encode('main();'),
    });
    expect(page.get('index.html')).toMatchObject({ isHashed: false });
  });

  it('outside the page can’t be requested', async () => {
    const { visitor } = await started();
    const tries = [
      '../package.json',
      '..%2fpackage.json',
      '%2e%2e/package.json',
      '..\\package.json',
      'assets/../../package.json',
    ];
    const more = [
      '%2fetc%2fpasswd',
      '%00',
      'index.html%00.js',
      '__proto__',
      'constructor',
      'api/../../package.json',
      'C:\\x',
    ];
    for (const path of [...tries, ...more]) {
      const { status, text } = await visitor.raw(path);
      expect(status, path).toBe(404);
      expect(text, path).not.toContain('genkitx-agents"');
    }
  });
});

describe('methods', () => {
  it('are checked: reads answer only GET, writes only POST', async () => {
    const { visitor } = await started();
    for (const name of READS) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'HEAD']) {
        expect((await visitor.raw(`api/${name}`, { method })).status, `${method} ${name}`).toBe(405);
      }
    }
    for (const name of WRITES) {
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD']) {
        const override = { 'x-http-method-override': 'POST' };
        const { status } = await visitor.raw(`api/${name}?_method=POST`, { method, headers: override });
        expect(status, `${method} ${name}`).toBe(405);
      }
    }
    for (const name of ['', '__proto__', 'constructor', 'toString', 'Sessions', 'sessions/', 'memory']) {
      expect((await visitor.raw(`api/${name}`)).status, name).toBe(404);
    }
  });
});

describe('writes', () => {
  it('must be JSON objects of at most 1 MiB, not forms', async () => {
    const { visitor } = await started();
    const form = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: '{"sessionId":"s","confirm":"s"}' };
    expect((await visitor.raw('api/delete-session', form)).status).toBe(415);
    expect((await visitor.raw('api/delete-session', json('x'.repeat(1024 * 1024)))).status).toBe(413);
    for (const body of ['', 'x', '[]', 'null', '1']) {
      expect((await visitor.raw('api/delete-session', { ...json(0), body })).status, body).toBe(400);
    }
    expect(await store.getSnapshot({ snapshotId: 'snap' })).toBeDefined();
  });

  it('that remove something ask first', async () => {
    const { visitor } = await started();
    for (const confirm of [undefined, true, '', 'S', 'snap', ['s']]) {
      const asked = visitor.post('delete-session', { sessionId: 's', confirm: confirm as string });
      await expect(asked).rejects.toMatchObject({ httpStatus: 400, message: expect.stringContaining('confirm') });
    }
    expect(await store.getSnapshot({ snapshotId: 'snap' })).toBeDefined();
    expect(await visitor.post('delete-session', { sessionId: 's', confirm: 's' })).toMatchObject({ snapshots: 1 });
    expect(await store.getSnapshot({ snapshotId: 'snap' })).toBeUndefined();
  });

  it('are all refused with readOnly, before their parameters are read', async () => {
    const { visitor } = await started({ readOnly: true });
    for (const name of WRITES) {
      const { status, text } = await visitor.raw(`api/${name}`, json({ sessionId: 's', confirm: 's' }));
      expect(status, name).toBe(403);
      expect(text).toContain('read-only');
    }
    expect((await visitor.get('start', {})).info.readOnly).toBe(true);
    expect(await store.getSnapshot({ snapshotId: 'snap' })).toBeDefined();
  });
});

describe('in production', () => {
  it('every answer is 404, even with a valid token and cookie, unless NODE_ENV is overridden', async () => {
    const inspect = inspector({ store, nodeEnv: 'production' });
    const running = await listen(nodeListener(inspect));
    ends.push(running.stop);
    const { search } = new URL(inspect.address(running.url));
    for (const path of ['/', `/${search}`, '/api/sessions']) {
      const { status, headers } = await send(running.url, path);
      expect(status, path).toBe(404);
      expect(headers['set-cookie']).toBeUndefined();
    }
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    ends.push(async () => void (process.env['NODE_ENV'] = before));
    const { visitor } = await started({ nodeEnv: 'development' });
    expect((await visitor.raw('api/sessions')).status).toBe(200);
  });
});

describe('mounted in another server', () => {
  const agentIn = (ai: ReturnType<typeof genkit>) =>
    defineCustomAgent(ai, { name: 'echo' }, async (session) => {
      await session.run(async () => session.addMessages([{ role: 'model', content: [{ text: 'yes' }] }]));
      return {};
    });

  it.each(['express', 'handler'] as const)('by agentRuntime and the %s of the agents', async (kind) => {
    const addresses: string[] = [];
    const options = { path: '/inspect', onAddress: (address: string) => addresses.push(address) };
    const ai = genkit({ plugins: [agentRuntime({ store, inspector: options })] });
    const agent = agentIn(ai);
    let listener: RequestListener;
    if (kind === 'express') {
      const app = express();
      app.use(express.json());
      app.use('/api', agentRouter([agent], { anonymous: true }));
      listener = app as RequestListener;
    } else {
      listener = nodeListener(agentHandler(ai, { anonymous: true, basePath: '/api' }));
    }
    const running = await listen(listener);
    ends.push(running.stop);
    expect((await send(running.url, '/api/inspect')).headers.location).toBe('/api/inspect/');
    expect((await send(running.url, '/api/inspect/')).status).toBe(401);
    const visitor = await Visitor.open(addresses[0]!);
    expect(visitor.root).toBe('/api/inspect/');
    const { items, info } = await visitor.get('start', {});
    expect(items).toMatchObject([{ sessionId: 's' }]);
    expect(info.agents).toEqual(['echo']);
    const forked = await visitor.post('fork', { agent: 'echo', snapshotId: 'snap', text: 'again?' });
    expect(await store.getSnapshot({ snapshotId: forked.snapshotId! })).toMatchObject({ parentId: 'snap' });
    // The agents next to it still answer.
    const run = await send(running.url, '/api/echo', json({ data: { message: { role: 'user', content: [] } } }));
    expect(run.status).toBe(200);
    expect((await send(running.url, '/api/inspector')).status).toBe(404);
  });

  it('in production answers 404, while the agents work', async () => {
    const inspectorOptions = { path: '/inspect', nodeEnv: 'production' };
    const ai = genkit({ plugins: [agentRuntime({ store, inspector: inspectorOptions })] });
    const running = await listen(nodeListener(agentHandler([agentIn(ai)], { anonymous: true })));
    ends.push(running.stop);
    expect((await send(running.url, '/inspect/')).status).toBe(404);
    const run = await send(running.url, '/echo', json({ data: { message: { role: 'user', content: [] } } }));
    expect(run.status).toBe(200);
  });

  it('by nodeListener in Express', async () => {
    const inspect = inspector({ store, basePath: '/inspect' });
    const app = express();
    app.use('/inspect', nodeListener(inspect));
    const running = await listen(app as RequestListener);
    ends.push(running.stop);
    const visitor = await Visitor.open(inspect.address(running.url));
    expect((await visitor.get('sessions', {})).items).toMatchObject([{ sessionId: 's' }]);
    const { headers } = await send(running.url, `/inspect/${new URL(inspect.address(running.url)).search}`);
    expect(headers['set-cookie']![0]).toContain('Path=/inspect/;');
  });

  it('is refused without a store, or with an invalid path', () => {
    expect(() => agentRuntime({ inspector: { path: '/inspect' } })).toThrow('give a store');
    expect(() => agentRuntime({ store, inspector: { path: 'inspect' } })).toThrow("such as '/inspect'");
    expect(() => inspector({ store, readonly: true } as never)).toThrow('readOnly');
    expect(() => inspector({ store, agents: { tool: { run() {} } } } as never)).toThrow('agents must be agents');
  });
});
