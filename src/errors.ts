import { GenkitError, type StatusName } from 'genkit';
import { logger } from 'genkit/logging';
import { isKind, KIND } from './error-kind.ts';

/** Registered, like {@link KIND}: the server may be of the other copy of the package than the runtime. */
const AUDIENCE = Symbol.for('genkitx-agents.error-audience');

/**
 * The part of an error that a client may see. `user`: all of it; the application wrote it for its user, or it names only snapshots that the
 * caller may read. `caller`: status and message, which this package wrote for the agent's caller. `status`: the status only. `operator`:
 * neither. Code in the process may read all of an error.
 */
export type Audience = 'user' | 'caller' | 'status' | 'operator';

/** Marks an error, or the record of one, with its audience. JSON does not contain the mark, so a record that is read back
 * from a store has no audience. */
export function addressTo<T extends object>(audience: Audience, error: T): T {
  return Object.defineProperty(error, AUDIENCE, { value: audience, configurable: true });
}

/** The audience that {@link addressTo} set; `undefined` without one. */
export function markedAudience(error: unknown): Audience | undefined {
  return (error as { [AUDIENCE]?: Audience } | null | undefined)?.[AUDIENCE];
}

/**
 * The session's leaf is not the one that the save expected (status `ABORTED`): another turn was saved first.
 * Read the session again and repeat the turn, or branch by resuming from the `snapshotId`.
 *
 * @example
 * try {
 *   await store.saveSnapshot(undefined, () => next, { expectedLeafId: leaf.snapshotId });
 * } catch (error) {
 *   if (!SessionConflictError.isInstance(error)) throw error;
 *   console.log(`Another turn saved ${error.actualLeafId} first.`);
 * }
 */
export class SessionConflictError extends GenkitError {
  /** @internal */
  readonly [KIND] = 'SessionConflictError';
  /** The session that has changed. */
  readonly sessionId: string;
  /** The leaf that the save expected; `null`: none. */
  readonly expectedLeafId: string | null;
  /** The leaf that the session has; `null`: none. */
  readonly actualLeafId: string | null;

  /** @param conflict.advice What to do, in sentences. Default: what to do after a save. */
  constructor(conflict: {
    sessionId: string;
    expectedLeafId: string | null;
    actualLeafId: string | null;
    advice?: string;
  }) {
    const { sessionId, expectedLeafId, actualLeafId } = conflict;
    const { advice = 'Read the session again and repeat the turn, or resume by snapshotId to branch.' } = conflict;
    super({
      status: 'ABORTED',
      message:
        `Session ${quote(sessionId)} has ${actualLeafId === null ? 'no snapshot' : `the leaf ${quote(actualLeafId)}`}, ` +
        `not ${expectedLeafId === null ? 'none' : quote(expectedLeafId)} as this save expected. ${advice}`,
    });
    this.name = 'SessionConflictError';
    addressTo('caller', this);
    this.sessionId = sessionId;
    this.expectedLeafId = expectedLeafId;
    this.actualLeafId = actualLeafId;
  }

  /** Recognizes the errors of every copy of the package. */
  static isInstance(error: unknown): error is SessionConflictError {
    return isKind(error, 'SessionConflictError');
  }
}

/**
 * An agent was called in a way that does not fit how it keeps its state: `state` sent to an agent with a store, `sessionId` to one without,
 * a `snapshotId` of another session. Thrown to the caller instead of ending the turn as failed.
 */
export class AgentInitError extends GenkitError {
  /** @internal */
  readonly [KIND] = 'AgentInitError';

  constructor(options: { status: StatusName; message: string; detail?: unknown }) {
    super(options);
    this.name = 'AgentInitError';
    addressTo('caller', this);
  }

  /** Recognizes the errors of every copy of the package. */
  static isInstance(error: unknown): error is AgentInitError {
    return isKind(error, 'AgentInitError');
  }
}

/**
 * A key or a value that a session's state does not accept (status `INVALID_ARGUMENT`): not JSON, too long, too large, too deep, or against the
 * schema. Nothing was changed.
 */
export class StateError extends GenkitError {
  /** @internal */
  readonly [KIND] = 'StateError';
  /** The key as it was given, with its prefix; of a record that a store refused, the key in the record. */
  readonly key: string;
  /** The place in the value, as a JSON Pointer; empty for the value itself, and for any place in a `temp:` value. */
  readonly path: string;
  /** What is wrong, and what to do. */
  readonly reason: string;

  constructor(fault: { key: string; path?: string; reason: string }) {
    const { key, path = '', reason } = fault;
    const place = path === '' ? '' : `, at ${quote(path)}`;
    super({ status: 'INVALID_ARGUMENT', message: `State key ${quote(key)}${place}: ${reason}.` });
    this.name = 'StateError';
    // The application's own code is at fault, and its callers may not know the keys.
    addressTo('operator', this);
    this.key = key;
    this.path = path;
    this.reason = reason;
  }

