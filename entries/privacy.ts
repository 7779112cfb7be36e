export { cloudKms, type KmsClient } from '../src/privacy/encryption/cloud-kms.ts';
export { envelope, type EnvelopeOptions, type KeyStore } from '../src/privacy/encryption/envelope.ts';
export { localKeys } from '../src/privacy/encryption/local-keys.ts';
export type { WrappingKeys } from '../src/privacy/encryption/wrapping-keys.ts';
export type { Cipher, Encryption, KeyOwner } from '../src/store/encryption.ts';
