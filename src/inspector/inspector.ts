import { logger } from 'genkit/logging';
import { Refusal } from '../server/answer/refusal.ts';
import { capabilitiesOf } from '../store/contract.ts';
import type { InspectorInfo } from './api.ts';
import { Keys } from './gate/keys.ts';
import { assertSameOrigin } from './gate/same-origin.ts';
import { answer, failureAnswer, jsonAnswer, textAnswer } from './http/answers.ts';
import { packageVersion, readPage, type PageFile } from './http/page-files.ts';
import { Params } from './http/params.ts';
import { answerLive } from './live/live.ts';
import { checkInspectorOptions, type InspectorOptions } from './options.ts';
import { readStart } from './read/sessions.ts';
import { READS } from './reads.ts';
import { Source } from './source.ts';
import { agentsOf } from './write/fork.ts';
import { WRITES } from './writes.ts';

const POLL_INTERVAL_MS = 2000;
const MOST_BODY_BYTES = 1024 * 1024;

/** A handler of the web's `Request` and `Response`. */
export interface Inspector {
  /** Answers a request. Does not reject. */
  (request: Request): Promise<Response>;
  /**
   * Returns an address with a one-time token. Keep it secret: the address alone opens the inspector.
   *
   * @param origin The origin of the server, for example `http://localhost:4000`.
   */
  address(origin: string): string;
  /** Ends the event streams of pages. The store stays open. */
  close(): void;
}

/**
 * A page for developers, on their own machine, that shows sessions, runs, memories and the models' inputs. Serve it on the loopback
 * interface, at the root of a server or below `basePath`.
 *
 * Every request needs the cookie that a one-time address sets. When a browser without it opens the page, a new address goes to `onAddress`.
 * In production (`NODE_ENV`) every answer is 404.
 *
 * @throws `INVALID_ARGUMENT` for an unknown or invalid option.
 * @example
 * const inspect = inspector({ store, basePath: '/inspect' });
 * app.use('/inspect', nodeListener(inspect));
 * app.listen(4000, '127.0.0.1');
 * console.log(inspect.address('http://localhost:4000'));
 */
export function inspector(options: InspectorOptions): Inspector {
  checkInspectorOptions(options);
  const server = new InspectorServer(options);
  return Object.assign((request: Request) => server.answer(request), {
    address: (origin: string) => server.address(origin),
    close: () => server.close(),
  });
}

class InspectorServer {
  readonly #options: InspectorOptions;
  /** The path of the page, with a slash at both ends. */
  readonly #root: string;
  readonly #keys: Keys;
  readonly #end = new AbortController();
  #page: ReadonlyMap<string, PageFile> | undefined;

  constructor(options: InspectorOptions) {
    this.#options = options;
    this.#root = `${(options.basePath ?? '').replace(/\/$/, '')}/`;
    this.#keys = new Keys(this.#root);
  }

  address(origin: string): string {
    return `${origin}${this.#root}?token=${this.#keys.createToken()}`;
  }

  close(): void {
    this.#end.abort();
  }

