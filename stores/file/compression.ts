import { promisify } from 'node:util';
import { deflate, deflateSync, inflate, inflateSync } from 'node:zlib';

/** Up to this size, packed or not, packing takes less than handing it to another thread. */
const SMALL = 64 * 1024;

const deflateLater = promisify(deflate);
const inflateLater = promisify(inflate);

export async function pack(text: string): Promise<Buffer> {
  const bytes = Buffer.from(text);
  return bytes.length <= SMALL ? deflateSync(bytes) : deflateLater(bytes);
}

/** @throws When these are not the bytes that `pack` answered. */
export async function unpack(bytes: Uint8Array): Promise<string> {
  const unpacked = bytes.length <= SMALL ? inflateSync(bytes) : await inflateLater(bytes);
  return unpacked.toString('utf8');
}
