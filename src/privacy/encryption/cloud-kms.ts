import {
  addressTo,
  causedBy,
  dataLoss,
  failedPrecondition,
  invalidArgument,
  quote,
  unavailable,
} from '../../errors.ts';
import type { WrappingKeys } from './wrapping-keys.ts';

/** The part of `KeyManagementServiceClient` (`@google-cloud/kms`) that is used. */
export interface KmsClient {
  /** Encrypts with the current version of the key. */
  encrypt(request: {
    name: string;
    plaintext: Uint8Array;
    additionalAuthenticatedData: Uint8Array;
  }): Promise<readonly [object, ...unknown[]]>;
  /** Decrypts with the version that encrypted. */
  decrypt(request: {
    name: string;
    ciphertext: Uint8Array;
    additionalAuthenticatedData: Uint8Array;
  }): Promise<readonly [object, ...unknown[]]>;
}

/**
 * Encrypts data keys with Cloud KMS, which gets no other data. Each new data key takes one request, as does each one not in memory.
 *
 * @param client A `KeyManagementServiceClient`. The process may need `cloudkms.cryptoKeyVersions.useToEncrypt` and `useToDecrypt`.
 * @param keyNames Names of symmetric keys, `projects/*\/locations/*\/keyRings/*\/cryptoKeys/*`. The first encrypts, all decrypt. KMS
 *   rotates the versions of a key by itself, so a second name is needed only to move to another key.
 * @throws `INVALID_ARGUMENT` without a key name.
 *
 * @example
 * import { KeyManagementServiceClient } from '@google-cloud/kms';
 *
 * const keys = cloudKms(new KeyManagementServiceClient(), 'projects/p/locations/eu/keyRings/agents/cryptoKeys/sessions');
 * const encryption = envelope({ keys });
 */
export function cloudKms(client: KmsClient, keyNames: string | readonly string[]): WrappingKeys {
  const names = typeof keyNames === 'string' ? [keyNames] : keyNames;
  const [currentId] = Array.isArray(names) ? (names as readonly string[]) : [];
  if (!currentId) throw invalidArgument('cloudKms: needs the name of a key.');
  return {
    currentId,
    wrap: async (dataKey, context) => {
      const request = { name: currentId, plaintext: dataKey, additionalAuthenticatedData: context };
      const [answer] = await client.encrypt(request).catch((error: unknown) => refuse(currentId, error));
      return bytesOf(answer, 'ciphertext');
    },
    unwrap: async (wrapped, keyId, context) => {
      if (!names.includes(keyId)) return undefined;
      const request = { name: keyId, ciphertext: wrapped, additionalAuthenticatedData: context };
      const [answer] = await client.decrypt(request).catch((error: unknown) => refuse(keyId, error));
      return bytesOf(answer, 'plaintext');
    },
  };
}

/** Status codes of gRPC. */
const INVALID_ARGUMENT = 3;
const NOT_ALLOWED: ReadonlySet<unknown> = new Set([5, 7, 9, 16]);

function refuse(keyName: string, error: unknown): never {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === INVALID_ARGUMENT) throw causedBy(dataLoss('The data key is damaged, or belongs to other data.'), error);
  const reason = `Cloud KMS did not use the key ${quote(keyName)}: ${String(message)}.`;
  if (!NOT_ALLOWED.has(code)) throw addressTo('operator', unavailable(`${reason} Try again.`));
  throw addressTo('operator', failedPrecondition(`${reason} Grant access to the key, or enable its version.`));
}

/** A client that uses REST returns base64. */
function bytesOf(answer: object, name: string): Uint8Array {
  const value = (answer as Record<string, unknown>)[name];
  if (typeof value === 'string') return Buffer.from(value, 'base64');
  if (value instanceof Uint8Array) return value;
  throw unavailable('Cloud KMS answered without a key. Try again.');
}
