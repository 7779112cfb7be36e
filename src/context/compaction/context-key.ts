import type { ActionContext } from 'genkit';

/**
 * A key for the caller's context. Sessions of different tenants may have the same id, and only the store knows the tenant of a context.
 * So caches of sessions are kept by context.
 */
export function contextKey(context: ActionContext | undefined): string {
  try {
    return JSON.stringify(context) ?? '';
  } catch {
    // The context contains itself or a BigInt: a new key each time, so nothing is cached.
    return globalThis.crypto.randomUUID();
  }
}
