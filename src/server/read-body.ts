import type { IncomingCall } from './call.ts';
import type { ServerSettings } from './options.ts';
import { badRequest, Refusal } from './refusal.ts';

/** A request's body: its text, and the two members that count. */
export interface CallBody {
  text: string;
  data: unknown;
  init: unknown;
}

/**
 * Reads the body within the limits.
 *
 * @throws Refusal 415 for anything but JSON in UTF-8, 413 for one too long, 408 for one too slow, 400 for one that is not well formed.
 */
export async function readBody(call: IncomingCall, settings: ServerSettings): Promise<CallBody> {
  mustBeJson(call);
  const text = 'parsed' in call.body ? textOfParsed(call.body.parsed) : await readText(call, call.body, settings);
  if (exceedsDepth(text, settings.maxDepth)) {
    throw badRequest(`The body nests objects and arrays more than ${settings.maxDepth} deep.`);
  }
  const body = parse(text);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw badRequest('The body must be a JSON object, {"data": ..., "init": ...}.');
  }
  const { data, init = {} } = body as { data?: unknown; init?: unknown };
  return { text, data, init };
}

function mustBeJson({ headers, body }: IncomingCall): void {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(text)?.[1]).find(Boolean);
  const isPacked = !('parsed' in body) && !/^\s*(?:identity)?\s*$/i.test(headers['content-encoding'] ?? '');
  const isJson = /^application\/(?:json|[\w.+-]+\+json)$/.test(type.trim());
  if (!isJson || isPacked || (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')) {
    throw new Refusal(
      415,
      'INVALID_ARGUMENT',
      'The body must be JSON in UTF-8, not compressed, with content-type: application/json.',
    );
  }
}

/** Something before us, `express.json()` say, has read the body: its limits have applied, ours to the content still do. */
function textOfParsed(parsed: unknown): string {
  if (typeof parsed === 'string') {
    return parsed;
  }
  try {
    return parsed instanceof Uint8Array ? decode([parsed]) : (JSON.stringify(parsed) ?? '');
  } catch (error) {
    throw error instanceof Refusal ? error : badRequest('The body can not be read.');
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
  const chunks: Uint8Array[] = [];
  let length = 0;
  const iterator = bytes[Symbol.asyncIterator]();
  const next = () =>
    iterator.next().catch(() => {
      throw badRequest('The body broke off.');
    });
  const deadline = startDeadline(bodyTimeoutMs);
  try {
    for (;;) {
      const { done, value } = await Promise.race([next(), deadline.passed]);
      if (done) {
        return decode(chunks);
      }
      length += value.byteLength;
      if (length > maxBodyBytes) {
        throw tooLong(maxBodyBytes);
      }
      chunks.push(value);
    }
  } finally {
    deadline.clear();
    // Not awaited: a body that is slow to come is slow to end.
    void iterator.return?.()?.catch(() => {});
  }
}

function tooLong(maxBodyBytes: number): Refusal {
  return new Refusal(413, 'INVALID_ARGUMENT', `The body is longer than ${maxBodyBytes} bytes.`);
}

function startDeadline(ms: number): { passed: Promise<never>; clear: () => void } {
  let clear = () => {};
  const passed = new Promise<never>((_, reject) => {
    const onTime = () => reject(new Refusal(408, 'DEADLINE_EXCEEDED', `The body did not arrive within ${ms} ms.`));
    const timer = setTimeout(onTime, ms);
    clear = () => clearTimeout(timer);
  });
  return { passed, clear };
}

function decode(chunks: Uint8Array[]): string {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join('') + decoder.decode();
  } catch {
    throw badRequest('The body is not UTF-8.');
  }
}

/** Looks at the text, so that a bomb of brackets is never parsed. Brackets inside strings do not count. */
function exceedsDepth(text: string, maxDepth: number): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (inString) {
      if (character === '\\') {
        at += 1;
      } else if (character === '"') {
        inString = false;
      }
    } else if (character === '"') {
      inString = true;
    } else if (character === '{' || character === '[') {
      depth += 1;
      if (depth > maxDepth) {
        return true;
      }
    } else if (character === '}' || character === ']') {
      depth -= 1;
    }
  }
  return false;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw badRequest('The body is not valid JSON.');
  }
}