  async answer(request: Request): Promise<Response> {
    try {
      const url = new URL(request.url);
      if (this.#isOff) return textAnswer(404, 'Not found.');
      if (`${url.pathname}/` === this.#root) return this.#withSlash(url);
      if (!url.pathname.startsWith(this.#root)) return textAnswer(404, 'Not found.');
      assertSameOrigin(request, url, this.#options.hosts ?? []);
      const path = url.pathname.slice(this.#root.length);
      const cookie = this.#admit(request, url, path);
      if (cookie === undefined) return this.#refuseEntry(request, url, path);
      return path.startsWith('api/')
        ? await this.#answerApi(request, url, path.slice('api/'.length))
        : this.#answerFile(request, path || 'index.html', cookie);
    } catch (error) {
      return failureAnswer(error);
    }
  }

  get #isOff(): boolean {
    return (this.#options.nodeEnv ?? process.env['NODE_ENV']) === 'production';
  }

  /** Redirects to the path with a slash, which the page's relative addresses need. */
  #withSlash({ search }: URL): Response {
    return answer(null, { status: 308, type: 'text/plain', headers: { location: `${this.#root}${search}` } });
  }

  /** The `set-cookie` header for a token; empty for a request with a valid cookie; `undefined` for a request with neither. */
  #admit(request: Request, url: URL, path: string): string | undefined {
    const token = path === '' && request.method === 'GET' ? url.searchParams.get('token') : null;
    // Invalidates the token even if there is a cookie, because the browser's history keeps the address.
    const cookie = token === null ? undefined : this.#keys.redeem(token);
    return this.#keys.admits(request.headers.get('cookie')) ? '' : cookie;
  }

  #refuseEntry(request: Request, url: URL, path: string): Response {
    if (path !== '' || request.method !== 'GET') {
      return failureAnswer(
        new Refusal(401, 'UNAUTHENTICATED', 'Open the inspector by an address with a one-time token.'),
      );
    }
    const { onAddress = logAddress } = this.#options;
    onAddress(this.address(url.origin));
    const advice = 'The terminal or the log of its process now shows one.';
    return textAnswer(401, `Open the inspector by an address with a one-time token. ${advice}`);
  }

  #answerFile(request: Request, path: string, cookie: string): Response {
    assertMethod(request, 'GET');
    this.#page ??= readPage();
    const file = this.#page.get(path);
    const headers = { ...(cookie && { 'set-cookie': cookie }) };
    if (!file) {
      const isPage = path === 'index.html';
      return textAnswer(404, isPage ? 'The page is not built: run npm run build.' : 'Not found.', headers);
    }
    const caching = { ...(file.isHashed && { 'cache-control': 'private, max-age=31536000, immutable' }) };
    return answer(file.bytes, { type: file.type, headers: { ...headers, ...caching } });
  }

  async #answerApi(request: Request, url: URL, name: string): Promise<Response> {
    if (isMember(WRITES, name)) {
      assertMethod(request, 'POST');
      return this.#write(request, name);
    }
    const isKnown = name === 'live' || name === 'start' || isMember(READS, name);
    if (!isKnown) throw new Refusal(404, 'NOT_FOUND', 'There is nothing at this address.');
    assertMethod(request, 'GET');
    const params = Params.ofQuery(url.searchParams);
    const source = new Source(this.#options, params.text('tenant'));
    if (name === 'live') {
      return answerLive(source, params, { pauseMs: this.#pauseMs, signal: this.#end.signal });
    }
    return jsonAnswer(
      name === 'start' ? await readStart(source, params, await this.#info()) : await READS[name](source, params),
    );
  }

  async #write(request: Request, name: keyof typeof WRITES): Promise<Response> {
    if (this.#options.readOnly) {
      throw new Refusal(403, 'PERMISSION_DENIED', 'This inspector is read-only.');
    }
    // Without permission, another page can send a form, but not JSON.
    if (!/^application\/json\b/i.test(request.headers.get('content-type') ?? '')) {
      throw new Refusal(415, 'INVALID_ARGUMENT', 'A write must have the content type application/json.');
    }
    const params = Params.ofBody(await readText(request));
    return jsonAnswer(await WRITES[name](new Source(this.#options, params.text('tenant')), params, request.signal));
  }

  async #info(): Promise<InspectorInfo> {
    const { store, storeName = store.constructor.name, agents, memory, readOnly = false, context } = this.#options;
    return {
      version: packageVersion(),
      store: storeName,
      capabilities: capabilitiesOf(store),
      agents: [...(await agentsOf(agents)).keys()],
      memoryStore: memory?.store.constructor.name,
      readOnly,
      hasTenants: typeof context === 'function',
      pollIntervalMs: this.#pauseMs,
    };
  }

  get #pauseMs(): number {
    return this.#options.pollIntervalMs ?? POLL_INTERVAL_MS;
  }
}

function logAddress(address: string): void {
  logger.info(`Open the inspector, once: ${address}`);
}

function assertMethod(request: Request, method: 'GET' | 'POST'): void {
  if (request.method === method) return;
  throw new Refusal(405, 'UNIMPLEMENTED', `This address answers only ${method}.`, { headers: { allow: method } });
}

function isMember<T extends object>(table: T, name: string): name is keyof T & string {
  return Object.hasOwn(table, name);
}

/** @throws Refusal 413 */
async function readText(request: Request): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of request.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > MOST_BODY_BYTES) throw new Refusal(413, 'INVALID_ARGUMENT', 'The body is longer than 1 MiB.');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
