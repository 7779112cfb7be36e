import type { ErrorStatus } from '../../client/status.ts';

/** The HTTP status of each status, equal to that of Genkit's servers. */
const HTTP_STATUS: Readonly<Record<ErrorStatus, number>> = {
  CANCELLED: 499,
  UNKNOWN: 500,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 504,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  UNAUTHENTICATED: 401,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 400,
  ABORTED: 409,
  OUT_OF_RANGE: 400,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DATA_LOSS: 500,
};

/** Maps a status to its HTTP status. */
export function httpStatusOf(status: ErrorStatus): number {
  return HTTP_STATUS[status];
}
