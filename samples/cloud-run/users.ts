import { createHash } from 'node:crypto';
import { UserFacingError, type ActionContext } from 'genkit';
import type { ContextProvider } from 'genkit/context';
import { contextOf } from '../support/cloud/cloud-support.ts';
import { SetupError } from '../support/setup-error.ts';

/** The users of the service, by their API keys. */
export interface Users {
  /** Identifies the caller by `authorization: Bearer <key>`. */
  context: ContextProvider;
  /** Their contexts. */
  all: readonly ActionContext[];
}

/**
 * @param text `API_KEYS`: `<user>=<key>`, separated by commas.
 * @throws SetupError if the text has another format.
 */
export function readUsers(text = ''): Users {
  const pairs = text.split(',').map((pair) => /^([\w.@-]+)=(\S{16,})$/.exec(pair.trim()));
  const byKey = new Map<string, string>();
  for (const pair of pairs) {
    if (!pair) throw new SetupError('API_KEYS must be <user>=<key>,<user>=<key>, with keys of 16 characters or more.');
    byKey.set(digest(pair[2]!), pair[1]!);
  }
  return {
    context: ({ headers }) => {
      const key = /^bearer +(\S+)$/i.exec(headers['authorization'] ?? '')?.[1];
      // Compared by its hash, so that the response time reveals nothing about the keys.
      const uid = key && byKey.get(digest(key));
      if (!uid) throw new UserFacingError('UNAUTHENTICATED', 'Send your key: authorization: Bearer <key>.');
      return userContext(uid);
    },
    all: [...new Set(byKey.values())].map(userContext),
  };
}

/** A user whose name is an e-mail address has the orders of that address. */
function userContext(uid: string): ActionContext {
  return contextOf(uid, uid.includes('@') ? uid : undefined);
}

function digest(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}
