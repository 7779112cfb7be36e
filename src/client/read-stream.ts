import { AgentError } from './errors.ts';

/** One field of a stream of server-sent events: `data: ...` and, as Genkit's servers send it, `error: ...`. */
export interface StreamField {
  name: string;
  value: string;
}

/**
 * Reads a stream of server-sent events, one event at a time, as the fields that it is made of. Characters and lines may be cut anywhere
 * between network chunks. An event that the end of the stream cut short is yielded too: whether it is whole is for the reader to see. A
 * character that the end cut short is U+FFFD then.
 *
 * @throws AgentError `DATA_LOSS` when the bytes are not UTF-8; whatever the body's reader throws.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamField[], void, undefined> {
  let fields: StreamField[] = [];
  for await (const line of readLines(body)) {
    if (line !== '') {
      fields.push(toField(line));
    } else if (fields.length > 0) {
      yield fields;
      fields = [];
    }
  }
  if (fields.length > 0) {
    yield fields;
  }
}

/** The lines of a text, without their ends: LF or CRLF. */
async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  // Only the new text is searched, so that a line of many chunks costs no more than its length.
  let pieces: string[] = [];
  for await (const text of readText(body)) {
    const [head = '', ...rest] = text.split('\n');
    pieces.push(head);
    for (const next of rest) {
      yield pieces.join('').replace(/\r$/, '');
      pieces = [next];
    }
  }
  yield pieces.join('').replace(/\r$/, '');
}

async function* readText(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
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
    // Whoever has what they came for leaves the rest unread; the connection is given back.
    await reader.cancel().catch(() => {});
  }
}

/** The characters that the bytes complete. */
function decode(decoder: TextDecoder, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes, { stream: true });
  } catch (error) {
    throw new AgentError({ status: 'DATA_LOSS', message: 'The answer is not UTF-8.', cause: error });
  }
}

/** What is left at the end: nothing, unless it came in the middle of a character. */
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
