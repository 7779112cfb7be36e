import { createSign, generateKeyPairSync } from 'node:crypto';

const KEY_ID = 'the-test';
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const other = generateKeyPairSync('rsa', { modulusLength: 2048 });

/** The keys by which tokens are verified, in the format of Google's. */
export const PUBLIC_KEYS = JSON.stringify({ [KEY_ID]: publicKey.export({ type: 'spki', format: 'pem' }) });

export interface TokenOptions {
  project: string;
  uid: string;
  /** Verified. */
  email?: string;
  /** In seconds from now. Default: an hour. */
  expiresIn?: number;
  /** Signed with another key. Default: false. */
  isForged?: boolean;
}

/** An ID token as Firebase Authentication issues it, with a real signature. */
export function idToken({ project, uid, email, expiresIn = 3600, isForged = false }: TokenOptions): string {
  const now = Math.floor(Date.now() / 1000);
  const header = { alg: 'RS256', kid: KEY_ID, typ: 'JWT' };
  const claims = {
    iss: `https://securetoken.google.com/${project}`,
    aud: project,
    sub: uid,
    user_id: uid,
    ...(email && { email, email_verified: true }),
    auth_time: now - 7200,
    iat: now - 7200,
    exp: now + expiresIn,
  };
  const body = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const signature = createSign('RSA-SHA256')
    .update(body)
    .sign(isForged ? other.privateKey : privateKey);
  return `${body}.${signature.toString('base64url')}`;
}
