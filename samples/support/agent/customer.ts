import { createHash } from 'node:crypto';
import type { ActionContext } from 'genkit';

/** What the server's context provider says about the caller. `token` is what Firebase Authentication adds. */
interface Auth {
  uid?: string;
  email?: string;
  token?: { email?: string; email_verified?: boolean };
}

/**
 * The e-mail address of the customer who is signed in. It comes from the server's context provider alone, never from what was said in the
 * conversation: anybody can claim a name.
 */
export function signedInEmail(context: ActionContext | undefined): string | undefined {
  const { email, token } = (context?.auth ?? {}) as Auth;
  return email ?? (token?.email_verified ? token.email : undefined);
}

/** The user id of a customer who signs in by e-mail address alone. A hash, because stores keep ids in clear with `PRIVACY=on` too. */
export function customerId(email: string): string {
  return createHash('sha256').update(email).digest('hex').slice(0, 32);
}

/** The part of a context that a background run keeps: who called, without their token. */
export function withoutToken(context: ActionContext): ActionContext {
  const { uid } = (context.auth ?? {}) as Auth;
  return { auth: { uid, email: signedInEmail(context) } };
}
