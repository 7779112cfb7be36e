import type { ActionContext } from 'genkit';

/**
 * A text for the caller's context. Sessions of different tenants may have the same id, and only the store knows the tenant of a context; what
 * is remembered of a session is therefore remembered for one context.
 */
export function contextKey(context: ActionContext | undefined): string {
  try {
    return JSON.stringify(context) ?? '';
  } catch {
    // It contains itself, or a BigInt: nothing is remembered.
    return globalThis.crypto.randomUUID();
  }
}
