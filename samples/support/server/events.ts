import type { ActionContext } from 'genkit';
import type { Response } from 'express';
import type { ServerEvent, ServerHello } from './api-types.ts';
import type { SessionChanges } from './session-changes.ts';

/**
 * Server-sent events, one open stream a page. The stream notifies the page of changes of the caller's sessions; its end shows that the server
 * is away.
 */
export class EventStreams {
  readonly #changes: SessionChanges;
  readonly #open = new Set<Response>();

  constructor(changes: SessionChanges) {
    this.#changes = changes;
  }

  add(response: Response, context: ActionContext, hello: ServerHello): void {
    const send = (event: ServerEvent) => response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    send(hello);
    const stop = this.#changes.listen(context, (sessionId) => send({ type: 'saved', sessionId }));
    this.#open.add(response);
    response.on('close', () => {
      stop();
      this.#open.delete(response);
    });
  }

  endAll(): void {
    for (const response of this.#open) response.end();
  }
}
