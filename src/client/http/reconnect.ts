import { checkNames, type AllNames } from '../check.ts';
import { AgentError, ConnectionLostError } from '../errors.ts';
import { reachable } from './reachable.ts';
import { readTurn } from './read-turn.ts';
import { assertDelay, pause } from '../signals.ts';
import type { AgentOutput, AgentStreamChunk } from '../types.ts';

/** How a broken stream is taken up again. */
export interface ReconnectOptions {
  /** How often it is tried before the turn is given up; 6 unless told. What brings a chunk that is new starts the count anew. */
  attempts?: number;
  /** The pause before the first attempt, in ms; 250 unless told. Each further one is twice as long, and all are shortened at random by up to half. */
  delayMs?: number;
  /** The longest pause, in ms; 8,000 unless told. */
  maxDelayMs?: number;
}

/** {@link ReconnectOptions} with nothing left open. */
export type ReconnectPolicy = Required<ReconnectOptions>;

const RECONNECT: AllNames<ReconnectOptions> = { attempts: true, delayMs: true, maxDelayMs: true };

/** @throws AgentError `INVALID_ARGUMENT` for what can not be counted or waited for. */
export function readPolicy(options: ReconnectOptions | false = {}): ReconnectPolicy {
  if (options === false) {
    return { attempts: 0, delayMs: 0, maxDelayMs: 0 };
  }
  checkNames('reconnect', options, RECONNECT);
  const { attempts = 6, delayMs = 250, maxDelayMs = 8000 } = options;
  for (const [name, value] of Object.entries({ attempts, delayMs, maxDelayMs })) {
    if (!(value >= 0)) {
      throw new AgentError({ status: 'INVALID_ARGUMENT', message: `reconnect.${name} must be a number from 0.` });
    }
  }
  assertDelay('reconnect.maxDelayMs', maxDelayMs);
  return { attempts, delayMs, maxDelayMs };
}

/** A turn whose stream can be asked for again. */
export interface ResumableStream {
  first: Response;
  /** Asks for the stream again: all of it. */
  again: () => Promise<Response>;
  onChunk: (chunk: AgentStreamChunk) => void;
  policy: ReconnectPolicy;
  /** Longest frame, in characters. */
  maxFrameChars?: number;
  /** Who aborts does not want the rest. */
  signal: AbortSignal;
}

/**
 * Reads a turn to its end over as many connections as it takes. Each chunk is handed on once: a stream that is asked for again starts from its
 * beginning, with the same chunks in the same order, so that those which arrived before are counted off.
 *
 * @throws AgentError as {@link readTurn} does; `UNAVAILABLE` when the server does not have the stream any more, or the attempts are used up.
 */
export async function readResumableTurn(stream: ResumableStream): Promise<AgentOutput> {
  const { policy, signal } = stream;
  let connect = () => Promise.resolve(stream.first);
  let received = 0;
  let failed = 0;
  for (;;) {
    let position = 0;
    const onChunk = (chunk: AgentStreamChunk) => {
      position += 1;
      if (position > received) {
        received = position;
        failed = 0;
        stream.onChunk(chunk);
      }
    };
    try {
      const response = await connect();
      return await reachable(() => readTurn(response, onChunk, stream.maxFrameChars));
    } catch (error) {
      if (!(error instanceof ConnectionLostError) || signal.aborted || failed >= policy.attempts) {
        throw error;
      }
    }
    await pause(delayBefore(failed, policy), signal);
    failed += 1;
    connect = async () => mustHaveStream(await stream.again());
  }
}

function delayBefore(failed: number, { delayMs, maxDelayMs }: ReconnectPolicy): number {
  return Math.min(delayMs * 2 ** failed, maxDelayMs) * (1 - Math.random() / 2);
}

/** @throws ConnectionLostError when it may be there another time; AgentError when it is not. */
function mustHaveStream(response: Response): Response {
  const { status } = response;
  if (status === 204) {
    throw new AgentError({
      status: 'UNAVAILABLE',
      message:
        'The connection broke, and the server does not have the stream any more. ' +
        'Whether the turn went through can be seen in its session.',
    });
  }
  if (status === 429 || status >= 500) {
    response.body?.cancel().catch(() => {});
    throw new ConnectionLostError(
      `The connection broke, and the server answered HTTP ${status} when asked for the rest.`,
    );
  }
  return response;
}
