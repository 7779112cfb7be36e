import { StatusNameSchema, type StatusName } from 'genkit';
import { logger } from 'genkit/logging';
import { causeOf, keepCause } from '../client/error-cause.ts';
import { safeSentence } from '../error-status.ts';
import { addressTo, describeThrown, markedAudience, type Audience } from '../errors.ts';
import { isMembers } from '../json/fault.ts';
import { copyJson } from '../json/value.ts';
import type { RuntimeError } from '../session/turn.ts';

/** Longer messages are cut, because they are sent to the caller. */
const MAX_MESSAGE_LENGTH = 4096;

/** Members of `detail` that Genkit's own errors fill with the model's whole request or response. They must not leave the process. */
const INTERNAL_DETAILS = new Set(['request', 'response']);

/** Marks a record whose error is in the log. A registered symbol, because the server may be of the package's other module format. */
const LOGGED = Symbol.for('genkitx-agents.logged-error');

/**
 * Converts any thrown value into the error for a caller in this process: never a stack, never the value itself. An unknown status becomes
 * `INTERNAL`. {@link storedError} makes the record that leaves the process. Never throws, even when reading a member of the value throws.
 *
 * @param audience The reader the record is written for. Default: the audience of the thrown value.
 */
export function toRuntimeError(thrown: unknown, audience?: Audience): RuntimeError {
  try {
    return keepCause(addressTo(audience ?? audienceOf(thrown), describe(thrown)), thrown);
  } catch {
    return addressTo('operator', {
      status: 'INTERNAL',
      message: 'The agent threw a value that could not be read.',
    });
  }
}

/**
 * Logs the error of a turn that is saved, with the whole thrown value, under an `errorId` that the returned record also gets.
 * An error addressed to the caller or the user is not logged: its record already holds the full message.
 */
export function loggedError(error: RuntimeError, what: string): RuntimeError {
  const { details } = error;
  if (isForClients(error) || isLogged(error)) return error;
  const errorId = globalThis.crypto.randomUUID();
  const cause = causeOf(error);
  logger.error(`${what} failed (errorId ${errorId}). ${describeThrown(cause ?? error.message)}`);
  const known = isMembers(details) ? details : details !== undefined && { details };
  const logged = addressTo(markedAudience(error) ?? 'operator', { ...error, details: { ...known, errorId } });
  return keepCause(Object.defineProperty(logged, LOGGED, { value: true }), cause);
}

/**
 * The record of a {@link loggedError} as it is stored. The message of the thrown value may hold secrets, so a general sentence and the
 * `errorId` replace it. An error addressed to the caller or the user is stored unchanged.
 */
export function storedError(error: RuntimeError): RuntimeError {
  if (isForClients(error)) return error;
  const status = markedAudience(error) === 'status' ? error.status : 'INTERNAL';
  const { errorId } = (error.details ?? {}) as { errorId?: string };
  return { status, message: safeSentence(status), details: { errorId } };
}

/** Whether the error of this record was logged. False for a record that was stored and read again. */
export function isLogged(record: unknown): boolean {
  return isMembers(record) && LOGGED in record;
}

function isForClients(error: RuntimeError): boolean {
  const audience = markedAudience(error);
  return audience === 'user' || audience === 'caller';
}

/**
 * The audience of a thrown value. It depends on the value's origin, never on its text: this package marks its errors, a `UserFacingError`
 * is written for users, and any other `GenkitError` has a status that its author chose.
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
  return isMembers(details) && Array.isArray(details['errors']) && details['schema'] !== undefined;
}

/** The status of a thrown value. */
export function statusOf(thrown: unknown): Exclude<StatusName, 'OK'> {
  const status = StatusNameSchema.safeParse(isMembers(thrown) ? thrown['status'] : undefined);
  return status.success && status.data !== 'OK' ? status.data : 'INTERNAL';
}

function describe(thrown: unknown): RuntimeError {
  const details = isMembers(thrown) ? detailsOf(thrown) : undefined;
  return {
    status: statusOf(thrown),
    message: cut(messageOf(thrown)),
    ...(details !== undefined && { details }),
  };
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string' && thrown !== '') return thrown;
  if (isMembers(thrown)) {
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
  const details = isMembers(given) ? publicDetails(given) : given;
  if (details === undefined) return undefined;
  try {
    return copyJson(details);
  } catch {
    return undefined;
  }
}

function publicDetails(details: Record<string, unknown>): Record<string, unknown> | undefined {
  const entries = Object.entries(details).filter(([name]) => !INTERNAL_DETAILS.has(name));
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

function cut(message: string): string {
  return message.length <= MAX_MESSAGE_LENGTH ? message : `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…`;
}
