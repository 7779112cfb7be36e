import { logger } from 'genkit/logging';
import { audienceOf, isLogged } from '../../agent/runtime-error.ts';
import { causeOf } from '../../client/error-cause.ts';
import { httpStatusOf, isErrorStatus, safeSentence, type ErrorStatus } from '../../error-status.ts';
import { describeThrown, markedAudience, type Audience } from '../../errors.ts';
import { Refusal } from './refusal.ts';

/** An error as a client may see it. */
export interface SafeError {
  status: ErrorStatus;
  message: string;
  details?: unknown;
}

/**
 * The statuses of errors that the caller can act on. The messages of all other errors describe server internals, so a fixed
 * sentence replaces them.
 */
const CALLER_STATUSES: ReadonlySet<ErrorStatus> = new Set<ErrorStatus>([
  'CANCELLED',
  'INVALID_ARGUMENT',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'UNAUTHENTICATED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
]);

/**
 * Stacks, paths, addresses and credentials, which no message for a caller may contain. The first check is the origin of a message; this is
 * the second, because a message for callers may quote a lower error. Such a message is withheld completely. Text that the caller sent may be
 * repeated: each pattern matches the whole word, so only a caller that knows a path sees it.
 */
const INTERNALS: readonly RegExp[] = [
  /\n\s*at\s.*/g, // a stack
  /\b[\w.-]+\.[cm]?[jt]sx?:\d+\S*/g,
  /(?<![\w./\\-])(?:\/|~\/|\.\.?\/|[A-Za-z]:[\\/]|\\\\)[\w.@~-]+[\\/][^\s"'`)]*/g, // a path of two names or more
  /(?<![\w./\\-])(?:\/|~\/)(?:etc|home|mnt|opt|private|proc|root|run|secrets?|srv|tmp|usr|var)\b[^\s"'`)]*/g,
  /\bE(?:ACCES|ADDRINUSE|AI_AGAIN|CONN\w+|EXIST|HOSTUNREACH|INVAL|IO|ISDIR|MFILE|NETUNREACH|NOENT|NOSPC|NOTDIR|NOTEMPTY|NOTFOUND|PERM|PIPE|PROTO|ROFS|TIMEDOUT)\b.*/g,
  /\b[a-z][a-z\d+.-]*:\/\/[^\s"'`)]*/gi, // an address
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g,
  /\b(?:localhost|(?:[a-z\d-]+\.)+[a-z]{2,}):\d{2,5}\b/gi,
  /[\w.%+-]+@[\w-]+(?:\.[\w-]+)+/g, // an email address
  /\b(?:sk|pk|rk|ghp|gho|ghs|ghu|xox[abprs])[-_][\w-]{8,}/g, // keys of well-known services
  /\b(?:hf|npm|ghr|glpat|gloas|glrt|dckr_pat|shpat|whsec|r8|gsk|pypi|lin_api|sntrys)[-_][\w-]{8,}/g,
  /\bSG\.[\w.-]{8,}/g,
  /\b(?:org|proj|organization|project)-[a-zA-Z\d]{4,}\b/g, // accounts at a model's provider
  /\b(?:organization|tenant|account)\s+["'`]?[\w-]*\d[\w-]*/gi,
  /\b(?:AIza[\w-]{20,}|ya29\.[\w-]+|AKIA[A-Z\d]{12,}|github_pat_\w+)/g,
  /\beyJ[\w-]{8,}\.[\w.-]+/g, // a JSON Web Token
  /\b(?:bearer|basic)\s+[\w.~+/=-]{8,}/gi,
  /\b(?:x[-_])?(?:api|access|secret|private|auth|client|session|refresh|id)[-_ ]?(?:key|token|secret|id)\b["']?\s*(?:[:=]|\b(?:is|was)\b).*/gi,
  /\b(?:password|passwd|pwd|passphrase|secret|token|apikey|credentials?)["']?\s*[:=].*/gi,
  /\b(?:set-)?cookies?\b["']?\s*:?\s*["']?[\w-]+=.*/gi,
  /\b(?:authorization|x-[a-z-]*(?:key|token|secret))\b.*/gi,
  /-----BEGIN .*/g,
];

const UUID = /\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi;

/** A longer message is withheld: it probably quotes text that is not for the caller. */
const MAX_MESSAGE = 2000;

/** Details longer than this, as JSON, are left out. */
const MAX_DETAILS = 4096;

/** The parts of an error that was thrown, or that an output contains. */
interface Report {
  status: ErrorStatus;
  audience: Audience;
  message: unknown;
  details?: unknown;
}

/**
 * The one place where errors leave the server. A `UserFacingError` of the application is sent unchanged. Errors of this package keep their
 * message, unless it shows server internals. Every other error becomes a status (`INTERNAL`, or that of a `GenkitError`), a
 * fixed sentence, and an `errorId` in the details. The log has the whole error under this id.
 *
 * @param error The thrown value, or the error record of a failed turn or snapshot.
 * @param request The text of the request: ids in it are known to the caller, other ids are withheld.
 */
export function toSafeError(error: unknown, request = ''): SafeError {
  try {
    if (error instanceof Refusal) {
      const { status, message, details } = error;
      return { status, message, ...(details && { details }) };
    }
    const { status, audience, message, details } = reportOf(error);
    if (audience === 'user' && typeof message === 'string') {
      return { status, message, ...(isShort(details) && { details }) };
    }
    if (audience === 'caller' && typeof message === 'string' && isForCaller(status, message, request)) {
      return {
        status,
        message: message.replace(UUID, (id) => (request.includes(id) ? id : '…')),
        ...(isSafeDetails(details, request) && { details }),
      };
    }
    // An error record comes from a turn, whose caller is authenticated: another service, for example a model, refused the server.
    const isServersOwn = !(error instanceof Error) && (status === 'UNAUTHENTICATED' || status === 'PERMISSION_DENIED');
    return withheld(audience === 'operator' || (audience === 'status' && isServersOwn) ? 'INTERNAL' : status, error);
  } catch {
    // Reading the thrown value throws.
    return withheld('INTERNAL', undefined);
  }
}

/** The HTTP status that goes with an error. */
export function httpStatusOfError(error: unknown, safe: SafeError): number {
  return error instanceof Refusal ? error.httpStatus : httpStatusOf(safe.status);
}

function reportOf(error: unknown): Report {
  const { status, message, originalMessage, detail, details } = (error ?? {}) as Record<string, unknown>;
  const known: ErrorStatus = isErrorStatus(status) ? status : 'INTERNAL';
  if (error instanceof Error) {
    return { status: known, audience: audienceOf(error), message: originalMessage, details: detail };
  }
  // Stored records and those of Genkit's runtime do not name the origin of their message.
  return { status: known, audience: markedAudience(error) ?? 'status', message, details };
}

function isForCaller(status: ErrorStatus, message: string, request: string): boolean {
  return CALLER_STATUSES.has(status) && message.length <= MAX_MESSAGE && !showsInternals(message, request);
}

function showsInternals(text: string, request: string): boolean {
  return INTERNALS.some((pattern) => text.match(pattern)?.some((found) => !request.includes(found)));
}

function isShort(details: unknown): boolean {
  const text = details === undefined ? undefined : JSON.stringify(details);
  return text !== undefined && text.length <= MAX_DETAILS;
}

function isSafeDetails(details: unknown, request: string): boolean {
  const text = JSON.stringify(details);
  if (!isShort(details) || showsInternals(text, request)) {
    return false;
  }
  return (text.match(UUID) ?? []).every((id) => request.includes(id));
}

function withheld(status: ErrorStatus, error: unknown): SafeError {
  const known = knownErrorId(error);
  const errorId = known ?? globalThis.crypto.randomUUID();
  const text = `An agent request failed (errorId ${errorId}).`;
  // A stored record holds the sentence already: its error was logged when the turn failed.
  const isStored = known !== undefined && (error as { message?: unknown }).message === safeSentence(status);
  if (!isStored && !isLogged(error)) {
    logger.error({ message: text, metadata: { errorId, status }, error: forLog(causeOf(error) ?? error) });
  }
  return { status, message: safeSentence(status), details: { errorId } };
}

/** The error with its causes in the stack: Genkit's logger writes name, message and stack only. */
function forLog(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return typeof thrown === 'object' ? thrown : { message: describeThrown(thrown) };
  return { name: thrown.name, message: thrown.message, stack: describeThrown(thrown) };
}

/** The runtime may already have logged the error of a turn and given it an id. */
function knownErrorId(error: unknown): string | undefined {
  const { errorId } = ((error as { details?: unknown } | undefined)?.details ?? {}) as { errorId?: unknown };
  return typeof errorId === 'string' && /^[\da-f-]{8,64}$/i.test(errorId) ? errorId : undefined;
}
