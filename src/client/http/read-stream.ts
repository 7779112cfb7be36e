import { AgentError } from '../errors.ts';
import { reachable } from './reachable.ts';

/** A field of a server-sent event with a line of its text: `data: ...` or, from Genkit's servers, `error: ...`. */
const TEXT_FIELD = /^(?:data|error)(?:: ?|$)(.*)/s;

type Body = Response['body'];

/** Default of `maxFrameChars`: longest frame of a stream and longest JSON answer, in characters. */
export const MAX_FRAME_CHARS = 64 * 1024 * 1024;

/** Added to the characters of each line, because many short lines take more memory than one long line. */
const CHARS_OF_A_LINE = 64;

/**
 * Reads server-sent events, and yields the text of each event that has one. Network chunks may cut characters and lines anywhere. An event
 * that the end of the stream cuts off is yielded, too; the caller must check it. A character that is cut off becomes U+FFFD.
 *
 * @throws AgentError `DATA_LOSS` when the bytes are not UTF-8, `RESOURCE_EXHAUSTED` for an event longer than `maxChars`; for an
 *   error of the body's reader, as {@link reachable}.
 */
export async function* readEvents(body: Body, maxChars = MAX_FRAME_CHARS): AsyncGenerator<string, void, undefined> {
  let texts: string[] = [];
  let chars = 0;
  for await (const line of readLines(body, maxChars)) {
    if (line !== '') {
      chars += line.length + CHARS_OF_A_LINE;
      mustBeWithin(maxChars, chars);
      texts.push(...(TEXT_FIELD.exec(line)?.slice(1) ?? []));
      continue;
    }
    if (texts.length > 0) {
      yield texts.join('\n');
    }
    texts = [];
    chars = 0;
  }
}

/** Splits a text into lines, at LF or CRLF. Yields an empty line at the end, which ends an event that was cut off. */
async function* readLines(body: Body, maxChars: number): AsyncGenerator<string, void, undefined> {
  // Only new text is searched, so that a line in many chunks takes linear time.
  let pieces: string[] = [];
  let chars = 0;
  for await (const text of readText(body, true)) {
    const [head = '', ...rest] = text.split('\n');
    pieces.push(head);
    chars += head.length;
    for (const next of rest) {
      yield pieces.join('').replace(/\r$/, '');
      pieces = [next];
      chars = next.length;
    }
    mustBeWithin(maxChars, chars);
  }
  yield pieces.join('').replace(/\r$/, '');
  yield '';
}

/**
 * Reads a whole answer. Bytes that are not UTF-8 become U+FFFD.
 *
 * @throws AgentError `RESOURCE_EXHAUSTED` for an answer longer than `maxChars`; as {@link reachable} for an error of the body's reader.
 */
export async function readWhole(body: Body, maxChars = MAX_FRAME_CHARS): Promise<string> {
  const pieces: string[] = [];
  let chars = 0;
  for await (const text of readText(body, false)) {
    chars += text.length;
    mustBeWithin(maxChars, chars);
    pieces.push(text);
  }
  return pieces.join('');
}

function mustBeWithin(maxChars: number, chars: number): void {
  if (chars > maxChars) {
    throw new AgentError({
      status: 'RESOURCE_EXHAUSTED',
      message: `The answer has a frame of more than ${maxChars} characters ("maxFrameChars" of remoteAgent).`,
    });
  }
}

async function* readText(body: Body, fatal: boolean): AsyncGenerator<string, void, undefined> {
  if (!body) {
    return;
  }
  const decoder = new TextDecoder('utf-8', { fatal });
  const reader = await reachable(async () => body.getReader());
  try {
    for (;;) {
      const { done, value } = await reachable(() => reader.read());
      yield decode(decoder, value);
      if (done) {
        return;
      }
    }
  } finally {
    // Releases the connection if the caller stops reading before the end.
    await reader.cancel().catch(() => {});
  }
}

/** Decodes the complete characters. At the end, without `bytes`: empty, or U+FFFD if a character is cut off. */
function decode(decoder: TextDecoder, bytes: Uint8Array | undefined): string {
  try {
    return decoder.decode(bytes, { stream: bytes !== undefined });
  } catch (cause) {
    if (!bytes) {
      return '\uFFFD';
    }
    throw new AgentError({ status: 'DATA_LOSS', message: 'The answer is not UTF-8.', cause });
  }
}
