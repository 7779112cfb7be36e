import { AgentError, ConnectionLostError, readErrorRecord } from '../errors.ts';
import { readEvents, readWhole } from './read-stream.ts';
import { statusOfHttp } from '../../error-status.ts';
import type { AgentOutput, AgentStreamChunk } from '../types.ts';
import { isOutput } from './wire-form.ts';

/** A frame of a server: a chunk, the result, or an error. */
interface Envelope {
  message?: unknown;
  result?: unknown;
  error?: unknown;
}

/**
 * Reads the answer to a turn: chunks as they arrive, then the output.
 *
 * @throws AgentError as {@link readStream}, and for an answer that does not come from an agent.
 */
export async function readTurn(
  response: Response,
  onChunk: (chunk: AgentStreamChunk) => void,
  maxFrameChars?: number,
): Promise<AgentOutput> {
  const onMessage = (message: unknown) => {
    if (typeof message === 'object' && message !== null) {
      onChunk(message);
    }
  };
  const result = await readStream(response, onMessage, maxFrameChars);
  if (!isOutput(result)) {
    throw notAnAgent();
  }
  return result;
}

/**
 * Reads the answer to a request for a stream: chunks as they arrive, then the result. An answer that is one JSON document has no chunks.
 *
 * @throws AgentError for an error of the server, and for an answer in another format; ConnectionLostError for an answer that was cut off.
 */
export async function readStream(
  response: Response,
  onMessage: (message: unknown) => void,
  maxFrameChars?: number,
): Promise<unknown> {
  if (!isEventStream(response)) {
    return (await readBody(response, maxFrameChars)).result;
  }
  for await (const event of readEvents(response.body, maxFrameChars)) {
    const envelope = parseEvent(event);
    if ('message' in envelope) {
      onMessage(envelope.message);
    } else if ('result' in envelope) {
      return envelope.result;
    } else {
      throw new AgentError(readErrorRecord(envelope.error, 'UNKNOWN'));
    }
  }
  throw cutShort();
}

/**
 * Reads an answer that is one JSON document, and returns its `result`; `undefined` when that is `null`.
 *
 * @throws AgentError with the error in the answer, else with the status of its HTTP status; `UNKNOWN` for a result that fails `check`.
 */
export async function readResult<T>(
  response: Response,
  check: (result: unknown) => result is T,
  maxFrameChars?: number,
): Promise<T | undefined> {
  const body = await readBody(response, maxFrameChars);
  const { result } = body;
  if (!('result' in body) || (result != null && !check(result))) {
    throw notAnAgent();
  }
  return result ?? undefined;
}

/**
 * Reads an answer that is one JSON document. `result` may be missing: JSON has no `undefined`, which a flow may return.
 *
 * @throws AgentError as {@link readResult}.
 */
export async function readBody(response: Response, maxFrameChars?: number): Promise<Envelope> {
  const body = parseObject(await readWhole(response.body, maxFrameChars));
  // A failed turn has both: the output, and the error that sets the HTTP status.
  if (body && 'result' in body) {
    return body;
  }
  const fallback = statusOfHttp(response.status);
  if (body && (!response.ok || 'error' in body)) {
    // Genkit's server sends the error without an envelope.
    throw new AgentError(readErrorRecord(body.error ?? body, fallback));
  }
  if (response.ok && response.status !== 204) {
    if (body) {
      return body;
    }
    throw notAnAgent();
  }
  const { status: httpStatus } = response;
  throw new AgentError({
    status: fallback,
    message: `The server answered HTTP ${httpStatus}.`,
    details: { httpStatus },
  });
}

/** Genkit's server labels its streams `text/plain`. */
function isEventStream(response: Response): boolean {
  const type = response.headers.get('content-type') ?? '';
  return response.status === 200 && !/json|html/i.test(type);
}

function parseEvent(event: string): Envelope {
  const envelope = parseObject(event);
  if (!envelope) {
    throw cutShort();
  }
  if (!('message' in envelope) && !('result' in envelope) && !('error' in envelope)) {
    throw notAnAgent();
  }
  return envelope;
}

function parseObject(text: string): (Envelope & Record<string, unknown>) | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function cutShort(): ConnectionLostError {
  return new ConnectionLostError(
    'The answer was cut off before the end of the turn. Read the session to see whether the turn completed.',
  );
}

function notAnAgent(): AgentError {
  return new AgentError({
    status: 'UNKNOWN',
    message: 'The answer does not come from an agent. Check the URL.',
  });
}
