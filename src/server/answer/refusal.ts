import type { ErrorStatus } from '../../error-status.ts';

/** A request that the server refuses. The message is written for the client. */
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

/** 400: the request is invalid. */
export function badRequest(message: string): Refusal {
  return new Refusal(400, 'INVALID_ARGUMENT', message);
}

/** 429: the client of a stream reads too slowly. */
export function tooSlow(): Refusal {
  const message =
    'The client read its stream too slowly, so the stream ended. The turn is treated as after a disconnect.';
  return new Refusal(429, 'RESOURCE_EXHAUSTED', message);
}

/** 503: this server is shutting down, and another instance can answer. */
export function shuttingDown(): Refusal {
  return new Refusal(503, 'UNAVAILABLE', 'The server is shutting down: send the request again.');
}
