import { isErrorStatus, type ErrorStatus } from './status.ts';
import type { AgentResponse } from './types.ts';

/**
 * The package ships as ES modules and as CommonJS, so one process can hold two copies of this class. `instanceof` tells the copies apart,
 * this marker does not.
 */
const KIND = Symbol.for('genkitx-agents.error-kind');

/** What an {@link AgentError} is made of. */
export interface AgentErrorOptions<State = unknown> {
  /** The kind of the error, by which a program tells what to do. */
  status: ErrorStatus;
  /** What happened, for a person. */
  message: string;
  /** What more the other side told, as JSON. */
  details?: unknown;
  /** The custom state that the conversation is left with. */
  state?: State;
  /** The snapshot that the conversation continues from. */
  snapshotId?: string;
  /** The failed turn, when there was one. */
  response?: AgentResponse<State>;
  /** What was thrown below. */
  cause?: unknown;
}

/**
 * Thrown when a turn fails, or when an agent can't be reached or refuses a call. In process `cause` is what the agent's own code threw, with
 * its stack. Over HTTP the error stays on the server, whose log has it with the id in `details.errorId`.
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
  /** What more the other side told. An error from inside a server has an `errorId` here, which the server's log has too. */
  readonly details?: unknown;
  /** The custom state before the turn: the failed turn's changes are not in it. */
  readonly state?: State;
  /** The last good snapshot: the chat continues from there. */
  readonly snapshotId?: string;
  /** The failed turn; empty where there was none. */
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
   * Of a damaged session (status `DATA_LOSS`): the nearest snapshot before the damage that can be read. The conversation goes on from
   * `agent.loadChat({ snapshotId })`. Absent when there is none: start a new session.
   */
  get healthySnapshotId(): string | undefined {
    const { healthySnapshotId } = (this.details ?? {}) as { healthySnapshotId?: unknown };
    return typeof healthySnapshotId === 'string' ? healthySnapshotId : undefined;
  }

  /** Recognises the error whichever copy of the package threw it. */
  static isInstance(error: unknown): error is AgentError {
    return typeof error === 'object' && error !== null && (error as { [KIND]?: unknown })[KIND] === 'AgentError';
  }
}

/** The connection broke, or never was: the other side has not said how the call ended. */
export class ConnectionLostError extends AgentError {
  constructor(message: string, cause?: unknown) {
    super({ status: 'UNAVAILABLE', message, cause });
  }
}

/** Status, message and details of an error, as they travel inside an output or a body. */
export interface ErrorRecord {
  status: ErrorStatus;
  message: string;
  details?: unknown;
}

/** Reads an error as it came over the wire. `fallback` is the status of one that names none. */
export function readErrorRecord(error: unknown, fallback: ErrorStatus): ErrorRecord {
  const { status, message, details } = (error ?? {}) as { status?: unknown; message?: unknown; details?: unknown };
  const known = isErrorStatus(status) ? status : fallback;
  const text = typeof message === 'string' && message !== '' ? message : 'The agent failed without saying why.';
  return { status: known, message: withoutPrefix(text, known), ...(details !== undefined && { details }) };
}

/** Makes an {@link AgentError} of whatever was thrown; one that is one already stays as it is. */
export function toAgentError(error: unknown): AgentError {
  return AgentError.isInstance(error) ? error : new AgentError({ ...describeError(error), cause: error });
}

/** Status, message and details of whatever was thrown. */
export function describeError(error: unknown): ErrorRecord {
  if (AgentError.isInstance(error)) {
    return { status: error.status, message: error.message, details: error.details };
  }
  if (!(error instanceof Error)) {
    return { status: 'INTERNAL', message: 'The agent threw something that is not an error.', details: error };
  }
  // A GenkitError prefixes its message with its status and calls its details `detail`; `instanceof` would miss those of other copies.
  const { status, originalMessage, detail } = error as {
    status?: unknown;
    originalMessage?: unknown;
    detail?: unknown;
  };
  const message = typeof originalMessage === 'string' ? originalMessage : error.message;
  return readErrorRecord({ status, message, details: detail }, statusOfDomError(error));
}

/** The errors that signals and `fetch` reject with have a name in place of a status. */
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

/** The response of an error that no turn belongs to. */
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
