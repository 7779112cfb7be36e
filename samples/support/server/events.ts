import type { Response } from 'express';
import type { ServerHello } from './api-types.ts';

/**
 * Server-sent events, one open stream a page. They tell the page that the server is there, and by ending, that it is not; the browser
 * reconnects by itself.
 */
export class EventStreams {
  readonly #hello: ServerHello;
  readonly #open = new Set<Response>();

  constructor(hello: ServerHello) {
    this.#hello = hello;
  }

  add(response: Response): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.write(`retry: 1000\ndata: ${JSON.stringify(this.#hello)}\n\n`);
    this.#open.add(response);
    response.on('close', () => this.#open.delete(response));
  }

  endAll(): void {
    for (const response of this.#open) response.end();
  }
}
