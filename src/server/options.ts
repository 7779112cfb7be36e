import type { ActionContext } from 'genkit';
import type { StreamManager } from 'genkit/beta';
import type { ContextProvider } from 'genkit/context';
import { invalidArgument } from '../errors.ts';
import { unknownOption } from '../option-names.ts';

const MIB = 1024 * 1024;

/** Options of `agentHandler` and `agentRouter`. One of `context` and `anonymous` must be there. */
export interface AgentServerOptions {
  /**
   * Says who is asking: gets the method and the headers of the request and answers the context that the agent runs in, a plain object, or throws. It is
   * asked before the body is read, so `input` is not there (see `contextReadsInput`). What it throws turns the request
   * down: a `UserFacingError` with its status and message, any other `GenkitError` with its status, anything else with 500. Genkit's `apiKey()` and the
   * Firebase plugin's `firebaseContext()` are such providers.
   */
  context?: ContextProvider;
  /**
   * `true`: the body is read first, and `context` gets its `data` as `input`. Anybody can then make the server read and parse bodies up to the
   * limits. Default: false, and a provider that reads `input` is an error.
   */
  contextReadsInput?: boolean;
  /** `true`: anybody may talk to the agents and read whatever snapshot they can name. */
  anonymous?: boolean;
  /** The path under which the agents are served, `/api` say. Unless told they are at the root, or where the router is mounted. */
  basePath?: string;
  /** Longest body, in bytes; 4 MiB unless told. A client that keeps the state sends all of it with each turn. */
  maxBodyBytes?: number;
  /** How long a body may take to arrive, in ms; 30,000 unless told. */
  bodyTimeoutMs?: number;
  /** How many objects and arrays a body may nest; 100 unless told. */
  maxDepth?: number;
  /** How many names and values a body may hold, all levels together. Default: 100,000. The time that the server works on a body goes with them. */
  maxValues?: number;
  /**
   * How long a turn may take, in ms; without limit unless told. The turn's signal is then aborted and the client gets `DEADLINE_EXCEEDED`. The
   * `context` provider and the `streamManager` may each take as long before it.
   */
  timeoutMs?: number;
  /**
   * How much of all streams together may wait for clients that have not read it, in characters. Default: 67,108,864. When it is exceeded, the
   * client that left most unread gets `RESOURCE_EXHAUSTED` in place of it, and its turn goes on as without it: it is aborted, or kept for the
   * client's return where there is a `streamManager`.
   */
  maxUnreadChars?: number;
  /** How long a client may take nothing of an answer that waits for it, in ms. Default: 30,000. Its connection is then closed. */
  readTimeoutMs?: number;
  /**
   * Makes streams resumable: a client that lost its connection asks for the stream by the id in its `x-genkit-stream-id` header and gets all
   * of it again, then the rest. Genkit's `InMemoryStreamManager` serves one process, the `FirestoreStreamManager` of `@genkit-ai/firebase`
   * several. It is given the frames as text, under a key that only the one who started the turn can ask for.
   */
  streamManager?: StreamManager;
  /**
   * With a `streamManager`: how long a turn goes on after its last client in this process went away, in ms, before it is aborted. 30,000 unless
   * told; `false`: to its end, which is for servers whose clients may come back to another process.
   */
  reconnectWithinMs?: number | false;
  /**
   * With a `streamManager`: what of the context says whose stream it is, as JSON. All of the context unless told, without what a token
   * refreshed in between changes (`rawToken`, `iat`, `exp`, ...). For contexts that hold anything else that is new with each request.
   */
  streamOwner?: (context: ActionContext) => unknown;
  /**
   * Ends the work of a server that is shut down. When it aborts, the turns that run are aborted as by their callers, and answered with what
   * became of them; what is asked after that is refused with `UNAVAILABLE`. Turns that were detached go on.
   */
  stopSignal?: AbortSignal;
}

/** {@link AgentServerOptions} with nothing left open. */
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

/** How streams are kept for clients that come back. */
export interface ResumableSettings {
  streamManager: StreamManager;
  /** `Infinity`: without limit. */
  reconnectWithinMs: number;
  streamOwner: ((context: ActionContext) => unknown) | undefined;
}

/** Timers take no more: a longer delay would end at once. */
const MAX_DELAY_MS = 2_147_483_647;

const OPTION_NAMES = [
  'context',
  'contextReadsInput',
  'anonymous',
  'basePath',
  'maxBodyBytes',
  'bodyTimeoutMs',
  'maxDepth',
  'maxValues',
  'timeoutMs',
  'maxUnreadChars',
  'readTimeoutMs',
  'streamManager',
  'reconnectWithinMs',
  'streamOwner',
  'stopSignal',
] as const satisfies (keyof AgentServerOptions)[];

