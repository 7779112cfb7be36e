/**
 * The statuses of errors: Genkit's names, those of gRPC, without `OK`. This file runs in a browser, and each constant is left out of a bundle that
 * does not use it.
 */

/** The kind of an error. */
export type ErrorStatus =
  | 'CANCELLED'
  | 'UNKNOWN'
  | 'INVALID_ARGUMENT'
  | 'DEADLINE_EXCEEDED'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'UNAUTHENTICATED'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  | 'ABORTED'
  | 'OUT_OF_RANGE'
  | 'UNIMPLEMENTED'
  | 'INTERNAL'
  | 'UNAVAILABLE'
  | 'DATA_LOSS';

/**
 * The HTTP statuses of each status. The first is the one that a server answers, equal to that of Genkit's servers; proxies send some of the others.
 * An answer with an HTTP status of several has the first of those.
 */
const HTTP_STATUSES: Readonly<Record<ErrorStatus, readonly [number, ...number[]]>> = {
  CANCELLED: [499],
  INVALID_ARGUMENT: [400, 413, 415, 422],
  DEADLINE_EXCEEDED: [504, 408],
  NOT_FOUND: [404, 204],
  ABORTED: [409],
  ALREADY_EXISTS: [409],
  PERMISSION_DENIED: [403],
  UNAUTHENTICATED: [401],
  RESOURCE_EXHAUSTED: [429],
  FAILED_PRECONDITION: [400],
  OUT_OF_RANGE: [400],
  UNIMPLEMENTED: [501, 405],
  INTERNAL: [500],
  UNKNOWN: [500],
  UNAVAILABLE: [503, 502],
  DATA_LOSS: [500],
};

const UNEXPLAINED = 'Something went wrong inside the agent.';

/** The message of each status in place of a withheld one. */
const SENTENCES: Readonly<Record<ErrorStatus, string>> = {
  CANCELLED: 'The request was cancelled.',
  UNKNOWN: UNEXPLAINED,
  INVALID_ARGUMENT: 'The agent refused the request.',
  DEADLINE_EXCEEDED: 'The agent did not finish in time. Try again later.',
  NOT_FOUND: 'The requested item does not exist.',
  ALREADY_EXISTS: 'The item to create already exists.',
  PERMISSION_DENIED: 'The request is not allowed.',
  UNAUTHENTICATED: 'The request has no valid credentials.',
  RESOURCE_EXHAUSTED: 'A limit is reached. Try again later.',
  FAILED_PRECONDITION: 'The request does not fit the current state.',
  ABORTED: 'Another change came first. Read the session again and repeat the request.',
  OUT_OF_RANGE: 'The request is out of range.',
  UNIMPLEMENTED: 'The agent does not support this.',
  INTERNAL: UNEXPLAINED,
  UNAVAILABLE: 'Something that the agent needs is not available. Try again later.',
  DATA_LOSS: 'Something that was stored can not be read.',
};

/** Whether a value is the name of a status. */
export function isErrorStatus(value: unknown): value is ErrorStatus {
  return typeof value === 'string' && Object.hasOwn(HTTP_STATUSES, value);
}

/** The HTTP status that a server answers. */
export function httpStatusOf(status: ErrorStatus): number {
  return HTTP_STATUSES[status][0];
}

/** The status of an answer whose body has none, for example that of a proxy. */
export function statusOfHttp(httpStatus: number): ErrorStatus {
  const names = Object.keys(HTTP_STATUSES) as ErrorStatus[];
  return names.find((name) => HTTP_STATUSES[name].includes(httpStatus)) ?? 'UNKNOWN';
}

/** The sentence that replaces the message of an error of this status. */
export function safeSentence(status: unknown): string {
  return isErrorStatus(status) ? SENTENCES[status] : UNEXPLAINED;
}
