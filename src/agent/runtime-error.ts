import { StatusNameSchema, type StatusName } from 'genkit';
import { logger } from 'genkit/logging';
import { causeOf, keepCause } from '../client/error-cause.ts';
import { addressTo, describeThrown, markedAudience, type Audience } from '../errors.ts';
import { copyJson } from '../json/value.ts';
import type { RuntimeError } from '../session/session-runner.ts';

/** Longer messages are cut, because they are stored with the snapshot and sent to the caller. */
const MAX_MESSAGE_LENGTH = 4096;

/** Members of `detail` that Genkit's own errors fill with the model's whole request or response. They must not leave the process. */
const INTERNAL_DETAILS = new Set(['request', 'response']);

/**
 * Converts any thrown value into the error that is stored and sent: never a stack, never the value itself. An unknown status becomes `INTERNAL`.
 * Never throws, even when reading a member of the value throws.
 *
 * @param audience The reader the record is written for. Default: the audience of the thrown value.
 */
export function toRuntimeError(thrown: unknown, audience?: Audience): RuntimeError {
  try {
    return keepCause(addressTo(audience ?? audienceOf(thrown), describe(thrown)), thrown);
  } catch {
    return addressTo('operator', {
      status: 'INTERNAL',
      message: 'The agent threw something that could not be read.',
    });
  }
}

/**
 * Logs the error of a turn that has no waiting caller, with the whole thrown value, under an `errorId` that the stored record also gets.
 * An error addressed to the caller is not logged: its record already holds the full message.
 */
export function loggedError(error: RuntimeError, what: string): RuntimeError {
  const { details } = error;
  const audience = markedAudience(error) ?? 'operator';
  if (audience === 'caller' || (isObject(details) && 'errorId' in details)) return error;
  const errorId = globalThis.crypto.randomUUID();
  const cause = causeOf(error);
  logger.error(`${what} failed (errorId ${errorId}). ${describeThrown(cause ?? error.message)}`);
  const known = isObject(details) && !Array.isArray(details) ? details : details !== undefined && { details };
  return keepCause(addressTo(audience, { ...error, details: { ...known, errorId } }), cause);
}

/**
 * The audience of a thrown value. Its origin decides, never its text: errors of this package are marked, a `UserFacingError` is written for
 * users, and any other `GenkitError` has a status that was chosen on purpose.
 */
export function audienceOf(thrown: unknown): Audience {
  const marked = markedAudience(thrown);
  if (marked) return marked;
  if (!(thrown instanceof Error)) return 'operator';
  // `instanceof GenkitError` is false for errors of another copy of Genkit.
  const { name, originalMessage, status, detail } = thrown as Error & Record<string, unknown>;
  if (typeof originalMessage !== 'string' || !StatusNameSchema.safeParse(status).success) return 'operator';
  if (name === 'UserFacingError') return 'user';
  // The request was validated before the run, so a value inside the run failed its schema.
  return isValidation(detail) ? 'operator' : 'status';
}

/** True for the details of Genkit's schema validation errors: the schema and its violations. */
function isValidation(details: unknown): boolean {
  return isObject(details) && Array.isArray(details['errors']) && details['schema'] !== undefined;
}

/** The status of a thrown value. */
export function statusOf(thrown: unknown): StatusName {
  const status = StatusNameSchema.safeParse(isObject(thrown) ? thrown['status'] : undefined);
  return status.success && status.data !== 'OK' ? status.data : 'INTERNAL';
}

function describe(thrown: unknown): RuntimeError {
  const details = isObject(thrown) ? detailsOf(thrown) : undefined;
  return {
    status: statusOf(thrown),
    message: cut(messageOf(thrown)),
    ...(details !== undefined && { details }),
  };
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string' && thrown !== '') return thrown;
  if (isObject(thrown)) {
    // A GenkitError's `message` begins with its status, which is reported separately.
    for (const text of [thrown['originalMessage'], thrown['message']]) {
      if (typeof text === 'string' && text !== '') return text;
    }
  }
  return 'The agent failed without a message.';
}

/** The details that the thrown value carries on purpose, as far as JSON can hold them. */
function detailsOf(thrown: Record<string, unknown>): unknown {
  const given = thrown['detail'] ?? thrown['details'];
  if (given === undefined || given === null) return undefined;
  const meant = isObject(given) && !Array.isArray(given) ? withoutInternals(given) : given;
  if (meant === undefined) return undefined;
  try {
    return copyJson(meant);
  } catch {
    return undefined;
  }
}

function withoutInternals(details: Record<string, unknown>): Record<string, unknown> | undefined {
  const entries = Object.entries(details).filter(([name]) => !INTERNAL_DETAILS.has(name));
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function cut(message: string): string {
  return message.length <= MAX_MESSAGE_LENGTH ? message : `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}
