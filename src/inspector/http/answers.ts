import { statusOf } from '../../agent/runtime-error.ts';
import { httpStatusOf } from '../../error-status.ts';
import { describeThrown, errorMessage } from '../../errors.ts';
import { Refusal } from '../../server/answer/refusal.ts';
import type { InspectorError, InspectorFailure } from '../api.ts';

/** Forbids inline scripts, requests to other servers, and showing the page in a frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  'media-src data: blob:',
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** An answer with the security headers. */
export function answer(
  body: BodyInit | null,
  { status = 200, type, headers = {} }: { status?: number; type: string; headers?: Record<string, string> },
): Response {
  return new Response(body, { status, headers: { ...SECURITY_HEADERS, 'content-type': type, ...headers } });
}

/** One JSON document. */
export function jsonAnswer(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return answer(JSON.stringify(body), { status, type: 'application/json; charset=utf-8', headers });
}

/** A sentence for a person who opened an address. */
export function textAnswer(status: number, text: string, headers: Record<string, string> = {}): Response {
  return answer(`${text}\n`, { status, type: 'text/plain; charset=utf-8', headers });
}

/** The answer to a request that failed. */
export function failureAnswer(thrown: unknown): Response {
  const failure = failureOf(thrown);
  if (thrown instanceof Refusal) return jsonAnswer(failure, thrown.httpStatus, thrown.headers);
  return jsonAnswer(failure, httpStatusOf(statusOf(thrown)));
}

/**
 * An error with its own message: the developer with the cookie may read whole sessions, which contain more than errors. Clients of agents get
 * the messages of `error-for-caller.ts` instead.
 */
export function failureOf(thrown: unknown): InspectorFailure {
  const status = thrown instanceof Refusal ? thrown.status : statusOf(thrown);
  const message = errorMessage(thrown);
  // Genkit's errors begin with their status.
  return { error: { status, message: message.replace(`${status}: `, '') } };
}

/** The error record of a snapshot, as it is stored. */
export function storedError(error: unknown): InspectorError {
  const { status, message, details } = (error ?? {}) as { status?: unknown; message?: unknown; details?: unknown };
  return {
    status: typeof status === 'string' ? status : 'UNKNOWN',
    message: typeof message === 'string' ? message : describeThrown(error),
    details,
  };
}