/** @throws `INVALID_ARGUMENT` when an option is unknown, is not what it has to be, or the question who may ask is left open. */
export function readOptions(options: AgentServerOptions): ServerSettings {
  if (typeof options !== 'object' || options === null) {
    throw invalidArgument('Serving agents needs options: give "context", or "anonymous: true".');
  }
  for (const name of Object.keys(options)) {
    if (!OPTION_NAMES.includes(name as (typeof OPTION_NAMES)[number])) {
      throw invalidArgument(unknownOption('Serving agents', name, OPTION_NAMES));
    }
  }
  return {
    context: readContext(options),
    contextReadsInput: readContextReadsInput(options),
    basePath: readBasePath(options.basePath),
    maxBodyBytes: readCount('maxBodyBytes', options.maxBodyBytes) ?? 4 * MIB,
    bodyTimeoutMs: readDelay('bodyTimeoutMs', options.bodyTimeoutMs) ?? 30_000,
    maxDepth: readCount('maxDepth', options.maxDepth) ?? 100,
    maxValues: readCount('maxValues', options.maxValues) ?? 100_000,
    timeoutMs: readDelay('timeoutMs', options.timeoutMs),
    maxUnreadChars: readCount('maxUnreadChars', options.maxUnreadChars) ?? 64 * MIB,
    readTimeoutMs: readDelay('readTimeoutMs', options.readTimeoutMs) ?? 30_000,
    resumable: readResumable(options),
    stopSignal: readSignal(options.stopSignal),
  };
}

function readResumable({
  streamManager,
  reconnectWithinMs,
  streamOwner,
}: AgentServerOptions): ResumableSettings | undefined {
  if (streamManager === undefined) {
    if (reconnectWithinMs !== undefined || streamOwner !== undefined) {
      throw invalidArgument('The options "reconnectWithinMs" and "streamOwner" need a "streamManager".');
    }
    return undefined;
  }
  if (typeof streamManager?.open !== 'function' || typeof streamManager.subscribe !== 'function') {
    throw invalidArgument('The option "streamManager" must be one: Genkit\'s InMemoryStreamManager, say.');
  }
  if (streamOwner !== undefined && typeof streamOwner !== 'function') {
    throw invalidArgument('The option "streamOwner" must be a function.');
  }
  const graceMs =
    reconnectWithinMs === false ? Infinity : (readDelay('reconnectWithinMs', reconnectWithinMs) ?? 30_000);
  return { streamManager, reconnectWithinMs: graceMs, streamOwner };
}

function readSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw invalidArgument('The option "stopSignal" must be the signal of an AbortController.');
  }
  return signal;
}

function readContext({ context, anonymous }: AgentServerOptions): ContextProvider {
  if (anonymous !== undefined && typeof anonymous !== 'boolean') {
    throw invalidArgument('The option "anonymous" must be true or false.');
  }
  if (context === undefined && !anonymous) {
    throw invalidArgument(
      'Serving agents needs to know who is asking: give "context", a function that answers the context of a request ' +
        'or throws (Genkit\'s apiKey() is one), or "anonymous: true" to let anybody in.',
    );
  }
  if (context !== undefined && anonymous) {
    throw invalidArgument('Give either "context" or "anonymous: true", not both.');
  }
  if (context !== undefined && typeof context !== 'function') {
    throw invalidArgument('The option "context" must be a function.');
  }
  return context ?? (() => ({}));
}

function readContextReadsInput({ context, contextReadsInput = false }: AgentServerOptions): boolean {
  if (typeof contextReadsInput !== 'boolean') {
    throw new Error('The option "contextReadsInput" must be true or false.');
  }
  if (contextReadsInput && context === undefined) {
    throw new Error('The option "contextReadsInput" needs a "context".');
  }
  return contextReadsInput;
}

function readBasePath(basePath = ''): string {
  if (typeof basePath !== 'string' || (basePath !== '' && !basePath.startsWith('/'))) {
    throw invalidArgument('The option "basePath" must be a path that starts with "/".');
  }
  return basePath.replace(/\/+$/, '');
}

function readDelay(name: keyof AgentServerOptions, value: number | undefined): number | undefined {
  const delay = readCount(name, value);
  if (delay !== undefined && delay > MAX_DELAY_MS) {
    throw invalidArgument(`The option "${name}" must be at most ${MAX_DELAY_MS} ms, about 24 days.`);
  }
  return delay;
}

function readCount(name: keyof AgentServerOptions, value: number | undefined): number | undefined {
  if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
    throw invalidArgument(`The option "${name}" must be a whole number above 0.`);
  }
  return value;
}
