import { GenkitError } from 'genkit';
import { failedPrecondition, invalidArgument, unavailable } from '../../src/errors.ts';

/** Codes of gRPC that this store tells apart. */
const Code = {
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** What was assumed of the database is not so (any more): read it and decide again. */
export class Stale extends Error {
  /** The refusal that the assumption led to; it counts only if it comes again after a read. */
  override readonly cause: unknown;

  constructor(cause?: unknown) {
    super('stale');
    this.cause = cause;
  }
}

/** Refused whatever the database holds, so nothing is read to confirm it. */
export class FinalRefusal extends Error {
  readonly error: GenkitError;

  constructor(error: GenkitError) {
    super(error.message);
    this.error = error;
  }
}

/** The save was made by an earlier commit of it, of which no answer came. */
export class AlreadySaved extends Error {
  constructor() {
    super('already saved');
  }
}

/** Whether a commit was refused because a document is not as it expected. */
export function isConflict(error: unknown): boolean {
  const code = codeOf(error);
  return (
    code === Code.ALREADY_EXISTS ||
    code === Code.FAILED_PRECONDITION ||
    code === Code.NOT_FOUND ||
    code === Code.ABORTED
  );
}

/** Whether a commit was refused because a document that it needs is not there. */
export function isMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === Code.NOT_FOUND || code === Code.FAILED_PRECONDITION;
}

/** What a failure of Firestore is for the caller; errors of this package pass as they are. */
export function explained(error: unknown, what: string): unknown {
  if (error instanceof GenkitError || error instanceof Stale || error instanceof FinalRefusal) return error;
  switch (codeOf(error)) {
    case Code.UNAVAILABLE:
    case Code.DEADLINE_EXCEEDED:
      return unavailable(`${what} failed: Firestore does not answer. Try again later.`);
    case Code.RESOURCE_EXHAUSTED:
      return typed('RESOURCE_EXHAUSTED', `${what} failed: Firestore's quota is used up. Try again later.`);
    case Code.PERMISSION_DENIED:
    case Code.UNAUTHENTICATED:
      return typed(
        'PERMISSION_DENIED',
        `${what} failed: the server may not use this database. Check its credentials and roles.`,
      );
    case Code.NOT_FOUND:
      return failedPrecondition(`${what} failed: there is no such database. Create it, or configure another.`);
    case Code.FAILED_PRECONDITION:
      return failedPrecondition(`${what} failed: the database refused it. Check its mode and its indexes.`);
    case Code.ABORTED:
      return typed('ABORTED', `${what} failed: others wrote at the same time. Try again.`);
    case Code.INVALID_ARGUMENT:
      return invalidArgument(`${what} failed: the database refused it as too large or malformed.`);
    default:
      return error;
  }
}

export function tooContended(what: string): GenkitError {
  return typed('ABORTED', `${what} failed: others wrote the same all the time. Try again.`);
}

function typed(status: 'RESOURCE_EXHAUSTED' | 'PERMISSION_DENIED' | 'ABORTED', message: string): GenkitError {
  return new GenkitError({ status, message });
}

/** Whether Firestore's client failed, or Firestore itself. */
export function isTransportFailure(error: unknown): boolean {
  return codeOf(error) !== undefined;
}

/** The code of gRPC; a `GenkitError` has a `code` as well, of HTTP. */
function codeOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || error instanceof GenkitError) return undefined;
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
