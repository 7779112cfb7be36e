import { AgentError } from '../errors.ts';

/** One field of a stream of server-sent events: `data: ...` and, as Genkit's servers send it, `error: ...`. */
export interface StreamField {
  name: string;
  value: string;
}

/** Default of `maxFrameChars`: longest frame of a stream and longest JSON answer, in characters. */
export const MAX_FRAME_CHARS = 64 * 1024 * 1024;

/** Added to the characters of each line, because many short lines take more memory than one long line. */
const CHARS_OF_A_LINE = 64;

/**
 * Reads a stream of server-sent events, one event at a time, as a list of fields. Network chunks may cut characters and lines anywhere. An event
 * that the end of the stream cuts off is yielded too, for the caller to judge; a character that is cut off becomes U+FFFD.
 *
 * @throws AgentError `DATA_LOSS` when the bytes are not UTF-8, `RESOURCE_EXHAUSTED` for an event longer than `maxChars`; the error of the body's reader.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  maxChars = MAX_FRAME_CHARS,
): AsyncGenerator<StreamField[], void, undefined> {
  let fields: StreamField[] = [];
  let chars = 0;
  for await (const line of readLines(body, maxChars)) {
    if (line !== '') {
      chars += line.length + CHARS_OF_A_LINE;
      mustBeWithin(maxChars, chars);
      fields.push(toField(line));
    } else if (fields.length > 0) {
      yield fields;
      fields = [];
      chars = 0;
    }
  }
  if (fields.length > 0) {
    yield fields;
  }
}

/** Splits a text into lines, at LF or CRLF. */
async function* readLines(body: ReadableStream<Uint8Array>, maxChars: number): AsyncGenerator<string, void, undefined> {
  // Only new text is searched, so that the cost of a line in many chunks stays linear.
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
}

/**
 * Reads a whole answer. Bytes that are not UTF-8 become U+FFFD.
 *
 * @throws AgentError `RESOURCE_EXHAUSTED` for an answer longer than `maxChars`; the error of the body's reader.
 */
export async function readWhole(body: ReadableStream<Uint8Array>, maxChars = MAX_FRAME_CHARS): Promise<string> {
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
      message:
        `The answer has a frame of more than ${maxChars} characters, so the rest was not read. ` +
        'The option "maxFrameChars" of remoteAgent() raises the limit.',
    });
  }
}

async function* readText(body: ReadableStream<Uint8Array>, fatal: boolean): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal });
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        yield endOf(decoder);
        return;
      }
      yield decode(decoder, value);
    }
  } finally {
    // A caller may stop reading before the end; the connection is then released.
    await reader.cancel().catch(() => {});
  }
}

/** Decodes the characters that the bytes complete. */
function decode(decoder: TextDecoder, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: true });
  } catch (error) {
    throw new AgentError({ status: 'DATA_LOSS', message: 'The answer is not UTF-8.', cause: error });
  }
}

/** Decodes the rest at the end: empty, unless the end cuts a character off. */
function endOf(decoder: TextDecoder): string {
  try {
    return decoder.decode();
  } catch {
    return '\uFFFD';
  }
}

function toField(line: string): StreamField {
  const colon = line.indexOf(':');
  if (colon < 0) {
    return { name: line, value: '' };
  }
  return { name: line.slice(0, colon), value: line.slice(colon + 1).replace(/^ /, '') };
}
