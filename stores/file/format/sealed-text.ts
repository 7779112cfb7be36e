import type { Cipher, Sealer } from '../../../src/store/encryption/encryption.ts';
import { isPacked, pack, unpack } from './compression.ts';
import { jsonOf } from './text.ts';
import type { Json } from '../../../src/json/value.ts';

/** Shorter text does not get smaller. */
const SHORTEST_PACKED = 200;

/** JSON text, packed and encrypted, as base64. */
export async function sealText(text: string, cipher: Cipher, place: string): Promise<string> {
  const bytes = text.length < SHORTEST_PACKED ? Buffer.from(text) : await pack(text);
  return cipher.seal(bytes, place).toString('base64');
}

/** The value whose JSON text was sealed. Throws what {@link Sealer.open} throws. */
export async function openJson(sealed: string, sealer: Sealer, place: string): Promise<Json> {
  const bytes = await sealer.open(Buffer.from(sealed, 'base64'), place);
  const json = jsonOf(isPacked(bytes) ? await unpack(bytes) : bytes);
  if (json === undefined) throw new Error('what was sealed is no JSON');
  return json;
}
