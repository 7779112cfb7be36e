import { isOwn, MAX_DEPTH } from './value.ts';

/** The UTF-8 bytes of a string as `JSON.stringify` writes it, quotes included. */
export function jsonStringBytes(text: string): number {
  let bytes = text.length + 2;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit >= 0x20 && unit < 0x7f && unit !== 0x22 && unit !== 0x5c) continue;
    if (unit < 0x80) bytes += asciiEscapeBytes(unit);
    else if (unit < 0x800) bytes += 1;
    else if (unit < 0xd800 || unit > 0xdfff) bytes += 2;
    else if (isPair(text, index)) {
      bytes += 2;
      index++;
    } else bytes += 5;
  }
  return bytes;
}

/** The extra bytes of an escaped ASCII character: `\"` and `\n` are two characters, `\u0001` is six. */
function asciiEscapeBytes(unit: number): number {
  if (unit === 0x7f) return 0;
  const hasShortEscape = unit === 0x22 || unit === 0x5c || (unit >= 0x08 && unit <= 0x0d && unit !== 0x0b);
  return hasShortEscape ? 1 : 5;
}

function isPair(text: string, index: number): boolean {
  const next = text.charCodeAt(index + 1);
  return text.charCodeAt(index) < 0xdc00 && next >= 0xdc00 && next <= 0xdfff;
}

/**
 * The UTF-8 bytes of a value's JSON text, or any number above `limit` if it is longer: the work is bounded by `limit`, not
 * by the value. Values that are not JSON, or deeper than `MAX_DEPTH`, count as 0 bytes.
 */
export function jsonBytes(value: unknown, limit = Infinity, depth = 0): number {
  switch (typeof value) {
    case 'string':
      return value.length + 2 > limit ? value.length + 2 : jsonStringBytes(value);
    case 'number':
      return Object.is(value, -0) ? 2 : String(value).length;
    case 'boolean':
      return value ? 4 : 5;
    case 'object':
      break;
    default:
      return 0;
  }
  if (value === null) return 4;
  if (depth >= MAX_DEPTH) return 0;
  let bytes = 1;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && bytes <= limit; index++) {
      bytes += 1 + jsonBytes(value[index], limit - bytes, depth + 1);
    }
  } else {
    for (const key in value) {
      if (bytes > limit) break;
      if (!isOwn(value, key)) continue;
      const member = (value as Record<string, unknown>)[key];
      if (member === undefined) continue;
      bytes += 2 + jsonStringBytes(key);
      bytes += jsonBytes(member, limit - bytes, depth + 1);
    }
  }
  return bytes === 1 ? 2 : bytes;
}

/** Divides a list into parts of at most `most` bytes of JSON and `mostItems` items, in its order. A longer item gets a part of its own. */
export function cutByBytes<T>(items: readonly T[], most: number, mostItems = Infinity): T[][] {
  const parts: T[][] = [];
  let room = 0;
  for (const item of items) {
    const bytes = jsonBytes(item) + 1;
    if (bytes > room || parts.at(-1)!.length === mostItems) {
      parts.push([]);
      room = most;
    }
    parts.at(-1)!.push(item);
    room -= bytes;
  }
  return parts;
}
