import { isMembers } from '../../json/fault.ts';
import { withinTime } from '../../store/parts/within-time.ts';
import type { IncomingCall } from './call.ts';
import type { ServerSettings } from '../options.ts';
import { badRequest, Refusal } from '../answer/refusal.ts';

/** A request's body: its text, `data` and `init`. */
export interface CallBody {
  text: string;
  data: unknown;
  init: unknown;
}

/**
 * Reads the body within the limits.
 *
 * @throws Refusal 415 when it is not JSON in UTF-8, 413 when it is too long or has too many values, 408 when it arrives too slowly, 400
 *   when it is malformed or nests too deep.
 */
export async function readBody(call: IncomingCall, settings: ServerSettings): Promise<CallBody> {
  mustBeJson(call);
  const text = 'parsed' in call.body ? textOfParsed(call.body.parsed) : await readText(call, call.body, settings);
  mustBeWithin(settings, text);
  const body = parse(text);
  if (!isMembers(body)) {
    throw badRequest('The body must be a JSON object, {"data": ..., "init": ...}.');
  }
  const { data, init = {} } = body;
  return { text, data, init };
}

function mustBeJson({ headers, body }: IncomingCall): void {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(text)?.[1]).find(Boolean);
  const isCompressed = !('parsed' in body) && !/^\s*(?:identity)?\s*$/i.test(headers['content-encoding'] ?? '');
  const isJson = /^application\/(?:json|[\w.+-]+\+json)$/.test(type.trim());
  if (!isJson || isCompressed || (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')) {
    throw new Refusal(
      415,
      'INVALID_ARGUMENT',
      'The body must be JSON in UTF-8, not compressed, with content-type: application/json.',
    );
  }
}

/** The text of a body that earlier middleware, for example `express.json()`, has read under its own limits. */
function textOfParsed(parsed: unknown): string {
  if (typeof parsed === 'string') {
    return parsed;
  }
  try {
    return parsed instanceof Uint8Array ? decode([parsed]) : (JSON.stringify(parsed) ?? '');
  } catch (error) {
    throw error instanceof Refusal ? error : badRequest('The body cannot be read.');
  }
}

async function readText(
  call: IncomingCall,
  bytes: AsyncIterable<Uint8Array>,
  { maxBodyBytes, bodyTimeoutMs }: ServerSettings,
): Promise<string> {
  if (Number(call.headers['content-length']) > maxBodyBytes) {
    throw tooLong(maxBodyBytes);
  }
  const iterator = bytes[Symbol.asyncIterator]();
  const tooSlow = () => new Refusal(408, 'DEADLINE_EXCEEDED', `The body did not arrive within ${bodyTimeoutMs} ms.`);
  try {
    return decode(await withinTime(tooSlow, bodyTimeoutMs, undefined, () => collect(iterator, maxBodyBytes)));
  } finally {
    // Not awaited: a slow body is also slow to cancel.
    void iterator.return?.()?.catch(() => {});
  }
}

async function collect(iterator: AsyncIterator<Uint8Array>, maxBodyBytes: number): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await iterator.next().catch(() => {
      throw badRequest('The body was cut off.');
    });
    if (done) {
      return chunks;
    }
    length += value.byteLength;
    if (length > maxBodyBytes) {
      throw tooLong(maxBodyBytes);
    }
    chunks.push(value);
  }
}

function tooLong(maxBodyBytes: number): Refusal {
  return new Refusal(413, 'INVALID_ARGUMENT', `The body is longer than ${maxBodyBytes} bytes.`);
}

function decode(chunks: Uint8Array[]): string {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('') + decoder.decode();
  } catch {
    throw badRequest('The body is not UTF-8.');
  }
}

/**
 * Checks the limits on the text before it is parsed. Counts, outside of strings, brackets for the depth, and separators for the values.
 *
 * @throws Refusal 400 for a body that nests too deep, 413 for one with too many values.
 */
function mustBeWithin({ maxDepth, maxValues }: ServerSettings, text: string): void {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"':
        at = endOfString(text, at);
        break;
      case '{':
      case '[':
        depth += 1;
        values += 1;
        if (depth > maxDepth) {
          throw badRequest(`The body nests objects and arrays more than ${maxDepth} deep.`);
        }
        break;
      case '}':
      case ']':
        depth -= 1;
        break;
      case ',':
      case ':':
        values += 1;
        break;
    }
    if (values > maxValues) {
      throw new Refusal(413, 'INVALID_ARGUMENT', `The body holds more than ${maxValues} names and values.`);
    }
  }
}

/** The end of the string that begins at `start`: its closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') {
    at += text[at] === '\\' ? 2 : 1;
  }
  return at;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest('The body is not valid JSON.');
  }
}
