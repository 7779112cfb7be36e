import { createCipheriv, createDecipheriv, randomFillSync, type CipherKey } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const IV_LENGTH = 12;
const TAG_LENGTH = 16;

/** Bytes that encryption adds. */
export const ADDED_LENGTH = IV_LENGTH + TAG_LENGTH;

/** Encrypts with AES-256-GCM: `prefix` in clear, a random IV, the ciphertext, and the tag. */
export function encrypt(key: CipherKey, plain: Uint8Array, associated: Uint8Array, prefix?: Uint8Array): Buffer {
  const iv = randomFillSync(Buffer.allocUnsafe(IV_LENGTH));
  const cipher = createCipheriv(ALGORITHM, key, iv, { authTagLength: TAG_LENGTH }).setAAD(associated);
  const parts = [iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat(prefix ? [prefix, ...parts] : parts);
}

/**
 * Decrypts a result of {@link encrypt}, given without its prefix.
 *
 * @throws Error if the ciphertext, the key or the associated data differs.
 */
export function decrypt(key: CipherKey, sealed: Uint8Array, associated: Uint8Array): Buffer {
  if (sealed.length < ADDED_LENGTH) throw new Error('the ciphertext is too short');
  const end = sealed.length - TAG_LENGTH;
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, IV_LENGTH), { authTagLength: TAG_LENGTH });
  decipher.setAAD(associated).setAuthTag(sealed.subarray(end));
  return Buffer.concat([decipher.update(sealed.subarray(IV_LENGTH, end)), decipher.final()]);
}
