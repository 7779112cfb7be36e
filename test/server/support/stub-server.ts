import type { AgentServerOptions } from 'genkitx-agents/server';
import { afterEach, beforeEach, vi } from 'vitest';
import type { ourServers, Running } from './http.ts';
import { stubAgent, type StubAgent } from './stub-agent.ts';

/** The id of an error that the log has. */
export const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/;
/** The input of a turn, and the agent's output. */
export const hello = { message: { role: 'user', content: [{ text: 'hello' }] } };
export const done = { finishReason: 'stop', message: { role: 'model', content: [{ text: 'hi' }] } };
/** Headers that ask for a stream. */
export const streamed = { accept: 'text/event-stream' };

/** An answer that was read to its end. */
export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  // eslint-disable-next-line typescript/no-explicit-any -- the tests reach into answers of any form
  json: any;
}

export async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
}

/** Posts an object as JSON, all else as it is. */
export async function post(
  url: string,
  body: BodyInit | object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const raw = typeof body === 'string' || body instanceof Uint8Array || body instanceof ReadableStream;
  const init = {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: raw ? (body as BodyInit) : JSON.stringify(body),
    duplex: 'half',
  };
  return read(await fetch(url, init));
}

/** A server of one agent, `a`, created for each test of the suite. */
export class StubServer {
  /** Returns {@link done}. */
  agent: StubAgent = stubAgent('a', () => done);
  readonly #serve: (typeof ourServers)[number]['serve'];
  #running: Running | undefined;

  constructor(serve: (typeof ourServers)[number]['serve']) {
    this.#serve = serve;
    beforeEach(() => {
      this.agent = stubAgent('a', () => done);
    });
    afterEach(async () => {
      vi.restoreAllMocks();
      await this.stop();
    });
  }

  /** Returns the agent's address. */
  async start(options: AgentServerOptions = { anonymous: true }, served: StubAgent = this.agent): Promise<string> {
    this.#running = await this.#serve({ a: served }, options);
    return `${this.#running.url}/a`;
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }
}
