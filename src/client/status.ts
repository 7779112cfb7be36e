/** Genkit's status names, those of gRPC, without `OK`. */
const STATUS_NAMES = [
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'UNAUTHENTICATED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
] as const;

/** The kind of an error. */
export type ErrorStatus = (typeof STATUS_NAMES)[number];

/** For answers whose body has no status, for example those of a proxy. */
const BY_HTTP_STATUS: Readonly<Record<number, ErrorStatus>> = {
  204: 'NOT_FOUND',
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  413: 'INVALID_ARGUMENT',
  415: 'INVALID_ARGUMENT',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** Whether a value is the name of a status. */
export function isErrorStatus(value: unknown): value is ErrorStatus {
  return STATUS_NAMES.includes(value as ErrorStatus);
}

/** Maps an HTTP status to a status. */
export function statusOfHttp(httpStatus: number): ErrorStatus {
  return BY_HTTP_STATUS[httpStatus] ?? 'UNKNOWN';
}