  /** Recognizes the errors of every copy of the package. */
  static isInstance(error: unknown): error is StateError {
    return isKind(error, 'StateError');
  }
}

/**
 * The request for a model does not fit its window (status `FAILED_PRECONDITION`): the instructions, the tools and the current turn alone take
 * more than the budget, or the model refused the length twice. The message has the table of the sections.
 */
export class ContextOverflowError extends GenkitError {
  /** @internal */
  readonly [KIND] = 'ContextOverflowError';
  /** The budget, in tokens. */
  readonly maxTokens: number;
  /** Estimated tokens of each section, as they would be sent. */
  readonly sections: Readonly<Record<string, number>>;

  constructor(overflow: { maxTokens: number; sections: Readonly<Record<string, number>>; reason: string }) {
    const { maxTokens, sections, reason } = overflow;
    const rows = Object.entries(sections).map(([name, tokens]) => `  ${name.padEnd(12)} ${String(tokens).padStart(9)}`);
    super({
      status: 'FAILED_PRECONDITION',
      message: `${reason} Estimated tokens by section, of ${maxTokens} allowed:\n${rows.join('\n')}`,
    });
    this.name = 'ContextOverflowError';
    addressTo('status', this);
    this.maxTokens = maxTokens;
    this.sections = sections;
  }

  /** Recognizes the errors of every copy of the package. */
  static isInstance(error: unknown): error is ContextOverflowError {
    return isKind(error, 'ContextOverflowError');
  }
}

/** The caller's argument is invalid; a retry will not help. */
export function invalidArgument(message: string, detail?: unknown): GenkitError {
  const error = new GenkitError({ status: 'INVALID_ARGUMENT', message, ...(detail !== undefined && { detail }) });
  return addressTo('caller', error);
}

/** The argument is valid, but the stored data does not allow the operation. */
export function failedPrecondition(message: string): GenkitError {
  return addressTo('caller', new GenkitError({ status: 'FAILED_PRECONDITION', message }));
}

/** The item that the caller names does not exist. */
export function notFound(message: string): GenkitError {
  return addressTo('caller', new GenkitError({ status: 'NOT_FOUND', message }));
}

/** A call after `close()`. `what` names the closed object, for example the store's class. */
export function closed(what: string): GenkitError {
  return failedPrecondition(`This ${what} is closed; use a new one.`);
}

/** Stored data is missing or unreadable. */
export function dataLoss(message: string): GenkitError {
  return new GenkitError({ status: 'DATA_LOSS', message });
}

/** Whether data can't be read until an operator acts: it is damaged, its key is missing, or a newer version wrote it. */
export function isUnreadable(thrown: unknown): thrown is GenkitError {
  return thrown instanceof GenkitError && (thrown.status === 'DATA_LOSS' || thrown.status === 'FAILED_PRECONDITION');
}

/** Whether a store refused a write because another one came first. */
export function isAborted(thrown: unknown): boolean {
  return (thrown as { status?: unknown } | null)?.status === 'ABORTED';
}

/** The medium does not answer; the same call may succeed later. */
export function unavailable(message: string, cause?: unknown): GenkitError {
  const error = new GenkitError({ status: 'UNAVAILABLE', message });
  return cause === undefined ? error : causedBy(error, cause);
}

/** Gives an error its cause, as `new Error(message, { cause })` does. JSON omits it. */
export function causedBy(error: GenkitError, cause: unknown): GenkitError {
  return Object.defineProperty(error, 'cause', { value: cause, configurable: true, writable: true });
}

/** An id in a message: quoted, escaped, never longer than a line. */
export function quote(id: string): string {
  const text = JSON.stringify(id);
  return text.length <= 100 ? text : `${text.slice(0, 96)}…"`;
}

/** Causes of causes beyond these are not described. */
const MAX_CAUSES = 8;

/** The message of an error, without its stack; of other values a description. Never throws. */
export function errorMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : describeThrown(thrown);
}

/** Logs a sentence about what failed, and the error. */
export function logError(sentence: string, thrown: unknown): void {
  logger.error(`${sentence} ${describeThrown(thrown)}`);
}

/** Like {@link logError}, for a failure from which the package recovers. */
export function logWarning(sentence: string, thrown: unknown): void {
  logger.warn(`${sentence} ${describeThrown(thrown)}`);
}

/** Describes a thrown value for the log: an error with its stack and its causes. Never throws, even if reading the value throws. */
export function describeThrown(thrown: unknown): string {
  try {
    const described: string[] = [];
    for (let cause = thrown; described.length < MAX_CAUSES; cause = cause.cause) {
      if (!(cause instanceof Error)) return [...described, String(cause)].join('\nCaused by: ');
      described.push(String(cause.stack ?? cause));
      if (cause.cause === undefined) break;
    }
    return described.join('\nCaused by: ');
  } catch {
    return 'The thrown value cannot be described.';
  }
}
