import { isKind, KIND } from '../error-kind.ts';
import { isErrorStatus, type ErrorStatus } from '../error-status.ts';
import type { AgentResponse } from './types.ts';

/** The members of an {@link AgentError}. */
export interface AgentErrorOptions<State = unknown> {
  /** The kind of the error, for programs. */
  status: ErrorStatus;
  /** The message, for people. */
  message: string;
  /** Further details of the agent, as JSON. */
  details?: unknown;
  /** The custom state after the failure. */
  state?: State;
  /** The snapshot that the conversation continues from. */
  snapshotId?: string;
  /** The failed turn. Optional. */
  response?: AgentResponse<State>;
  /** The underlying error. */
  cause?: unknown;
}

/**
 * Thrown when a turn fails, or when an agent can't be reached or refuses a call. In process `cause` is the error that the agent's code
 * threw, with its stack. Over HTTP that error stays in the server's log, under the id in `details.errorId`.
 *
 * @example
 * try {
 *   await chat.send('Where is my order?');
 * } catch (error) {
 *   if (AgentError.isInstance(error) && error.status === 'UNAVAILABLE') retryLater();
 * }
 */
export class AgentError<State = unknown> extends Error {
  /** @internal */
  readonly [KIND] = 'AgentError';
  /** The kind of the error. */
  readonly status: ErrorStatus;
  /** Further details. An internal error of a server has an `errorId` here, which is also in the server's log. */
  readonly details?: unknown;
  /** The custom state before the turn: the failed turn's changes are not in it. */
  readonly state?: State;
  /** The last completed snapshot; the chat continues from it. */
  readonly snapshotId?: string;
  /** The failed turn; empty if there was none. */
  readonly response: AgentResponse<State>;

  constructor(options: AgentErrorOptions<State>) {
    super(options.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AgentError';
    this.status = options.status;
    this.details = options.details;
    this.state = options.state;
    this.snapshotId = options.snapshotId;
    this.response = options.response ?? noResponse(this);
  }

  /**
   * For a damaged session (status `DATA_LOSS`): the nearest readable snapshot before the damage. Continue the conversation by
   * `agent.loadChat({ snapshotId })`. `undefined` when there is none: start a new session.
   */
  get healthySnapshotId(): string | undefined {
    const { healthySnapshotId } = (this.details ?? {}) as { healthySnapshotId?: unknown };
    return typeof healthySnapshotId === 'string' ? healthySnapshotId : undefined;
  }

  /** Recognizes the errors of every copy of the package. */
  static isInstance(error: unknown): error is AgentError {
    return isKind(error, 'AgentError');
  }
}

export function invalid(message: string): AgentError {
  return new AgentError({ status: 'INVALID_ARGUMENT', message });
}

/** The connection failed or broke, so the outcome of the call is unknown. */
export class ConnectionLostError extends AgentError {
  constructor(message: string, cause?: unknown) {
    super({ status: 'UNAVAILABLE', message, cause });
  }
}

/** Status, message and details of an error, as sent in an output or a body. */
export interface ErrorRecord {
  status: ErrorStatus;
  message: string;
  details?: unknown;
}

/** Reads an error of the wire format. `fallback` is the status of an error without one. */
export function readErrorRecord(error: unknown, fallback: ErrorStatus): ErrorRecord {
  const { status, message, details } = (error ?? {}) as { status?: unknown; message?: unknown; details?: unknown };
  const known = isErrorStatus(status) ? status : fallback;
  const text = typeof message === 'string' && message !== '' ? message : 'The agent failed without a message.';
  return { status: known, message: withoutPrefix(text, known), ...(details !== undefined && { details }) };
}

/** Converts a thrown value to an {@link AgentError}; returns an `AgentError` unchanged. */
export function toAgentError(error: unknown): AgentError {
  return AgentError.isInstance(error) ? error : new AgentError({ ...describeError(error), cause: error });
}

/** Runs `work`; all its errors are thrown as an {@link AgentError}. */
export async function withAgentErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toAgentError(error);
  }
}

/** Status, message and details of a thrown value. */
export function describeError(error: unknown): ErrorRecord {
  if (AgentError.isInstance(error)) {
    return { status: error.status, message: error.message, details: error.details };
  }
  if (!(error instanceof Error)) {
    return { status: 'INTERNAL', message: 'The agent threw a value that is not an error.', details: error };
  }
  // A GenkitError has its status before its message, and details in `detail`. `instanceof` would miss errors of another copy of Genkit.
  const { status, originalMessage, detail } = error as {
    status?: unknown;
    originalMessage?: unknown;
    detail?: unknown;
  };
  const message = typeof originalMessage === 'string' ? originalMessage : error.message;
  return readErrorRecord({ status, message, details: detail }, statusOfDomError(error));
}

/** The errors of signals and of `fetch` have a name instead of a status. */
function statusOfDomError(error: Error): ErrorStatus {
  if (error.name === 'TimeoutError') {
    return 'DEADLINE_EXCEEDED';
  }
  return error.name === 'AbortError' ? 'CANCELLED' : 'INTERNAL';
}

function withoutPrefix(message: string, status: string): string {
  const prefix = `${status}: `;
  return message.startsWith(prefix) ? message.slice(prefix.length) : message;
}

/** The response of an error without a turn. */
function noResponse<State>(error: AgentError<State>): AgentResponse<State> {
  const { status, message } = error;
  return {
    raw: { finishReason: 'failed', error: { status, message } },
    finishReason: 'failed',
    finishMessage: message,
    text: '',
    reasoning: '',
    media: null,
    data: null,
    output: null,
    usage: {},
    toolRequests: [],
    interrupts: [],
    messages: [],
    artifacts: [],
    assertValid: () => {
      throw error;
    },
  };
}
