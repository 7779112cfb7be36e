import { isAscii, isUtf8 } from 'node:buffer';
import { parseJson, type Json } from '../../../src/json/value.ts';

/** Decodes UTF-8; `undefined` for invalid bytes. Nearly all text is ASCII, which is copied much faster. */
export function textOf(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

/** Parses JSON text in UTF-8, with `ending` appended; `undefined` for invalid text. */
export function jsonOf(bytes: Buffer, ending = ''): Json | undefined {
  const text = textOf(bytes);
  try {
    return text === undefined ? undefined : parseJson(text + ending);
  } catch {
    return undefined;
  }
}

/** As {@link jsonOf}, for an object. */
export function jsonObjectOf(bytes: Buffer, ending?: string): Record<string, Json> | undefined {
  const json = jsonOf(bytes, ending);
  return isObject(json) ? json : undefined;
}

/** Whether a JSON value is an object, and not an array. */
export function isObject(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
