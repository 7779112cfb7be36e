import { createHash } from 'node:crypto';
import type { ActionContext } from 'genkit';

/** The caller, from the server's context provider. Firebase Authentication adds `token`. */
interface Auth {
  uid?: string;
  email?: string;
  token?: { email?: string; email_verified?: boolean };
}

/**
 * The e-mail address of the signed-in customer. It comes only from the server's context provider, never from the conversation, where a
 * user can claim any name.
 */
export function signedInEmail(context: ActionContext | undefined): string | undefined {
  const { email, token } = (context?.auth ?? {}) as Auth;
  return email ?? (token?.email_verified ? token.email : undefined);
}

/** The user id of a customer who signs in only by e-mail address. A hash, because stores keep ids in clear even with `PRIVACY=on`. */
export function customerId(email: string): string {
  return createHash('sha256').update(email).digest('hex').slice(0, 32);
}

/** The part of a context that a background run keeps: the caller, without their token. */
export function withoutToken(context: ActionContext): ActionContext {
  const { uid } = (context.auth ?? {}) as Auth;
  return { auth: { uid, email: signedInEmail(context) } };
}
