import type { ActionContext } from 'genkit';
import type { StreamManager } from 'genkit/beta';
import type { ContextProvider } from 'genkit/context';
import { invalidArgument } from '../errors.ts';
import {
  checkOptions,
  isBoolean,
  isFunction,
  isSignal,
  isTimerMs,
  isWhole,
  type OptionCheck,
} from '../store/check-options.ts';

const MIB = 1024 * 1024;

/** Options of `agentHandler` and `agentRouter`. Either `context` or `anonymous` is required. */
export interface AgentServerOptions {
  /**
   * Identifies the caller: takes the method and the headers of the request and returns the context of the run, a plain object, or throws.
   * It is called before the body is read, so `input` is missing (see `contextReadsInput`). An error refuses the request: a
   * `UserFacingError` with its status and message, any other `GenkitError` with its status, any other error with 500. Genkit's `apiKey()`
   * and the Firebase plugin's `firebaseContext()` are such providers.
   */
  context?: ContextProvider;
  /**
   * Reads the body first and passes its `data` to `context` as `input`. Unauthenticated callers can then make the server read and parse
   * bodies up to the limits. Default: false; a provider that reads `input` then fails the request.
   */
  contextReadsInput?: boolean;
  /** `true`: every caller may use the agents and read each snapshot whose id it knows. Default: `false`. */
  anonymous?: boolean;
  /** The path under which the agents are served, for example `/api`. Default: the root, or the path where the router is mounted. */
  basePath?: string;
  /** Longest body, in bytes. Default: 4 MiB. A client that keeps the state sends all of it with each turn. */
  maxBodyBytes?: number;
  /** How long a body may take to arrive, in ms. Default: 30,000. */
  bodyTimeoutMs?: number;
  /** How deep a body may nest objects and arrays. Default: 100. */
  maxDepth?: number;
  /** How many names and values a body may have, on all levels together. The server's work is proportional to it. Default: 100,000. */
  maxValues?: number;
  /**
   * How long a turn may take, in ms. Then its signal is aborted and the client gets `DEADLINE_EXCEEDED`. The `context` provider and the
   * `streamManager` each have the same limit, before the turn. Default: no limit.
   */
  timeoutMs?: number;
  /**
   * How many unread characters all answers together may buffer. Above it, slow clients are ended, in order of their backlog times the time
   * since they last read: a client gets `RESOURCE_EXHAUSTED`, or in the middle of a long frame its connection is closed. Its turn is
   * treated as after a disconnect: it is aborted, or with a `streamManager` kept until the client reconnects. Default: 16,777,216, about 16
   * MB of memory, or 32 MB of text that is not Latin.
   */
  maxUnreadChars?: number;
  /** How long a client may stop reading an answer, in ms; then its connection is closed. Default: 30,000. */
  readTimeoutMs?: number;
  /**
   * Makes streams resumable: a client that lost its connection requests the stream by the id in its `x-genkit-stream-id` header and gets
   * all of it from the beginning. Genkit's `InMemoryStreamManager` serves one process, the `FirestoreStreamManager` of
   * `@genkit-ai/firebase` several. It stores the frames as text, under a key that only the caller of the turn can request. Default: none.
   */
  streamManager?: StreamManager;
  /**
   * With a `streamManager`: how long a turn continues after its last client in this process disconnected, in ms, before it is aborted.
   * Default: 30,000. `false`: the turn runs to its end; use it if clients may reconnect to another process.
   */
  reconnectWithinMs?: number | false;
  /**
   * With a `streamManager`: returns the part of the context, as JSON, that identifies the owner of a stream. Default: the whole context
   * without the members that change when a token is refreshed (`rawToken`, `iat`, `exp`, ...). Needed if other members differ between
   * requests.
   */
  streamOwner?: (context: ActionContext) => unknown;
  /**
   * Shuts the server down. When it aborts, running turns are aborted, and their callers get the outcome; later requests are refused with
   * `UNAVAILABLE`. Detached turns continue. Default: none.
   */
  stopSignal?: AbortSignal;
}

