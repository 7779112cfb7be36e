/** An inspector behind real HTTP, and a browser with its cookie. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { inspector, nodeListener, type InspectorOptions } from 'genkitx-agents/inspector';
import type { InspectorFailure, InspectorReads, InspectorWrites } from '../../../src/inspector/api.ts';
import { listen } from '../../server/support/http.ts';

/** Any answer. */
export interface RawAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** A request with any header and any path, which `fetch` does not allow. */
export interface RawRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

export function send(
  origin: string,
  path: string,
  { method = 'GET', headers, body }: RawRequest = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path, method, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, text: Buffer.concat(pieces).toString() }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** The part of a `set-cookie` header that a browser sends back. */
export function cookieOf({ headers }: RawAnswer): string {
  const [cookie = ''] = headers['set-cookie'] ?? [];
  return cookie.split(';')[0]!;
}

type Asked<T> = { [K in keyof T]: T[K] extends object | undefined ? T[K] | string : T[K] };

/** A browser that has the cookie of one inspector. */
export class Visitor {
  readonly origin: string;
  readonly root: string;
  readonly cookie: string;

  constructor(origin: string, root: string, cookie: string) {
    this.origin = origin;
    this.root = root;
    this.cookie = cookie;
  }

  /** Opens an address with a token. */
  static async open(address: string): Promise<Visitor> {
    const { origin, pathname, search } = new URL(address);
    return new Visitor(origin, pathname, cookieOf(await send(origin, `${pathname}${search}`)));
  }

  raw(path: string, request: RawRequest = {}): Promise<RawAnswer> {
    return send(this.origin, `${this.root}${path}`, {
      ...request,
      headers: { cookie: this.cookie, ...request.headers },
    });
  }

  /** @throws The failure that the inspector answers. */
  async get<K extends keyof InspectorReads>(
    name: K,
    asks: Asked<InspectorReads[K]['asks']>,
  ): Promise<InspectorReads[K]['answers']> {
    return parse(await this.raw(`api/${name}?${queryOf(asks)}`)) as InspectorReads[K]['answers'];
  }

  /** @throws The failure that the inspector answers. */
  async post<K extends keyof InspectorWrites>(
    name: K,
    asks: InspectorWrites[K]['asks'],
  ): Promise<InspectorWrites[K]['answers']> {
    const headers = { 'content-type': 'application/json', origin: this.origin };
    const body = JSON.stringify(asks);
    return parse(await this.raw(`api/${name}`, { method: 'POST', headers, body })) as InspectorWrites[K]['answers'];
  }
}

export function queryOf(asks: object): string {
  const pairs = Object.entries(asks).flatMap(([name, value]: [string, unknown]) =>
    (Array.isArray(value) ? (value as unknown[]) : [value])
      .filter((one) => one !== undefined)
      .map((one) => [name, typeof one === 'string' ? one : JSON.stringify(one)]),
  );
  return new URLSearchParams(pairs).toString();
}

function parse({ status, text }: RawAnswer): unknown {
  if (status === 200) return JSON.parse(text);
  const { error } = JSON.parse(text) as InspectorFailure;
  throw Object.assign(new Error(error.message), { httpStatus: status, status: error.status });
}

/** An inspector on a free port, and a visitor. */
export async function open(
  options: InspectorOptions,
  port?: number,
): Promise<{
  visitor: Visitor;
  origin: string;
  /** A new address with a token. */
  address: () => string;
  close: () => Promise<void>;
}> {
  const inspect = inspector(options);
  const running = await listen(nodeListener(inspect), port);
  const address = () => inspect.address(running.url);
  return {
    visitor: await Visitor.open(address()),
    origin: running.url,
    address,
    close: async () => {
      inspect.close();
      await running.stop();
    },
  };
}
