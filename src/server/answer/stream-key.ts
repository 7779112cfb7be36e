import type { ActionContext } from 'genkit';
import { isPlain } from '../../json/fault.ts';
import { canonicalJson } from '../../json/value.ts';

/** Members of a context that change with each sign-in and do not identify the caller. */
const RENEWED = new Set(['rawToken', 'iat', 'exp', 'nbf', 'jti', 'auth_time', 'instanceIdToken', 'firebaseApp']);

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;

/**
 * The identity of a context's caller, as text: equal for contexts that are equal as JSON, in any order of their members.
 *
 * @throws Error for a context with values that JSON does not distinguish: two users could get the same identity.
 */
export function describeOwner(context: ActionContext, streamOwner?: (context: ActionContext) => unknown): string {
  if (!streamOwner) {
    return canonical(context, (name) => !RENEWED.has(name));
  }
  const owner = streamOwner(context);
  if (owner === undefined || owner === null) {
    throw new Error('The option "streamOwner" returned no owner.');
  }
  return canonical(owner, () => true);
}

function canonical(value: unknown, counts: (name: string) => boolean): string {
  return canonicalJson(value, (name, member) => {
    if (!counts(name)) return undefined;
    // The JSON of an object that is not plain may not contain its identity.
    if (typeof member === 'object' && member !== null && !isPlain(member)) {
      throw new TypeError('The context holds an object that is not plain.');
    }
    const isLost = typeof member === 'function' || typeof member === 'symbol';
    if (isLost || (Array.isArray(member) && member.includes(undefined))) {
      throw new TypeError('The context holds a value that JSON does not have.');
    }
    return member;
  });
}

/**
 * The key under which a stream is kept. It is made of the id and the owner. So another caller can't use the id, in any process with this
 * stream manager, nor distinguish it from an unknown id.
 *
 * @param identity The caller's identity, from {@link describeOwner}.
 * @returns `undefined` for an invalid id.
 */
export async function keyOfStream(id: string, agent: string, identity: string): Promise<string | undefined> {
  if (!UUID.test(id)) {
    return undefined;
  }
  const bytes = new TextEncoder().encode(JSON.stringify([id, agent, identity]));
  const digest = await globalThis.crypto.subtle.digest('SHA-256', bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
