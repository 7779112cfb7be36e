import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Calls a function outside of the caller's Genkit context and trace. Work on memory jobs may be begun by the turn of another user, whose
 * credentials are in the context. Made when the module is loaded, because a manager may be made while a request is served.
 */
export const runWithoutContext: <T>(call: () => T) => T = AsyncLocalStorage.snapshot();
