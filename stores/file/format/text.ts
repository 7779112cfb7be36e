import { isAscii, isUtf8 } from 'node:buffer';
import { parseJson, type Json } from '../../../src/json/value.ts';

/** The text that UTF-8 bytes hold; `undefined`: they are no such bytes. Nearly all are ASCII, which is copied much faster. */
export function textOf(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

/** The value that JSON text in UTF-8 holds, with `ending` behind it; `undefined`: it is no such text. */
export function jsonOf(bytes: Buffer, ending = ''): Json | undefined {
  const text = textOf(bytes);
  try {
    return text === undefined ? undefined : parseJson(text + ending);
  } catch {
    return undefined;
  }
}

/** As {@link jsonOf}, of text that holds an object. */
export function jsonObjectOf(bytes: Buffer, ending?: string): Record<string, Json> | undefined {
  const json = jsonOf(bytes, ending);
  return isObject(json) ? json : undefined;
}

/** Whether a JSON value is an object, and no array. */
export function isObject(value: unknown): value is Record<string, Json> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