/** {@link AgentServerOptions} with all defaults applied. */
export interface ServerSettings {
  context: ContextProvider;
  contextReadsInput: boolean;
  basePath: string;
  maxBodyBytes: number;
  bodyTimeoutMs: number;
  maxDepth: number;
  maxValues: number;
  timeoutMs: number | undefined;
  maxUnreadChars: number;
  readTimeoutMs: number;
  resumable: ResumableSettings | undefined;
  stopSignal: AbortSignal | undefined;
}

/** How streams are kept for clients that reconnect. */
export interface ResumableSettings {
  streamManager: StreamManager;
  /** `Infinity`: without limit. */
  reconnectWithinMs: number;
  streamOwner: ((context: ActionContext) => unknown) | undefined;
}

const OWNER = 'Serving agents';

const CHECKS: Readonly<Record<keyof AgentServerOptions, OptionCheck>> = {
  context: isFunction,
  contextReadsInput: isBoolean,
  anonymous: isBoolean,
  basePath: (value) => (typeof value === 'string' && /^(\/|$)/.test(value) ? undefined : 'a path that starts with "/"'),
  maxBodyBytes: isWhole(1),
  bodyTimeoutMs: isTimerMs(1),
  maxDepth: isWhole(1),
  maxValues: isWhole(1),
  timeoutMs: isTimerMs(1),
  maxUnreadChars: isWhole(1),
  readTimeoutMs: isTimerMs(1),
  streamManager: isStreamManager,
  reconnectWithinMs: (value) => (value === false ? undefined : isTimerMs(1)(value)),
  streamOwner: isFunction,
  stopSignal: isSignal,
};

/** @throws `INVALID_ARGUMENT` when an option is unknown or invalid, or when neither `context` nor `anonymous` is given. */
export function readOptions(options: AgentServerOptions): ServerSettings {
  checkOptions(OWNER, options, CHECKS);
  const { contextReadsInput = false, basePath = '' } = options ?? {};
  const context = readContext(options);
  if (contextReadsInput && options.context === undefined) {
    throw invalidArgument(`${OWNER}: contextReadsInput needs a context.`);
  }
  return {
    context,
    contextReadsInput,
    basePath: basePath.replace(/\/+$/, ''),
    maxBodyBytes: options.maxBodyBytes ?? 4 * MIB,
    bodyTimeoutMs: options.bodyTimeoutMs ?? 30_000,
    maxDepth: options.maxDepth ?? 100,
    maxValues: options.maxValues ?? 100_000,
    timeoutMs: options.timeoutMs,
    maxUnreadChars: options.maxUnreadChars ?? 16 * MIB,
    readTimeoutMs: options.readTimeoutMs ?? 30_000,
    resumable: readResumable(options),
    stopSignal: options.stopSignal,
  };
}

function readContext({ context, anonymous }: AgentServerOptions = {}): ContextProvider {
  if (context === undefined && !anonymous) {
    throw invalidArgument(
      `${OWNER} needs authentication: pass "context", a function that returns the context of a request ` +
        'or throws (for example Genkit\'s apiKey()), or "anonymous: true" to serve every caller.',
    );
  }
  if (context !== undefined && anonymous) {
    throw invalidArgument(`${OWNER}: pass either "context" or "anonymous: true", not both.`);
  }
  return context ?? (() => ({}));
}

function readResumable(options: AgentServerOptions): ResumableSettings | undefined {
  const { streamManager, reconnectWithinMs = 30_000, streamOwner } = options;
  if (streamManager) {
    return {
      streamManager,
      reconnectWithinMs: reconnectWithinMs === false ? Infinity : reconnectWithinMs,
      streamOwner,
    };
  }
  if (options.reconnectWithinMs !== undefined || streamOwner !== undefined) {
    throw invalidArgument(`${OWNER}: reconnectWithinMs and streamOwner need a streamManager.`);
  }
  return undefined;
}

function isStreamManager(value: unknown): string | undefined {
  const { open, subscribe } = (value ?? {}) as { [K in keyof StreamManager]?: unknown };
  return typeof open === 'function' && typeof subscribe === 'function'
    ? undefined
    : "a stream manager, for example Genkit's InMemoryStreamManager";
}
