import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib';
import { parseJson, type Json } from '../../../src/json/value.ts';

const deflateAsync = promisify(deflateRaw);
const inflateAsync = promisify(inflateRaw);

/** The first byte says how the rest is written. Bytes that are written in other ways, encrypted say, get tags of their own. */
const PLAIN = 0;
const DEFLATED = 1;

/** Shorter text does not get smaller. */
const SHORTEST_DEFLATED = 120;
/** Longer text is packed by another thread. */
const LONGEST_AT_ONCE = 32 * 1024;

/** Text as bytes, deflated where that is shorter. */
export async function packText(text: string): Promise<Buffer> {
  if (text.length <= LONGEST_AT_ONCE) return packTextNow(text);
  return smaller(Buffer.from(text), await deflateAsync(text));
}

/** {@link packText} of text that is known to be short. */
export function packTextNow(text: string): Buffer {
  const plain = Buffer.from(text);
  return plain.length < SHORTEST_DEFLATED ? tagged(PLAIN, plain) : smaller(plain, deflateRawSync(plain));
}

/** @throws Error when the bytes are none that {@link packText} answered. */
export async function unpackText(bytes: Uint8Array): Promise<string> {
  if (bytes.length <= LONGEST_AT_ONCE / 4) return unpackTextNow(bytes);
  const rest = bytes.subarray(1);
  return (tagOf(bytes) === PLAIN ? Buffer.from(rest) : await inflateAsync(rest)).toString('utf8');
}

/** @throws Error when the bytes hold no packed JSON. */
export function unpackJson(bytes: Uint8Array): Json {
  return parseJson(unpackTextNow(bytes));
}

function unpackTextNow(bytes: Uint8Array): string {
  const rest = bytes.subarray(1);
  return (tagOf(bytes) === PLAIN ? Buffer.from(rest) : inflateRawSync(rest)).toString('utf8');
}

function smaller(plain: Buffer, deflated: Buffer): Buffer {
  return deflated.length < plain.length ? tagged(DEFLATED, deflated) : tagged(PLAIN, plain);
}

function tagged(tag: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tag), bytes]);
}

function tagOf(bytes: Uint8Array): number {
  const tag = bytes[0];
  if (tag !== PLAIN && tag !== DEFLATED) throw new Error('these bytes were packed in another way');
  return tag;
}
