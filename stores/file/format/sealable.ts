import { GenkitError } from 'genkit';
import { stringifyJson, type Json } from '../../../src/json/value.ts';
import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { assertReadable } from '../../../src/store/parts/format.ts';
import { isPacked, pack, unpack } from './compression.ts';
import { jsonObjectOf, jsonOf } from './text.ts';

/** The format version of data in clear. */
export const FORMAT = 1;
/** The format version of encrypted data. Files of higher versions are refused. */
export const SEALED_FORMAT = 2;

/** Shorter text does not get smaller. */
const SHORTEST_PACKED = 200;

/** JSON text, packed and encrypted, as base64. */
export async function sealText(text: string, cipher: Cipher, place: string): Promise<string> {
  const bytes = text.length < SHORTEST_PACKED ? Buffer.from(text) : await pack(text);
  return cipher.seal(bytes, place).toString('base64');
}

/** The value whose JSON text was sealed. @throws as {@link Sealer.open}. */
export async function openJson(sealed: string, sealer: Sealer, place: string): Promise<Json> {
  const bytes = await sealer.open(Buffer.from(sealed, 'base64'), place);
  const json = jsonOf(isPacked(bytes) ? await unpack(bytes) : bytes);
  if (json === undefined) throw new Error('the sealed text is not JSON');
  return json;
}

/** A line that was read; its value may be encrypted. */
export interface Sealable {
  /** All members of the line. */
  readonly head: Readonly<Record<string, Json>>;
  readonly stored: { readonly value: Json } | { readonly sealed: string };
}

/** A line of JSON: the format, the members of `head`, and a value: encrypted if there is a cipher, else in clear as the member `name`. */
export async function formatSealable(
  head: object,
  { name, value, place }: { readonly name: string; readonly value: unknown; readonly place: string },
  cipher: Cipher | undefined,
): Promise<string> {
  const text = stringifyJson(value);
  const last = cipher ? `"sealed":"${await sealText(text, cipher, place)}"` : `"${name}":${text}`;
  return `${JSON.stringify({ format: cipher ? SEALED_FORMAT : FORMAT, ...head }).slice(0, -1)},${last}}\n`;
}

/**
 * Reads a line of {@link formatSealable}; `undefined` for anything else.
 *
 * @param what Describes the line, as the beginning of a sentence.
 * @throws `FAILED_PRECONDITION` when a newer version of this store wrote it.
 */
export function parseSealable(
  line: Buffer,
  name: string,
  what: (head: Sealable['head']) => string,
): Sealable | undefined {
  const head = jsonObjectOf(line);
  if (!head) return undefined;
  const { format, sealed, [name]: value } = head;
  assertReadable(format, SEALED_FORMAT, what(head));
  if (format === SEALED_FORMAT) return typeof sealed === 'string' ? { head, stored: { sealed } } : undefined;
  return format === FORMAT && value !== undefined ? { head, stored: { value } } : undefined;
}

/**
 * The value, decrypted.
 *
 * @throws `FAILED_PRECONDITION` without the key, `UNAVAILABLE` when it can't be reached, `damaged` for anything else.
 */
export async function openSealable(
  { stored }: Pick<Sealable, 'stored'>,
  { sealer, place, damaged }: { readonly sealer: Sealer; readonly place: string; readonly damaged: () => Error },
): Promise<Json> {
  try {
    return 'value' in stored ? stored.value : await openJson(stored.sealed, sealer, place);
  } catch (error) {
    throw error instanceof GenkitError ? error : damaged();
  }
}
