import { checkNames, type AllNames } from '../check.ts';
import { AgentError, ConnectionLostError, invalid } from '../errors.ts';
import { readTurn } from './read-turn.ts';
import { assertDelay, pause } from '../signals.ts';
import type { TransportCall } from '../transport.ts';
import type { AgentOutput, AgentStreamChunk } from '../types.ts';

/** How a broken stream is resumed. */
export interface ReconnectOptions {
  /** Attempts before the turn fails. Default: 6. A new chunk resets the count. */
  attempts?: number;
  /** The pause before the first attempt, in ms. Each further one is twice as long; all are randomly cut by up to half. Default: 250. */
  delayMs?: number;
  /** The longest pause, in ms. Default: 8,000. */
  maxDelayMs?: number;
}

/** {@link ReconnectOptions} with all defaults applied. */
export type ReconnectPolicy = Required<ReconnectOptions>;

const RECONNECT: AllNames<ReconnectOptions> = { attempts: true, delayMs: true, maxDelayMs: true };

/** @throws AgentError `INVALID_ARGUMENT` for an option that is not a valid number. */
export function readPolicy(options: ReconnectOptions | false = {}): ReconnectPolicy {
  const given = options === false ? { attempts: 0 } : options;
  checkNames('reconnect', given, RECONNECT);
  const { attempts = 6, delayMs = 250, maxDelayMs = 8000 } = given;
  for (const [name, value] of Object.entries({ attempts, delayMs, maxDelayMs })) {
    if (!(value >= 0)) {
      throw invalid(`reconnect.${name} must be 0 or more.`);
    }
  }
  assertDelay('reconnect.maxDelayMs', maxDelayMs);
  return { attempts, delayMs, maxDelayMs };
}

/** A turn whose stream can be requested again. */
export interface ResumableStream {
  /** The response with which the stream began. Default: the stream is requested. */
  first?: Response;
  /** Requests the stream again, from its beginning. */
  again: () => Promise<Response>;
  call: TransportCall;
  policy: ReconnectPolicy;
  /** Longest frame, in characters. */
  maxFrameChars?: number;
}

/**
 * Reads a turn to its end over as many connections as needed, and passes each chunk on once. A stream that is requested again has the same
 * chunks from the beginning, so those that arrived before are skipped by their number.
 *
 * @throws AgentError as {@link readTurn}; `UNAVAILABLE` when the server has dropped the stream, or the attempts are used up.
 */
export async function readResumableTurn(stream: ResumableStream): Promise<AgentOutput> {
  const { first, policy, call } = stream;
  const { abortSignal, onReconnecting } = call;
  const again = async () => mustHaveStream(await stream.again());
  let connect = first ? () => Promise.resolve(first) : again;
  // Without a first response, the first request counts as a reconnect.
  let isReconnecting = first === undefined;
  let received = 0;
  let failed = 0;
  for (;;) {
    let position = 0;
    const onChunk = (chunk: AgentStreamChunk) => {
      position += 1;
      if (position > received) {
        received = position;
        failed = 0;
        call.onChunk(chunk);
      }
    };
    try {
      const response = await connect();
      if (isReconnecting) {
        isReconnecting = false;
        onReconnecting?.(false);
      }
      return await readTurn(response, onChunk, stream.maxFrameChars);
    } catch (error) {
      if (!(error instanceof ConnectionLostError) || abortSignal.aborted || failed >= policy.attempts) {
        throw error;
      }
    }
    if (!isReconnecting) {
      isReconnecting = true;
      onReconnecting?.(true);
    }
    await pause(delayBefore(failed, policy), abortSignal);
    failed += 1;
    connect = again;
  }
}

function delayBefore(failed: number, { delayMs, maxDelayMs }: ReconnectPolicy): number {
  return Math.min(delayMs * 2 ** failed, maxDelayMs) * (1 - Math.random() / 2);
}

/** @throws ConnectionLostError when a further attempt may succeed; AgentError when it cannot. */
function mustHaveStream(response: Response): Response {
  const { status } = response;
  if (status === 204) {
    throw new AgentError({
      status: 'UNAVAILABLE',
      message: 'The server has dropped the stream of the turn. Read the session to see whether the turn completed.',
    });
  }
  if (status === 429 || status >= 500) {
    response.body?.cancel().catch(() => {});
    throw new ConnectionLostError(`The server answered HTTP ${status}.`);
  }
  return response;
}
