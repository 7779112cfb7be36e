import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRaw, inflateRawSync } from 'node:zlib';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { parseJson, type Json } from '../../../src/json/value.ts';

const deflateAsync = promisify(deflateRaw);
const inflateAsync = promisify(inflateRaw);

/** The first byte says how the rest is written. */
const PLAIN = 0;
const DEFLATED = 1;
/** Encrypted; the decrypted bytes begin with their own tag. */
const SEALED = 2;
/** Text in clear, its length before it, then something encrypted. */
const BOTH = 3;

const LENGTH_BYTES = 4;

/** How text is encrypted; see {@link Cipher}. */
export interface TextSeal {
  /** `undefined`: it is not encrypted. */
  readonly cipher: Cipher | undefined;
  readonly place: string;
}

/** How text that may be encrypted is decrypted. */
export interface Opener {
  readonly sealer: Sealer;
  readonly place: string;
}

/** Shorter text does not get smaller. */
const SHORTEST_DEFLATED = 120;
/** Longer text is packed by another thread. */
const LONGEST_AT_ONCE = 32 * 1024;

/** Text as bytes: deflated if that is shorter, then encrypted if there is a cipher. */
export async function packText(text: string, seal?: TextSeal): Promise<Buffer> {
  if (text.length <= LONGEST_AT_ONCE) return packTextNow(text, seal);
  return sealed(smaller(Buffer.from(text), await deflateAsync(text)), seal);
}

/** {@link packText} of text that is known to be short. */
export function packTextNow(text: string, seal?: TextSeal): Buffer {
  const plain = Buffer.from(text);
  const packed = plain.length < SHORTEST_DEFLATED ? tagged(PLAIN, plain) : smaller(plain, deflateRawSync(plain));
  return sealed(packed, seal);
}

/** Short text in clear with packed text that is encrypted. */
export function packBoth(text: string, secret: Buffer): Buffer {
  const clear = packTextNow(text);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(clear.length);
  return tagged(BOTH, Buffer.concat([length, clear, secret]));
}

/**
 * The value in clear, and the encrypted part, if there is one.
 *
 * @throws Error when the bytes are not packed JSON.
 */
export function unpackBoth(bytes: Buffer): { readonly clear: Json; readonly secret?: Buffer } {
  if (bytes[0] !== BOTH) return { clear: unpackJson(bytes) };
  const start = 1 + LENGTH_BYTES;
  const end = start + bytes.readUInt32BE(1);
  return { clear: unpackJson(bytes.subarray(start, end)), secret: bytes.subarray(end) };
}

/**
 * @throws `FAILED_PRECONDITION` when the key is missing, `UNAVAILABLE` when it can't be reached, any other error when {@link packText} did not
 *   return these bytes for this place.
 */
export async function unpackText(bytes: Uint8Array, opener?: Opener): Promise<string> {
  if (opener && bytes[0] === SEALED) return unpackText(await opener.sealer.open(bytes.subarray(1), opener.place));
  if (bytes.length <= LONGEST_AT_ONCE / 4) return unpackTextNow(bytes);
  const rest = bytes.subarray(1);
  return (tagOf(bytes) === PLAIN ? Buffer.from(rest) : await inflateAsync(rest)).toString('utf8');
}

/** @throws Error when the bytes are not packed JSON. */
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

function sealed(packed: Buffer, seal: TextSeal | undefined): Buffer {
  return seal?.cipher ? tagged(SEALED, seal.cipher.seal(packed, seal.place)) : packed;
}

function tagged(tag: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tag), bytes]);
}

function tagOf(bytes: Uint8Array): number {
  const tag = bytes[0];
  if (tag !== PLAIN && tag !== DEFLATED) throw new Error('these bytes were packed in another way');
  return tag;
}
