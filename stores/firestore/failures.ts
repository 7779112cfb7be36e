import { GenkitError, type StatusName } from 'genkit';
import { causedBy, failedPrecondition } from '../../src/errors.ts';

/** Codes of gRPC that this store distinguishes. */
const Code = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** The data has changed since it was read: read it and decide again. */
export class Stale extends Error {}

/** A refusal that no read can change. */
export class FinalRefusal extends GenkitError {
  constructor(message: string) {
    super({ status: 'INVALID_ARGUMENT', message });
  }
}

/** An earlier commit of the save was made, though its answer was lost. */
export class AlreadySaved extends Error {}

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

export function isDataLoss(error: unknown): boolean {
  return error instanceof GenkitError && error.status === 'DATA_LOSS';
}

const OUTAGE = ['UNAVAILABLE', 'Firestore does not answer. Try again later.'] as const;
const DENIED = ['PERMISSION_DENIED', 'the server may not use this database. Check its credentials and roles.'] as const;
const CONTENDED = ['ABORTED', 'other writers changed the same data. Try again.'] as const;

/** The status and the advice for each code. */
const ADVICE: Readonly<Record<number, readonly [StatusName, string]>> = {
  [Code.CANCELLED]: OUTAGE,
  [Code.UNKNOWN]: OUTAGE,
  [Code.INTERNAL]: OUTAGE,
  [Code.UNAVAILABLE]: OUTAGE,
  [Code.DEADLINE_EXCEEDED]: OUTAGE,
  [Code.RESOURCE_EXHAUSTED]: ['RESOURCE_EXHAUSTED', "Firestore's quota is used up. Try again later."],
  [Code.PERMISSION_DENIED]: DENIED,
  [Code.UNAUTHENTICATED]: DENIED,
  [Code.NOT_FOUND]: ['FAILED_PRECONDITION', 'the database does not exist. Create it, or configure another.'],
  [Code.FAILED_PRECONDITION]: ['FAILED_PRECONDITION', 'the database refused it. Check its mode and its indexes.'],
  [Code.ALREADY_EXISTS]: CONTENDED,
  [Code.ABORTED]: CONTENDED,
  [Code.INVALID_ARGUMENT]: ['INVALID_ARGUMENT', 'the database refused it as too large or malformed.'],
};

/** Converts a failure of Firestore for the caller, with the original error as its cause. Returns other errors unchanged. */
export function explained(error: unknown, what: string): unknown {
  const [status, advice] = ADVICE[codeOf(error) ?? 0] ?? [];
  return status && advice ? causedBy(new GenkitError({ status, message: `${what} failed: ${advice}` }), error) : error;
}

/** Errors that Firestore's client threw. Other errors, for example of a mutator, may have codes that are not of gRPC. */
const clientErrors = new WeakSet<object>();

/**
 * Marks an error of Firestore's client, so that {@link explained} and the checks of this file recognize it. Returns the same error; one
 * without a code, for example because no project was found, becomes `FAILED_PRECONDITION`.
 */
export function ofClient(error: unknown): unknown {
  if (error instanceof GenkitError || error instanceof Stale) return error;
  if (typeof error === 'object' && error !== null) clientErrors.add(error);
  if ((codeOf(error) ?? 0) in ADVICE) return error;
  const advice = "Firestore's client can't send requests. Check its project, its credentials and its options.";
  return causedBy(failedPrecondition(advice), error);
}

export function tooContended(what: string): GenkitError {
  return new GenkitError({
    status: 'ABORTED',
    message: `${what} failed: other writers changed the same data in each attempt. Try again.`,
  });
}

/** Whether Firestore or its client failed. */
export function isTransportFailure(error: unknown): boolean {
  return codeOf(error) !== undefined;
}

/** The code of gRPC. */
function codeOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !clientErrors.has(error)) return undefined;
  const { code } = error as { code?: unknown };
  return typeof code === 'number' ? code : undefined;
}
