import type { ActionContext } from 'genkit';

/** The owner of a session. */
export interface SessionOwner {
  /** The app, by any id; its sessions share the `app:` keys. */
  readonly appName: string;
  /** The user of that app, by any id; their sessions share the `user:` keys. */
  readonly userId: string;
}

/**
 * The user id that the server has verified, where Genkit's context providers put it. Returned unchecked: the agent and the scopes of a memory
 * refuse an id that is not a valid string, because a session without a user is open to all callers.
 */
export function verifiedUser({ auth }: ActionContext): string | undefined {
  return (auth?.['uid'] as string | null | undefined) ?? undefined;
}
