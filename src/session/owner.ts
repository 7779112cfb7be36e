import type { ActionContext } from 'genkit';

/** The owner of a session. */
export interface SessionOwner {
  /** The app, by any id; its sessions share the `app:` keys. */
  readonly appName: string;
  /** The user of that app, by any id; their sessions share the `user:` keys. */
  readonly userId: string;
}

/**
 * What the server has verified as the user's id, where Genkit's context providers put it. Not checked: an id that is no string must be
 * refused, because without a user a session is open to all callers.
 */
export function verifiedUser({ auth }: ActionContext): string | undefined {
  return (auth?.['uid'] as string | null | undefined) ?? undefined;
}
