import type { ErrorStatus } from '../../client/status.ts';

/** A request that the server turns down for what it is. The message is for the client to read. */
export class Refusal extends Error {
  readonly httpStatus: number;
  readonly status: ErrorStatus;
  readonly details: Record<string, unknown> | undefined;
  readonly headers: Record<string, string>;

  constructor(
    httpStatus: number,
    status: ErrorStatus,
    message: string,
    more: { details?: Record<string, unknown>; headers?: Record<string, string> } = {},
  ) {
    super(message);
    this.httpStatus = httpStatus;
    this.status = status;
    this.details = more.details;
    this.headers = more.headers ?? {};
  }
}

/** 400: the request is not what it has to be. */
export function badRequest(message: string): Refusal {
  return new Refusal(400, 'INVALID_ARGUMENT', message);
}

/** 429: the client of a stream left too much of it unread. */
export function tooSlow(): Refusal {
  const message =
    'The client was too slow to read its stream, so the stream ended. The turn is treated as if the client had gone away.';
  return new Refusal(429, 'RESOURCE_EXHAUSTED', message);
}

/** 503: another server, or the next one, will answer. */
export function shuttingDown(): Refusal {
  return new Refusal(503, 'UNAVAILABLE', 'The server is shutting down: send the request again.');
}
