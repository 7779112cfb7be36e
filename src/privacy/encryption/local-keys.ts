import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { dataLoss, invalidArgument } from '../../errors.ts';
import { decrypt, encrypt } from './aes-gcm.ts';
import type { WrappingKeys } from './wrapping-keys.ts';

const SHORTEST_SECRET = 32;

/**
 * Encrypts data keys with your own secrets, for example from a secret manager or a file that only the server may read.
 *
 * @param secrets Each at least 32 bytes, and random. The first encrypts, all decrypt: to rotate, put a new secret in front. Keep an old
 *   secret as long as there is data written with it. The id of a secret, which is stored in clear, is a hash of the secret.
 * @throws `INVALID_ARGUMENT` for a secret that is too short, and without any.
 *
 * @example
 * const encryption = envelope({ keys: localKeys(process.env.ENCRYPTION_SECRET!) });
 */
export function localKeys(secrets: string | Uint8Array | readonly (string | Uint8Array)[]): WrappingKeys {
  const list = typeof secrets === 'string' || secrets instanceof Uint8Array ? [secrets] : secrets;
  if (!Array.isArray(list) || list.length === 0) throw invalidArgument('localKeys: needs at least one secret.');
  const keys = new Map((list as readonly unknown[]).map(keyOf));
  const [current] = keys;
  const [currentId, currentKey] = current!;
  return {
    currentId,
    wrap: async (dataKey, context) => encrypt(currentKey, dataKey, context),
    unwrap: async (wrapped, keyId, context) => {
      const key = keys.get(keyId);
      try {
        return key && decrypt(key, wrapped, context);
      } catch {
        throw dataLoss('The data key is damaged, or belongs to other data.');
      }
    },
  };
}

function keyOf(secret: unknown): [id: string, key: KeyObject] {
  const bytes = typeof secret === 'string' ? Buffer.from(secret) : secret;
  if (!(bytes instanceof Uint8Array) || bytes.length < SHORTEST_SECRET) {
    throw invalidArgument(`localKeys: each secret must be a string or bytes, of at least ${SHORTEST_SECRET} bytes.`);
  }
  const derive = (purpose: string, length: number): Buffer =>
    Buffer.from(hkdfSync('sha256', bytes, '', `genkitx-agents ${purpose}`, length));
  return [derive('key id', 8).toString('hex'), createSecretKey(derive('wrapping key', 32))];
}
